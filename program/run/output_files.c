/* The files that a training run writes: their names, whether it may write them, the lock of its
   state, the models of --keep, and a bad batch. */
#include "models/data/batch_parts.h"
#include "models/text/buffer.h"
#include "models/training/metadata.h"
#include "program/run/kind.h"
#include "program/run/paths.h"
#include "program/run/training.h"
#include "program/screen/foreign.h"
#include "tensor/error.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the lock on the state: each save replaces that file, and the new one is locked again ---- */

static bool training_refuse_second(const struct training *t)
{
    return sb_fail("another training run writes %s; wait for its end, or name another --out",
                   utf8_quote(t->out).text);
}

void training_unlock(struct training *t)
{
    if (t->lock >= 0)
        close(t->lock);
    t->lock = -1;
}

bool training_lock(struct training *t)
{
    if (!training_writes(t))
        return true;
    const int descriptor = file_descriptor(t->state_path, O_RDONLY, 0);
    if (descriptor < 0)
        return file_fail("train", "open", t->state_path);
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(descriptor);
        return training_refuse_second(t);
    }
    training_unlock(t);
    t->lock = descriptor;
    return true;
}

bool training_holds_lock(const struct training *t)
{
    struct stat now, locked;
    return t->lock < 0 || stat(t->state_path, &now) != 0 || fstat(t->lock, &locked) != 0 ||
           (now.st_dev == locked.st_dev && now.st_ino == locked.st_ino) ||
           training_refuse_second(t);
}

/* ---- the models of --keep ---- */

/*
 * The models of the last evaluations, which --keep N saves next to the best one: of
 * model.safetensors model.step-300.safetensors and so on.
 *
 * A new run refuses to begin where such a file exists. The state lists those that the run has
 * written, with their fingerprints: no other file is removed, nor is one overwritten. They are
 * removed after the state is saved: a run that is killed before leaves one more, which the resumed
 * run removes, and one that is newer than the state is written again, with the same contents.
 */

static char *kept_path(const struct training *t, int64_t step)
{
    char mark[40];
    snprintf(mark, sizeof mark, ".step-%lld", (long long)step);
    char *path = paths_beside(t->out, mark, NULL);
    return path ? path : sb_fail("out of memory");
}

/* Adds the paths that they may have. */
static bool training_add_kept(const struct training *t, struct paths *paths)
{
    if (t->settings.keep == 0)
        return true;
    char *prefix = paths_beside(t->out, ".step-", ""), *stem = paths_beside(t->out, "", "");
    const bool ok = prefix && stem;
    if (ok)
        paths_add_numbered(paths, "--keep", prefix, t->out + strlen(stem));
    memory_free(prefix);
    memory_free(stem);
    return ok || sb_fail("out of memory");
}

/* Whether a file's name is that of a kept model. */
static bool kept_is(const struct training *t, const char *prefix, const char *name, bool *ok)
{
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    const int64_t step = strtoll(name + strlen(prefix), NULL, 10);
    char *path = step > 0 ? kept_path(t, step) : NULL;
    *ok = path || step <= 0;
    const bool is = path && strcmp(paths_name(path), name) == 0;
    memory_free(path);
    return is;
}

/* Fails where a folder has such a file. */
static bool kept_none_in(const struct training *t, const char *path, const char *prefix)
{
    const struct dirent *entry;
    DIR *folder = opendir(path);
    bool ok = folder || sb_fail("cannot read the folder %s: %s", path, strerror(errno));
    while (ok && (entry = readdir(folder)))
        if (kept_is(t, prefix, entry->d_name, &ok))
            ok = sb_fail("%s%s exists already, from an earlier run with --keep; move it away, or "
                         "name another --out",
                         strcmp(path, "./") == 0 ? "" : path, entry->d_name);
    if (folder)
        closedir(folder);
    return ok;
}

/* Whether a new run finds none. */
static bool training_kept_none(const struct training *t)
{
    if (t->settings.keep == 0)
        return true;
    const char *name = paths_name(t->out);
    char *prefix = paths_beside(name, ".step-", ""),
         *folder =
             name > t->out ? memory_text_part(t->out, (size_t)(name - t->out)) : memory_text("./");
    const bool ok = (prefix && folder) || sb_fail("out of memory");
    const bool none = ok && kept_none_in(t, folder, prefix);
    memory_free(prefix);
    memory_free(folder);
    return none;
}

bool training_keep(struct training *t)
{
    if (t->settings.keep == 0)
        return true;
    struct kept *kept = &t->progress.kept;
    const int64_t step = sb_trainer_steps(t->trainer);
    uint64_t fingerprint;
    char *path = kept_path(t, step);
    const struct checkpoint_contents contents = {
        .settings = &t->settings, .task = t->task, .is_new = true};
    const bool ok = path && checkpoint_save(path, &t->subject, &contents, &fingerprint);
    memory_free(path);
    if (!ok)
        return false;
    kept->model[kept->count].step = step;
    kept->model[kept->count++].fingerprint = fingerprint;
    return true;
}

