/* The files that a training run writes: their names, and whether it may write them. */
#include "program/run/paths.h"
#include "program/run/training.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"

/* Only the first rank writes; the folders may not exist where others run. */
static bool training_check_paths(const struct training *t, const struct training_request *r)
{
    struct paths paths = {0};
    char *bad_batch = training_bad_batch(t, 1);
    paths_add(&paths, PATH_NEW, "--out", t->out);
    paths_add(&paths, PATH_NEW, "the state of --out", t->state_path);
    paths_add(&paths, PATH_LOG, r->log ? "--log" : "--log (by default)", t->log_path);
    paths_add(&paths, PATH_PAGE, "--report", r->report);
    paths_add(&paths, PATH_NEW, "the bad batch of --out", bad_batch);
    for (int i = 0; i < r->file_count; i++)
        paths_add(&paths, PATH_READ, "--data", r->files[i]);
    paths_add(&paths, PATH_READ, "--from", r->from);
    paths_add(&paths, PATH_READ, "--valid", r->valid);
    paths_add(&paths, PATH_READ, "--source-file", r->source_file);
    paths_add(&paths, PATH_READ, "--target-file", r->target_file);
    memory_free(bad_batch);
    return training_add_kept(t, &paths) && paths_check(&paths);
}

bool training_open_paths(struct training *t, const struct training_request *request)
{
    t->out = memory_text(request->out);
    t->state_path = paths_beside(request->out, ".state", NULL);
    t->log_path =
        request->log ? memory_text(request->log) : paths_beside(request->out, "", ".jsonl");
    if (!t->out || !t->state_path || !t->log_path)
        return sb_fail("out of memory");
    if (training_writes(t) && !training_check_paths(t, request))
        return false;
    bool model = file_exists(t->out), state = file_exists(t->state_path);
    if (!state && training_writes(t) && !training_kept_none(t))
        return false;
    if (!request->resume && model && !state)
        return sb_fail("%s exists already, without the state to continue its training from; name "
                       "another --out",
                       t->out);
    if (!request->resume && state)
        return sb_fail("%s exists already; use --resume to continue, or name another --out",
                       model ? t->out : t->state_path);
    if (model && !state)
        return sb_fail("%s exists, but %s, its training state, does not; name another --out",
                       t->out, t->state_path);
    return true;
}
