/* softback report: a model on one page of HTML. */
#include "program/run/report.h"
#include "program/options/options.h"
#include "program/screen/foreign.h"
#include <stdio.h>

static bool report_take_figure(const struct field *field, void *request, const char *name)
{
    struct report_request *r = request;
    (void)field;
    return (r->figure = figure_named(name)) != NO_FIGURE;
}

#define ROW(member) FIELD(struct report_request, member)

static const struct field report_fields[] = {
    {"input", ROW(page.text),
     "text for attention weights and tape: a source [a held-out text of the model's task]",
     .argument = "TEXT"},
    {"target", ROW(target), "target text [the model's output]", .argument = "TEXT"},
    {"data", ROW(data),
     "held-out pairs, to show errors; texts with labels for a classifier's confusion table [those "
     "of the task]",
     .argument = "FILE"},
    {"log", ROW(log), "log of the training [MODEL's path, with .jsonl]", .argument = "FILE"},
    {"out", ROW(out), "write the page to FILE [MODEL's path, with .html; FOLDER/report.html]",
     .argument = "FILE"},
    {"figure", FIELD_OTHER, .take = report_take_figure, .argument = "WORD",
     .help = "print only one figure, as SVG: attention, alignment or loss"},
    {.rows = machine_fields},
    {ARGUMENT, ROW(model)},
    {ARGUMENT, ROW(other), "give one model, or two to compare"},
    {0}};
#undef ROW

static bool report_compares(const struct report_request *r)
{
    return r->other || report_is_folder(r->model);
}

/* The three ways to ask; the message says what is missing. */
static const char *report_misuse(const struct report_request *r)
{
    if (!r->model)
        return "give a model file, two model files and --out FILE, or a folder";
    if (!report_compares(r))
        return NULL;
    if (r->other && !r->out)
        return "two models are compared: give --out FILE";
    return r->page.text || r->target || r->log || r->figure || r->data
               ? "runs are compared: only --out is possible"
               : NULL;
}

static bool report_run(struct options *o)
{
    struct report_request request = {0};
    if (!options_read(o, &request))
        return false;
    if (report_misuse(&request))
        return command_misused("%s", report_misuse(&request));
    const bool ok = (report_compares(&request) ? report_compare : report_write)(&request);
    if (ok && (!request.figure || request.out))
        printf(request.figure ? "figure     %s\n" : "report     %s\n",
               foreign(report_path(&request).text));
    return ok || command_failed();
}

const struct command command_report = {
    .summary = "writes a page of HTML on a model",
    .arguments = "MODEL [--input TEXT]\nMODEL MODEL --out FILE\nFOLDER",
    .help = "Writes one page of HTML on a model: whether its training is good, its curves, its "
            "attention weights for a text, and, for an encoder-decoder, its errors and the tape of "
            "that text's loss. Of two models, of any kind, or of all in a folder that have their "
            "log beside them, it writes a page that compares them.",
    .fields = report_fields,
    .run = report_run,
};
