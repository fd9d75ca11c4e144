/*
 * The models of the last evaluations, which --keep N saves next to the best one: of
 * model.safetensors model.step-300.safetensors and so on.
 *
 * A new run refuses to begin where such a file exists, so all of them are its own. They are removed
 * after the state is saved: a run that is killed before leaves one more, which the next evaluation
 * of the resumed run removes, and one that is newer than the state is written again.
 */
#include "program/foreign.h"
#include "program/training.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The steps of the models that exist, in rising order. */
struct kept {
    int64_t count, room;
    int64_t *step;
};

static char *kept_path(const struct training *t, int64_t step)
{
    char mark[40];
    snprintf(mark, sizeof mark, ".step-%lld", (long long)step);
    char *path = path_beside(t->out, mark, NULL);
    return path ? path : sb_fail("out of memory");
}

static const char *kept_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The step of a file's name; 0 where it is not the name of a kept model. */
static int64_t kept_step(const struct training *t, const char *prefix, const char *name, bool *ok)
{
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return 0;
    const int64_t step = strtoll(name + strlen(prefix), NULL, 10);
    char *path = step > 0 ? kept_path(t, step) : NULL;
    *ok = path || step <= 0;
    const bool is = path && strcmp(kept_name(path), name) == 0;
    memory_free(path);
    return is ? step : 0;
}

static int kept_compare(const void *a_, const void *b_)
{
    const int64_t *a = a_, *b = b_;
    return *a < *b ? -1 : *a > *b;
}

static bool kept_read(const struct training *t, DIR *folder, const char *prefix, struct kept *k)
{
    const struct dirent *entry;
    bool ok = true;
    while (ok && (entry = readdir(folder))) {
        const int64_t step = kept_step(t, prefix, entry->d_name, &ok);
        if (ok && step > 0 && memory_room(&k->step, k->count, &k->room, sizeof *k->step))
            k->step[k->count++] = step;
        else if (ok && step > 0)
            ok = sb_fail("out of memory");
    }
    if (k->count > 0)
        qsort(k->step, (size_t)k->count, sizeof *k->step, kept_compare);
    return ok;
}

/* To be freed with memory_free(kept->step), in any case. */
static bool kept_find(const struct training *t, struct kept *k)
{
    *k = (struct kept){0};
    const char *name = kept_name(t->out);
    char *path =
             name > t->out ? memory_text_part(t->out, (size_t)(name - t->out)) : memory_text("./"),
         *prefix = path ? path_beside(t->out, ".step-", "") : NULL;
    DIR *folder = prefix ? opendir(path) : NULL;
    bool ok = folder || (prefix ? sb_fail("cannot read the folder %s: %s", path, strerror(errno))
                                : sb_fail("out of memory"));
    ok = ok && kept_read(t, folder, kept_name(prefix), k);
    if (folder)
        closedir(folder);
    memory_free(prefix);
    memory_free(path);
    return ok;
}

bool training_kept_none(const struct training *t)
{
    struct kept k;
    bool ok = t->settings.keep == 0 || kept_find(t, &k);
    if (t->settings.keep == 0 || !ok)
        return ok;
    char *path = k.count > 0 ? kept_path(t, k.step[0]) : NULL;
    if (k.count > 0)
        ok = path && sb_fail("%s exists already, from an earlier run with --keep; move it away, or "
                             "name another --out",
                             path);
    memory_free(path);
    memory_free(k.step);
    return ok;
}

bool training_keep(const struct training *t)
{
    if (t->settings.keep == 0)
        return true;
    char *path = kept_path(t, sb_trainer_steps(t->trainer));
    const bool ok = path && checkpoint_save_model(path, &t->settings, t->task ? t->task : "",
                                                  &t->subject, NULL, NULL);
    memory_free(path);
    return ok;
}

/* One that is gone already need not be removed. */
static bool kept_remove(const struct training *t, int64_t step)
{
    char *path = kept_path(t, step);
    const bool ok = path && (remove(path) == 0 || errno == ENOENT ||
                             sb_fail("--keep: cannot remove %s: %s", path, strerror(errno)));
    memory_free(path);
    return ok;
}

/* Those newer than the state are written again, and do not count. */
bool training_kept_trim(const struct training *t)
{
    struct kept k;
    if (t->settings.keep == 0 || !training_writes(t))
        return true;
    bool ok = kept_find(t, &k);
    while (ok && k.count > 0 && k.step[k.count - 1] > sb_trainer_steps(t->trainer))
        k.count--;
    for (int64_t i = 0; ok && i < k.count - t->settings.keep; i++)
        ok = kept_remove(t, k.step[i]);
    memory_free(k.step);
    return ok;
}

void training_describe_kept(const struct training *t, FILE *out)
{
    struct kept k;
    if (t->settings.keep == 0)
        return;
    const bool ok = kept_find(t, &k);
    for (int64_t i = 0; ok && i < k.count; i++) {
        char *path = kept_path(t, k.step[i]);
        if (path)
            fprintf(out, "%-10s %s\n", i == 0 ? "kept" : "", foreign(path));
        memory_free(path);
    }
    memory_free(k.step);
}
