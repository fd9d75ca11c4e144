/* The page on one model. */
#include "program/run/report.h"
#include "models/classifier_kind.h"
#include "models/training/checkpoint.h"
#include "program/run/paths.h"
#include "program/run/training.h"
#include "teach/report/report.h"
#include "teach/report/text_report.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <string.h>

char *report_path(const struct report_request *r)
{
    if (!r->out && report_is_folder(r->model))
        return memory_format("%s/report.html", r->model);
    return r->out ? memory_text(r->out) : path_beside(r->model, "", ".html");
}

char *report_name_of(const char *model)
{
    const char *slash = strrchr(model, '/'), *base = slash ? slash + 1 : model;
    const char *dot = strrchr(base, '.');
    char *name = memory_text_part(base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
    if (name)
        utf8_disarm(name);
    return name;
}

/* The hash of the data that the model was trained on, which the file of its training's state holds;
   0 without one. */
static uint64_t report_data_hash(const char *model)
{
    char *path = path_beside(model, ".state", NULL);
    struct checkpoint *state = path && file_exists(path) ? checkpoint_load_any(path) : NULL;
    const uint64_t hash = state ? state->progress.data_hash : 0;
    checkpoint_free(state);
    memory_free(path);
    return hash;
}

/* Held-out pairs: of --data, or a hundred of the model's task; NULL where there are none. */
static sb_pairs *report_pairs(const struct report_request *r, const struct checkpoint *c)
{
    if (r->data)
        return sb_pairs_read(r->data, NULL);
    return c->task[0] ? training_task_pairs(c->task, &c->settings, SB_PART_TEST, 100) : NULL;
}

static char *report_page_of(const struct report_request *r, const struct subject *subject,
                            const char *name, const struct run_log *log)
{
    sb_pairs *pairs = report_pairs(r, subject->checkpoint);
    if (!pairs && (r->data || subject->checkpoint->task[0]))
        return NULL;
    const struct report_sources sources = {log, pairs, report_data_hash(r->model)};
    char *page = report_page(subject, name, r->text, &sources);
    sb_pairs_free(pairs);
    return page;
}

/* Of an encoder-decoder: the page or the figure. */
static char *report_of_pair(const struct report_request *r, const char *name,
                            const struct run_log *log)
{
    struct subject subject;
    if (!subject_open(&subject, r->model, r->text, r->target))
        return NULL;
    char *text =
        r->figure ? figure_svg(r->figure, &subject, log) : report_page_of(r, &subject, name, log);
    subject_close(&subject);
    return text;
}

/* The confusion table of a classifier, if there are texts for it. */
static bool report_confuse(const struct report_request *r, const struct checkpoint *c,
                           struct confusion *confusion)
{
    sb_pairs *read = r->data ? sb_pairs_read(r->data, NULL) : NULL;
    const sb_pairs *pairs = r->data ? read : r->pairs;
    const bool ok =
        (pairs || !r->data) && (!pairs || confusion_measure(confusion, c->subject.self, pairs));
    sb_pairs_free(read);
    return ok;
}

/* Of a model that reads one text. */
static char *report_of_text(const struct report_request *r, const struct checkpoint *c,
                            const char *name, const struct run_log *log)
{
    struct text_subject subject;
    struct confusion confusion = {0};
    const bool classifier = c->subject.kind == &classifier_kind;
    if (r->figure || r->target)
        return sb_fail("--%s is for encoder-decoders; leave it out for a page on this model",
                       r->figure ? "figure" : "target");
    if (r->data && !classifier)
        return sb_fail("--data is for the confusion table of a classifier; softback evaluate "
                       "measures a language model");
    if (!text_subject_open(&subject, c, r->text))
        return NULL;
    char *text =
        !classifier || report_confuse(r, c, &confusion)
            ? text_report_page(&subject, name, r->text, confusion.texts > 0 ? &confusion : NULL,
                               log, report_data_hash(r->model))
            : NULL;
    confusion_free(&confusion);
    text_subject_close(&subject);
    return text;
}

/* Without --input: a held-out text of the model's task, or of --data. */
static char *report_text(const struct report_request *r, const struct checkpoint *c)
{
    if (r->text)
        return memory_text(r->text);
    if (!c->model || !(r->data || c->task[0]))
        return sb_fail("report: no --input and no task whose held-out texts could be taken; give "
                       "--input TEXT");
    sb_pairs *pairs = report_pairs(r, c);
    char *text = pairs ? memory_text(sb_pairs_source(pairs, 0)) : NULL;
    sb_pairs_free(pairs);
    return text;
}

/* The page or the figure; NULL, with a message, when it cannot be made. */
static char *report_make(const struct report_request *r, const struct run_log *log)
{
    char *name = report_name_of(r->model);
    struct checkpoint *c = name ? checkpoint_load_any(r->model) : sb_fail("report: out of memory");
    char *input = c ? report_text(r, c) : NULL, *text = NULL;
    if (input) {
        struct report_request with_text = *r;
        with_text.text = input;
        text = c->model ? report_of_pair(&with_text, name, log)
                        : report_of_text(&with_text, c, name, log);
    }
    memory_free(input);
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
    char *log_path = r->log ? memory_text(r->log) : path_beside(r->model, "", ".jsonl");
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
