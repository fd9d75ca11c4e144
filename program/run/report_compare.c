/* softback report of two models, or of a folder: one page of HTML that compares runs. */
#include "models/training/metadata.h"
#include "program/run/paths.h"
#include "program/run/report.h"
#include "program/run/training.h"
#include "program/screen/foreign.h"
#include "teach/report/compare.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Runs by the paths of their models. */
struct runs {
    int64_t count, room;
    char **model;
};

static void runs_free(struct runs *runs)
{
    for (int64_t i = 0; i < runs->count; i++)
        memory_free(runs->model[i]);
    memory_free(runs->model);
}

/* Takes over the path. */
static bool runs_add(struct runs *runs, char *model)
{
    if (model && memory_room(&runs->model, runs->count, &runs->room, sizeof *runs->model)) {
        runs->model[runs->count++] = model;
        return true;
    }
    memory_free(model);
    return sb_fail("report: out of memory");
}

bool report_is_folder(const char *path)
{
    struct stat about;
    return path && stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* ---- the runs of a folder ---- */

/* Whether a file is LoRA adapters, which are not compared with whole models. */
static bool runs_is_adapters(const char *model)
{
    struct metadata d = {0};
    sb_safetensors *file = sb_safetensors_open(model);
    const bool adapters = file && metadata_of(file, &d) && d.adapters;
    metadata_free(&d);
    sb_safetensors_close(file);
    return adapters;
}

/* Takes over the path. */
static bool runs_add_whole(struct runs *runs, char *model)
{
    if (!model || !runs_is_adapters(model))
        return runs_add(runs, model);
    fprintf(stderr,
            "softback report: skipped %s: it has LoRA adapters alone; softback merge joins them "
            "with their model\n",
            foreign(model));
    memory_free(model);
    return true;
}

/* A log NAME.jsonl belongs to a run whose model is NAME.safetensors or NAME. */
static bool runs_add_log(struct runs *runs, const char *folder, const char *log)
{
    static const char ending[] = ".jsonl";
    static const char *const models[] = {".safetensors", ""};
    const size_t size = strlen(log), cut = sizeof ending - 1;
    if (size <= cut || strcmp(log + size - cut, ending) != 0)
        return true;
    for (int i = 0; i < 2; i++) {
        char *model = memory_format("%s/%.*s%s", folder, (int)(size - cut), log, models[i]);
        if (!model || (file_exists(model) && !report_is_folder(model)))
            return runs_add_whole(runs, model);
        memory_free(model);
    }
    return true;
}

static int runs_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool runs_of_folder(struct runs *runs, const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool ok =
        folder || sb_fail("cannot read the folder %s: %s", utf8_quote(path).text, strerror(errno));
    while (ok && (entry = readdir(folder)))
        ok = runs_add_log(runs, path, entry->d_name);
    if (folder)
        closedir(folder);
    if (ok && runs->count == 0)
        ok = sb_fail("the folder %s has no run: a run is a model with its log beside it, such as "
                     "NAME.safetensors and NAME.jsonl",
                     utf8_quote(path).text);
    if (ok)
        qsort(runs->model, (size_t)runs->count, sizeof *runs->model, runs_order);
    return ok;
}

/* ---- the page ---- */

static bool runs_find(struct runs *runs, const struct report_request *r)
{
    if (!r->other)
        return runs_of_folder(runs, r->model);
    return runs_add(runs, memory_text(r->model)) && runs_add(runs, memory_text(r->other));
}

static bool runs_check_paths(const struct runs *runs, const char *out)
{
    for (int64_t i = 0; i < runs->count; i++) {
        struct paths paths = {0};
        paths_add(&paths, PATH_READ, "MODEL", runs->model[i]);
        paths_add(&paths, PATH_PAGE, "--out", out);
        if (!paths_check(&paths))
            return false;
    }
    return true;
}

static bool runs_open(const struct runs *runs, struct compared *compared)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < runs->count; i++) {
        char *log = paths_beside(runs->model[i], "", ".jsonl");
        char *name = report_name_of(runs->model[i]);
        ok = log && name ? compared_open(&compared[i], name, runs->model[i], log)
                         : sb_fail("report: out of memory") != NULL;
        memory_free(log);
        memory_free(name);
    }
    return ok;
}

static char *runs_page(const struct runs *runs, const char *folder)
{
    struct compared *compared = memory_new((size_t)runs->count * sizeof *compared);
    char *page = NULL;
    char *title = folder ? memory_format("%lld runs in %s", (long long)runs->count, folder)
                         : memory_text("Two runs");
    if (!compared || !title)
        sb_fail("report: out of memory");
    else if (runs_open(runs, compared)) {
        utf8_disarm(title);
        if (folder)
            compare_sort(runs->count, compared);
        page = compare_page(title, runs->count, compared);
    }
    for (int64_t i = 0; compared && i < runs->count; i++)
        compared_close(&compared[i]);
    memory_free(compared);
    memory_free(title);
    return page;
}

bool report_compare(const struct report_request *r)
{
    struct runs runs = {0};
    char *out = report_path(r), *page = NULL;
    const bool ok = (out || sb_fail("report: out of memory")) && runs_find(&runs, r) &&
                    runs_check_paths(&runs, out);
    if (ok)
        page = runs_page(&runs, r->other ? NULL : r->model);
    const bool saved = page && file_save("report", out, page, strlen(page));
    memory_free(page);
    memory_free(out);
    runs_free(&runs);
    return saved;
}
