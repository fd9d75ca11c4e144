/* The page on one model. */
#include "program/run/report.h"
#include "models/training/metadata.h"
#include "program/run/kind.h"
#include "program/run/paths.h"
#include "teach/report/report.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <string.h>

char *report_path(const struct report_request *r)
{
    if (!r->out && report_is_folder(r->model))
        return memory_format("%s/report.html", r->model);
    return r->out ? memory_text(r->out) : paths_beside(r->model, "", ".html");
}

char *report_name_of(const char *model)
{
    const char *base = paths_name(model), *dot = strrchr(base, '.');
    char *name = memory_text_part(base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
    if (name)
        utf8_disarm(name);
    return name;
}

/* The hash of the data that the model was trained on, which the file of its training's state holds;
   0 without one. */
static uint64_t report_data_hash(const char *model)
{
    struct metadata d = {0};
    char *path = paths_beside(model, ".state", NULL);
    sb_safetensors *state = path && file_exists(path) ? sb_safetensors_open(path) : NULL;
    const uint64_t hash = state && metadata_of(state, &d) ? d.progress.data_hash : 0;
    metadata_free(&d);
    sb_safetensors_close(state);
    memory_free(path);
    return hash;
}

/* What the model is tried on: the pairs of --data, those given, or a hundred of the model's task;
   none where `pairs` becomes NULL. What becomes `read` is to be freed. */
static bool report_find_pairs(const struct report_request *r, const struct checkpoint *c,
                              const struct training_kind *kind, sb_pairs **read,
                              const sb_pairs **pairs)
{
    const bool of_task = c->task[0] && kind && kind->task_pairs;
    if (r->data && !(kind && kind->report && kind->report->errors))
        return sb_fail("--data is for what a model gets wrong; softback evaluate measures %s",
                       kind ? kind->title : "this model");
    *read = NULL;
    if (r->data)
        *read = sb_pairs_read(r->data, NULL);
    else if (of_task)
        *read = kind->task_pairs(c->task, &c->settings, SB_PART_TEST, 100);
    *pairs = r->data || of_task ? *read : r->pairs;
    return *read || !(r->data || of_task);
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
            text = report_page(page, kind ? kind->report : NULL);
        else if (subject.example.attention[0].self)
            sb_fail("--figure is for encoder-decoders; leave it out for a page on this model");
        else
            text = figure_svg(r->figure, &subject, page->log);
    }
    subject_end(&subject);
    return text;
}

/* The page or the figure; NULL, with a message, when it cannot be made. */
static char *report_make(const struct report_request *r, const struct run_log *log)
{
    struct checkpoint *c = checkpoint_open(r->model, NULL);
    const struct training_kind *kind = c ? training_kind_of(c->subject.kind) : NULL;
    char *name = report_name_of(r->model), *text = NULL;
    sb_pairs *read = NULL;
    const sb_pairs *pairs = NULL;
    if (c && report_find_pairs(r, c, kind, &read, &pairs)) {
        struct report page = {.checkpoint = c,
                              .title = name,
                              .text = r->text,
                              .text_given = r->text != NULL,
                              .target_given = r->target != NULL,
                              .log = log,
                              .pairs = pairs,
                              .pairs_are = r->data ? "texts of --data"
                                           : read  ? "test texts of the task, which "
                                                     "training never saw, not even to evaluate,"
                                                   : "held-out texts, the first in order,",
                              .data_hash = report_data_hash(r->model)};
        if (!page.text && page.pairs) /* without --input */
            page.text = sb_pairs_source(page.pairs, 0);
        if (!page.text)
            sb_fail("report: no --input and no task whose held-out texts could be taken; give "
                    "--input TEXT");
        else if (!name)
            sb_fail("report: out of memory");
        else
            text = report_of_text(&page, r, kind);
    }
    sb_pairs_free(read);
    checkpoint_free(c);
    memory_free(name);
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
    char *log_path = r->log ? memory_text(r->log) : paths_beside(r->model, "", ".jsonl");
    char *path = report_path(r), *text = NULL;
    bool ok = (path && log_path) || sb_fail("report: out of memory");
    ok = ok && report_check_paths(r, log_path, path);
    if (ok && r->log && !file_exists(r->log))
        ok = sb_fail("--log %s: there is no such file; leave the option out for a page without "
                     "curves",
                     utf8_quote(r->log).text);
    ok = ok && run_log_read(&log, log_path);
    text = ok ? report_make(r, &log) : NULL;
    ok = text && (r->figure && !r->out ? fputs(text, stdout) >= 0 || sb_fail("cannot write")
                                       : file_save("report", path, text, strlen(text)));
    memory_free(text);
    run_log_free(&log);
    memory_free(log_path);
    memory_free(path);
    return ok;
}
