/*
 * The models of the last evaluations, which --keep N saves next to the best one: of
 * model.safetensors model.step-300.safetensors and so on.
 *
 * A new run refuses to begin where such a file exists. The state lists those that the run has
 * written, with their fingerprints: no other file is removed, nor is one overwritten. They are
 * removed after the state is saved: a run that is killed before leaves one more, which the resumed
 * run removes, and one that is newer than the state is written again, with the same contents.
 */
#include "models/training/metadata.h"
#include "program/run/paths.h"
#include "program/run/training.h"
#include "program/screen/foreign.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char *kept_path(const struct training *t, int64_t step)
{
    char mark[40];
    snprintf(mark, sizeof mark, ".step-%lld", (long long)step);
    char *path = paths_beside(t->out, mark, NULL);
    return path ? path : sb_fail("out of memory");
}

/* ---- before the run ---- */

bool training_add_kept(const struct training *t, struct paths *paths)
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

bool training_kept_none(const struct training *t)
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

/* ---- during it ---- */

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
