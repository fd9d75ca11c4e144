/* softback report: a model on one page of HTML. */
#include "program/run/report.h"
#include "program/screen/command.h"
#include "program/screen/foreign.h"
#include "program/screen/machine_options.h"
#include "program/screen/options.h"
#include "tensor/memory.h"
#include <stdio.h>

enum { KEY_INPUT = 1, KEY_TARGET, KEY_DATA, KEY_LOG, KEY_OUT, KEY_FIGURE };

static error_t report_parse(int key, char *argument, struct argp_state *state)
{
    struct report_request *r = state->input;
    switch (key) {
    case KEY_INPUT:
        r->text = argument;
        return 0;
    case KEY_TARGET:
        r->target = argument;
        return 0;
    case KEY_DATA:
        r->data = argument;
        return 0;
    case KEY_LOG:
        r->log = argument;
        return 0;
    case KEY_OUT:
        r->out = argument;
        return 0;
    case KEY_FIGURE:
        r->figure = figure_named(argument);
        if (r->figure == NO_FIGURE)
            options_fail(state);
        return 0;
    case ARGP_KEY_ARG:
        if (r->other)
            options_refuse(state, "unexpected argument \"%s\"; give one model, or two to compare",
                           argument);
        *(r->model ? &r->other : &r->model) = argument;
        return 0;
    default:
        return machine_option(key, argument, state);
    }
}

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
    return r->text || r->target || r->log || r->figure || r->data
               ? "runs are compared: only --out is possible"
               : NULL;
}

static int report_run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"input", KEY_INPUT, "TEXT", 0,
         "text for attention weights and tape: a source [a held-out text of "
         "the model's task]",
         0},
        {"target", KEY_TARGET, "TEXT", 0, "target text [the model's output]", 0},
        {"data", KEY_DATA, "FILE", 0,
         "held-out pairs, to show errors; texts with labels for a classifier's confusion table "
         "[those of the task]",
         0},
        {"log", KEY_LOG, "FILE", 0, "log of the training [MODEL's path, with .jsonl]", 0},
        {"out", KEY_OUT, "FILE", 0,
         "write the page to FILE [MODEL's path, with .html; FOLDER/report.html]", 0},
        {"figure", KEY_FIGURE, "WORD", 0,
         "print only one figure, as SVG: attention, alignment or loss", 0},
        MACHINE_OPTIONS(0),
        {0}};
    const struct argp argp = {
        options,
        report_parse,
        "MODEL [--input TEXT]\nMODEL MODEL --out FILE\nFOLDER",
        "Writes one page of HTML on a model: whether its training is good, its curves, its "
        "attention weights for a text, and, for an encoder-decoder, its errors and the tape of "
        "that text's loss. Of two models, of any kind, or of all in a folder that have their log "
        "beside them, it writes a page that compares them.",
        NULL,
        NULL,
        NULL};
    struct report_request request = {0};
    int wrong = command_parse(&argp, "report", argc, argv, &request);
    if (wrong >= 0)
        return wrong;
    if (report_misuse(&request))
        return command_misused("report", "%s", report_misuse(&request));
    char *path = report_path(&request);
    const bool ok = !path                       ? sb_fail("report: out of memory") != NULL
                    : report_compares(&request) ? report_compare(&request)
                                                : report_write(&request);
    if (ok && (!request.figure || request.out))
        printf(request.figure ? "figure     %s\n" : "report     %s\n", foreign(path));
    memory_free(path);
    return ok ? EXIT_OK : command_failed("report");
}

const struct command command_report = {"report", "writes a page of HTML on a model", report_run};
