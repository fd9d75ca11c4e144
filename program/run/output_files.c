/* The files that a training run writes: their names, whether it may write them, the lock of its
   state, the models of --keep, and a bad batch. */
#include "models/data/batch_parts.h"
#include "models/training/metadata.h"
#include "program/run/kind.h"
#include "program/run/paths.h"
#include "program/run/training.h"
#include "program/screen/foreign.h"
#include "tensor/buffer.h"
#include "tensor/error.h"
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
    const int descriptor = file_descriptor(t->state_path.text, O_RDONLY, 0);
    if (descriptor < 0)
        return file_fail("train", "open", t->state_path.text);
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
    return t->lock < 0 || stat(t->state_path.text, &now) != 0 || fstat(t->lock, &locked) != 0 ||
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

static struct path_text kept_path(const struct training *t, int64_t step)
{
    return paths_beside(t->out, path_format(".step-%lld", (long long)step).text, NULL);
}

/* Whether a file's name is that of a kept model. */
static bool kept_is(const struct training *t, const char *prefix, const char *name)
{
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    const int64_t step = strtoll(name + strlen(prefix), NULL, 10);
    return step > 0 && strcmp(paths_name(kept_path(t, step).text), name) == 0;
}

/* Whether a new run finds none in the folder of --out. */
static bool training_kept_none(const struct training *t)
{
    if (t->settings.keep == 0)
        return true;
    const char *name = paths_name(t->out);
    const struct path_text prefix = paths_beside(name, ".step-", ""),
                           path = path_format("%.*s", name > t->out ? (int)(name - t->out) : 2,
                                              name > t->out ? t->out : "./");
    const struct dirent *entry;
    DIR *folder = opendir(path.text);
    bool ok = folder || sb_fail("cannot read the folder %s: %s", path.text, strerror(errno));
    while (ok && (entry = readdir(folder)))
        if (kept_is(t, prefix.text, entry->d_name))
            ok = sb_fail("%s%s exists already, from an earlier run with --keep; move it away, or "
                         "name another --out",
                         strcmp(path.text, "./") == 0 ? "" : path.text, entry->d_name);
    if (folder)
        closedir(folder);
    return ok;
}

bool training_keep(struct training *t)
{
    if (t->settings.keep == 0)
        return true;
    struct kept *kept = &t->progress.kept;
    const int64_t step = sb_trainer_steps(t->trainer);
    uint64_t fingerprint;
    const struct checkpoint_contents contents = {
        .settings = &t->settings, .task = t->task, .is_new = true};
    if (!checkpoint_save(kept_path(t, step).text, &t->subject, &contents, &fingerprint))
        return false;
    kept->model[kept->count].step = step;
    kept->model[kept->count++].fingerprint = fingerprint;
    return true;
}

/* Whether this run has written what a file holds; one that cannot be read stays. */
static bool kept_is_own(const char *path, uint64_t fingerprint)
{
    struct metadata d;
    if (!metadata_of_file(path, &d)) {
        if (file_exists(path))
            fprintf(stderr, "softback train: --keep leaves %s: %s\n", foreign(path), sb_error());
        return false;
    }
    const bool own = d.fingerprint == fingerprint;
    metadata_free(&d);
    return own;
}

/* Removes the first of the list from it, and its file unless that holds something else now. */
static bool kept_remove(struct training *t)
{
    struct kept *kept = &t->progress.kept;
    const struct path_text path = kept_path(t, kept->model[0].step);
    const bool ok = !training_writes(t) || !kept_is_own(path.text, kept->model[0].fingerprint) ||
                    remove(path.text) == 0 ||
                    sb_fail("--keep: cannot remove %s: %s", path.text, strerror(errno));
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
    for (int i = 0; i < kept->count; i++)
        fprintf(out, "%-10s %s\n", i == 0 ? "kept" : "",
                foreign(kept_path(t, kept->model[i].step).text));
}

/* ---- the batch that is saved when its loss is not finite ---- */

/* "<out>.bad-batch.tsv", or with a number from 2 on. */
static struct path_text training_bad_batch(const struct training *t, int number)
{
    return number == 1 ? path_format("%s.bad-batch.tsv", t->out)
                       : path_format("%s.bad-batch.%d.tsv", t->out, number);
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

void training_save_batch(const struct training *t)
{
    const sb_batch *batch = sb_trainer_batch(t->trainer);
    int number = 1; /* earlier files are kept, as they may still be needed */
    while (file_exists(training_bad_batch(t, number).text))
        number++;
    const struct path_text path = training_bad_batch(t, number);
    char *text = batch ? training_batch_text(t, batch) : NULL;
    if (text && file_save("train", path.text, text, strlen(text)))
        fprintf(stderr, "Its batch is in %s.\n", foreign(path.text));
    memory_free(text);
}

/* ---- all of them ---- */

/* Only the first rank writes; the folders may not exist where others run. */
static bool training_check_paths(const struct training *t)
{
    const struct training_request *r = t->request;
    struct paths paths = {0};
    paths_add(&paths, PATH_NEW, "--out", t->out);
    paths_add(&paths, PATH_NEW, "the state of --out", t->state_path.text);
    paths_add(&paths, PATH_LOG, r->log ? "--log" : "--log (by default)", t->log_path.text);
    paths_add(&paths, PATH_PAGE, "--report", r->report);
    paths_add(&paths, PATH_NEW, "the bad batch of --out", training_bad_batch(t, 1).text);
    for (int i = 0; i < r->file_count; i++)
        paths_add(&paths, PATH_READ, "--data", r->files[i]);
    paths_add(&paths, PATH_READ, "--from", r->from);
    paths_add(&paths, PATH_READ, "--valid", r->valid);
    paths_add(&paths, PATH_READ, "--source-file", r->source_file);
    paths_add(&paths, PATH_READ, "--target-file", r->target_file);
    if (t->settings.keep > 0)
        paths_add_numbered(&paths, "--keep", paths_beside(t->out, ".step-", "").text,
                           t->out + strlen(paths_beside(t->out, "", "").text));
    return paths_check(&paths);
}

bool training_open_paths(struct training *t)
{
    const struct training_request *request = t->request;
    t->out = request->out;
    t->state_path = paths_beside(t->out, ".state", NULL);
    t->log_path =
        request->log ? path_format("%s", request->log) : paths_beside(t->out, "", ".jsonl");
    if (training_writes(t) && !training_check_paths(t))
        return false;
    bool model = file_exists(t->out), state = file_exists(t->state_path.text);
    if (!state && training_writes(t) && !training_kept_none(t))
        return false;
    if (!request->resume && model && !state)
        return sb_fail("%s exists already, without the state to continue its training from; name "
                       "another --out",
                       t->out);
    if (!request->resume && state)
        return sb_fail("%s exists already; use --resume to continue, or name another --out",
                       model ? t->out : t->state_path.text);
    if (model && !state)
        return sb_fail("%s exists, but %s, its training state, does not; name another --out",
                       t->out, t->state_path.text);
    return true;
}