/* Whether this run has written what a file holds; a file that cannot be read is another's. */
static bool kept_is_own(const char *path, uint64_t fingerprint)
{
    struct metadata d;
    if (!metadata_of_file(path, &d))
        return false;
    const bool own = d.fingerprint == fingerprint;
    metadata_free(&d);
    return own;
}

/* Removes the first of the list from it, and its file unless that holds something else now. */
static bool kept_remove(struct training *t)
{
    struct kept *kept = &t->progress.kept;
    char *path = kept_path(t, kept->model[0].step);
    const bool writes = path && training_writes(t);
    const bool ok =
        path && (!writes || !kept_is_own(path, kept->model[0].fingerprint) || remove(path) == 0 ||
                 sb_fail("--keep: cannot remove %s: %s", path, strerror(errno)));
    memory_free(path);
    if (ok)
        memmove(kept->model, kept->model + 1, (size_t)--kept->count * sizeof kept->model[0]);
    return ok;
}

bool training_kept_trim(struct training *t)
{
    bool ok = true;
    while (ok && t->progress.kept.count > t->settings.keep)
        ok = kept_remove(t);
    return ok;
}

void training_describe_kept(const struct training *t, FILE *out)
{
    const struct kept *kept = &t->progress.kept;
    for (int i = 0; i < kept->count; i++) {
        char *path = kept_path(t, kept->model[i].step);
        if (path)
            fprintf(out, "%-10s %s\n", i == 0 ? "kept" : "", foreign(path));
        memory_free(path);
    }
}

/* ---- the batch that is saved when its loss is not finite ---- */

/* "<out>.bad-batch.tsv", or with a number from 2 on; for memory_free. NULL without memory. */
static char *training_bad_batch(const struct training *t, int number)
{
    return number == 1 ? memory_format("%s.bad-batch.tsv", t->out)
                       : memory_format("%s.bad-batch.%d.tsv", t->out, number);
}

/* Earlier files are kept, as they may still be needed. */
static char *training_new_bad_batch(const struct training *t)
{
    char *path = training_bad_batch(t, 1);
    for (int number = 2; path && file_exists(path); number++) {
        memory_free(path);
        path = training_bad_batch(t, number);
    }
    return path;
}

bool bad_batch_add_text(struct buffer *buffer, const sb_vocabulary *vocabulary,
                        const sb_batch *batch, const char *ids, const char *lengths, int64_t item)
{
    sb_tensor *all = sb_batch_get(batch, ids);
    const int32_t *row =
        all ? (const int32_t *)sb_tensor_data(all) + item * sb_tensor_dim(all, 1) : NULL;
    char *text =
        row ? sb_vocabulary_decode(vocabulary, row,
                                   (int64_t)sb_tensor_get(sb_batch_get(batch, lengths), item))
            : NULL;
    const bool ok = text && buffer_add_text(buffer, text);
    sb_free(text);
    return ok;
}

/* The texts of a batch, which may lie on a device. */
static char *training_batch_text(const struct training *t, const sb_batch *batch)
{
    sb_batch host;
    struct buffer buffer = {0};
    bool ok = batch_copy(&host, batch, sb_device_cpu());
    for (int64_t i = 0; ok && i < batch->items; i++)
        ok = t->request->kind->add_item(&buffer, t, &host, i) && buffer_add_text(&buffer, "\n");
    char *text = ok ? buffer_take(&buffer) : NULL;
    buffer_free(&buffer);
    batch_release(&host);
    return text;
}

char *training_save_batch(const struct training *t)
{
    const sb_batch *batch = sb_trainer_batch(t->trainer);
    char *path = batch ? training_new_bad_batch(t) : NULL;
    char *text = path ? training_batch_text(t, batch) : NULL;
    bool ok = text && file_save("train", path, text, strlen(text));
    memory_free(text);
    if (ok)
        return path;
    memory_free(path);
    return NULL;
}

/* ---- all of them ---- */

/* Only the first rank writes; the folders may not exist where others run. */
static bool training_check_paths(const struct training *t)
{
    const struct training_request *r = t->request;
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

bool training_open_paths(struct training *t)
{
    const struct training_request *request = t->request;
    t->out = memory_text(request->out);
    t->state_path = paths_beside(request->out, ".state", NULL);
    t->log_path =
        request->log ? memory_text(request->log) : paths_beside(request->out, "", ".jsonl");
    if (!t->out || !t->state_path || !t->log_path)
        return sb_fail("out of memory");
    if (training_writes(t) && !training_check_paths(t))
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
