/* Reports: the page on one model, and the page that compares runs. */
#include "program/run/report.h"
#include "models/training/metadata.h"
#include "program/run/kind.h"
#include "program/run/paths.h"
#include "program/screen/foreign.h"
#include "teach/report/report.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool report_is_folder(const char *path)
{
    struct stat about;
    return path && stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

struct path_text report_path(const struct report_request *r)
{
    return r->out                       ? path_format("%s", r->out)
           : report_is_folder(r->model) ? path_format("%s/report.html", r->model)
                                        : paths_beside(r->model, "", ".html");
}

/* For titles: "model" for "runs/model.safetensors". */
static struct path_text report_name_of(const char *model)
{
    const char *base = paths_name(model), *dot = strrchr(base, '.');
    const size_t size = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    struct path_text name = path_format("%.*s", (int)size, base);
    utf8_disarm(name.text);
    return name;
}

/* The hashes of the data that the model was trained with, and of the held-out ones among them,
   which the file of its training's state holds; 0 without one. */
struct data_hashes {
    uint64_t all, held;
};

static struct data_hashes report_hashes(const char *model)
{
    struct metadata d = {0};
    const struct path_text path = paths_beside(model, ".state", NULL);
    const bool exists = file_exists(path.text);
    sb_safetensors *state = exists ? sb_safetensors_open(path.text) : NULL;
    struct data_hashes hashes = {0, 0};
    if (state && metadata_of(state, &d))
        hashes = (struct data_hashes){d.progress.data_hash, d.progress.held_hash};
    else if (exists)
        fprintf(stderr, "softback report: %s; the hash of the data is left out\n", sb_error());
    metadata_free(&d);
    sb_safetensors_close(state);
    return hashes;
}

/* Reads what the model is tried on: the pairs of --data, or a hundred of the model's task; NULL
   without either. */
static bool report_read_pairs(const struct report_request *r, const struct checkpoint *c,
                              const struct training_kind *kind, sb_pairs **read)
{
    *read = NULL;
    if (r->data && !kind->report->errors)
        return sb_fail("--data is for what a model gets wrong; softback evaluate measures %s",
                       kind->title);
    if (!r->data && !(c->task[0] && kind->task_pairs))
        return true;
    *read = r->data ? sb_pairs_read(r->data, NULL)
                    : kind->task_pairs(c->task, &c->settings, SB_PART_TEST, 100);
    return *read != NULL;
}

/* The page or the figure on a text. */
static char *report_of_text(struct report *page, const struct report_request *r,
                            const struct training_kind *kind)
{
    struct subject subject;
    char *text = NULL;
    page->subject = &subject;
    if (subject_begin(&subject, &page->checkpoint->subject, page->text, r->target)) {
        if (!r->figure)
            text = report_page(page, kind->report);
        else if (subject.example.attention[0].self)
            sb_fail("--figure is for encoder-decoders; leave it out for a page on this model");
        else
            text = figure_svg(r->figure, &subject, page->log);
    }
    subject_end(&subject);
    return text;
}

/* "d: dates, 300 steps": what is known of them. */
static struct path_text report_title(const char *name, const struct checkpoint *c,
                                     const struct run_log *log)
{
    const double steps = run_end(log).steps;
    const bool trained = steps > 0;
    char count[40] = "";
    if (trained)
        snprintf(count, sizeof count, "%.10g steps", steps);
    return path_format("%s%s%s%s%s", name, c->task[0] || trained ? ": " : "", c->task,
                       c->task[0] && trained ? ", " : "", count);
}

/* The page or the figure; NULL, with a message, when it cannot be made. */
static char *report_make(const struct report_request *r, const struct run_log *log)
{
    struct checkpoint *c = checkpoint_open(r->model, NULL);
    const struct training_kind *kind = c ? training_kind_of(c) : NULL;
    const struct path_text name = report_name_of(r->model);
    char *text = NULL;
    sb_pairs *read = NULL;
    if (c && report_read_pairs(r, c, kind, &read)) {
        const struct path_text title = report_title(name.text, c, log);
        struct report page = r->page;
        page.checkpoint = c;
        page.title = title.text;
        page.name = name.text;
        page.text_given = page.text != NULL;
        page.target_given = r->target != NULL;
        page.log = log;
        page.pairs = read ? read : page.pairs;
        page.pairs_are = r->data ? "texts of --data"
                         : !read ? "held-out texts, the first in order,"
                         : kind->task && kind->task[0]
                             ? "other texts, drawn for tests,"
                             : "other texts, made for tests and never seen in "
                               "training, not even to evaluate,";
        page.data_hash = report_hashes(r->model).all;
        if (!page.text && page.pairs) /* without --input */
            page.text = sb_pairs_source(page.pairs, 0);
        if (!page.text)
            sb_fail("report: there is no text to draw; give %s--input TEXT",
                    kind->report->errors ? "--data FILE of held-out texts, or " : "");
        else
            text = report_of_text(&page, r, kind);
    }
    sb_pairs_free(read);
    checkpoint_free(c);
    return text;
}

static bool report_check_paths(const struct report_request *r, const char *log, const char *out)
{
    struct paths paths = {0};
    paths_add(&paths, PATH_READ, "MODEL", r->model);
    paths_add(&paths, PATH_READ, "--data", r->data);
    paths_add(&paths, PATH_READ, r->log ? "--log" : "--log (by default)", log);
    if (r->out || !r->figure)
        paths_add(&paths, r->figure ? PATH_FIGURE : PATH_PAGE,
                  r->out ? "--out" : "--out (by default)", out);
    return paths_check(&paths);
}

bool report_write(const struct report_request *r)
{
    struct run_log log = {0};
    const struct path_text path = report_path(r), beside = paths_beside(r->model, "", ".jsonl");
    const char *log_path = r->log ? r->log : beside.text;
    bool ok = report_check_paths(r, log_path, path.text);
    if (ok && r->log && !file_exists(r->log))
        ok = sb_fail("--log %s: there is no such file; leave the option out for a page without "
                     "curves",
                     utf8_quote(r->log).text);
    ok = ok && run_log_read(&log, log_path);
    char *text = ok ? report_make(r, &log) : NULL;
    ok = text && (r->figure && !r->out ? fputs(text, stdout) >= 0 || sb_fail("cannot write")
                                       : file_save("report", path.text, text, strlen(text)));
    memory_free(text);
    run_log_free(&log);
    return ok;
}

/* ---- a page that compares two models, or the runs of a folder ---- */

/* Runs by the paths of their models. */
struct runs {
    int64_t count, room;
    struct path_text *model;
};

static bool runs_add(struct runs *runs, const char *model)
{
    if (!memory_room(&runs->model, runs->count, &runs->room, sizeof *runs->model))
        return sb_fail("report: out of memory");
    runs->model[runs->count++] = path_format("%s", model);
    return true;
}

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

/* A log NAME.jsonl belongs to a run whose model is NAME.safetensors or NAME. */
static bool runs_add_log(struct runs *runs, const char *folder, const char *log)
{
    static const char ending[] = ".jsonl";
    static const char *const models[] = {".safetensors", ""};
    const size_t size = strlen(log), cut = sizeof ending - 1;
    if (size <= cut || strcmp(log + size - cut, ending) != 0)
        return true;
    for (int i = 0; i < 2; i++) {
        const struct path_text model =
            path_format("%s/%.*s%s", folder, (int)(size - cut), log, models[i]);
        if (!file_exists(model.text) || report_is_folder(model.text))
            continue;
        if (!runs_is_adapters(model.text))
            return runs_add(runs, model.text);
        fprintf(stderr,
                "softback report: skipped %s: it has LoRA adapters alone; softback merge joins "
                "them with their model\n",
                foreign(model.text));
        break;
    }
    return true;
}

static int runs_order(const void *a, const void *b)
{
    return strcmp(((const struct path_text *)a)->text, ((const struct path_text *)b)->text);
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

static bool runs_check_paths(const struct runs *runs, const char *out)
{
    for (int64_t i = 0; i < runs->count; i++) {
        struct paths paths = {0};
        paths_add(&paths, PATH_READ, "MODEL", runs->model[i].text);
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
        const struct path_text log = paths_beside(runs->model[i].text, "", ".jsonl"),
                               name = report_name_of(runs->model[i].text);
        const struct data_hashes hashes = report_hashes(runs->model[i].text);
        ok = compared_open(&compared[i], name.text, runs->model[i].text, log.text, hashes.all,
                           hashes.held);
    }
    return ok;
}

static char *runs_page(const struct runs *runs, const char *folder)
{
    struct compared *compared = memory_new((size_t)runs->count * sizeof *compared);
    char *page = NULL;
    struct path_text title = path_format("Two runs");
    if (folder)
        title = path_format("%lld runs in %s", (long long)runs->count, folder);
    if (!compared)
        sb_fail("report: out of memory");
    else if (runs_open(runs, compared)) {
        utf8_disarm(title.text);
        if (folder)
            compare_sort(runs->count, compared);
        page = compare_page(title.text, runs->count, compared);
    }
    for (int64_t i = 0; compared && i < runs->count; i++)
        compared_close(&compared[i]);
    memory_free(compared);
    return page;
}

bool report_compare(const struct report_request *r)
{
    struct runs runs = {0};
    const struct path_text out = report_path(r);
    char *page = NULL;
    const bool found = r->other ? runs_add(&runs, r->model) && runs_add(&runs, r->other)
                                : runs_of_folder(&runs, r->model);
    if (found && runs_check_paths(&runs, out.text))
        page = runs_page(&runs, r->other ? NULL : r->model);
    const bool saved = page && file_save("report", out.text, page, strlen(page));
    memory_free(page);
    memory_free(runs.model);
    return saved;
}
