/* softback evaluate */
#include "program/kinds/evaluate.h"
#include "program/kinds/pattern.h"
#include "program/run/kind.h"
#include "program/screen/base_option.h"
#include "program/screen/command.h"
#include "program/screen/decoding_options.h"
#include "program/screen/options.h"
#include <string.h>

enum { KEY_DATA = 1, KEY_TASK, KEY_COUNT, KEY_JSON, KEY_SHOW };

static error_t evaluate_parse(int key, char *argument, struct argp_state *state)
{
    struct evaluate_request *r = state->input;
    switch (key) {
    case KEY_DATA:
        r->data = argument;
        return 0;
    case KEY_TASK:
        r->task =
            strcmp(argument, pattern_task) == 0 ? pattern_task : options_task(state, argument);
        return 0;
    case KEY_COUNT:
        r->count = options_count(state, "count", argument, 1, 1 << 24);
        return 0;
    case KEY_JSON:
        r->json = true;
        return 0;
    case KEY_SHOW:
        r->show = options_count(state, "show", argument, 0, 1 << 24);
        return 0;
    case KEY_BASE:
        r->base = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (r->path)
            options_refuse(state, "unexpected argument \"%s\"; give one model", argument);
        r->path = argument;
        return 0;
    default:
        return decoding_option(key, argument, state, &r->decoding);
    }
}

static int evaluate(const struct evaluate_request *r)
{
    struct checkpoint *c = checkpoint_open(r->path, &(struct checkpoint_options){.base = r->base});
    const struct training_kind *kind = c ? training_kind_of(c->subject.kind) : NULL;
    const bool ok = c && (kind ? kind->evaluate(r, c)
                               : sb_fail("%s: a model of kind \"%s\" cannot be evaluated here",
                                         r->path, c->subject.kind->name) != NULL);
    checkpoint_free(c);
    return ok ? EXIT_OK : command_failed("evaluate");
}

static int evaluate_run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"data", KEY_DATA, "FILE", 0,
         "evaluate on a TSV file: lines of source, tab, target; for a language model on a text", 0},
        {"task", KEY_TASK, "NAME", 0, "evaluate on held-out pairs of a built-in task", 0},
        {"count", KEY_COUNT, "N", 0, "number of pairs of --task [1000]", 0},
        {"json", KEY_JSON, NULL, 0, "print the numbers as JSON", 0},
        {"show", KEY_SHOW, "N", 0, "show the N worst errors", 0},
        BASE_OPTION(0),
        DECODING_OPTIONS,
        {0}};
    const struct argp argp = {
        options,
        evaluate_parse,
        "MODEL --data FILE\nMODEL --task NAME",
        "Measures loss and error rates of a model on data that it was not trained on.",
        NULL,
        NULL,
        NULL};
    struct evaluate_request request = {.count = 1000};
    int wrong = command_parse(&argp, "evaluate", argc, argv, &request);
    if (wrong >= 0)
        return wrong;
    if (!request.path || !request.data == !request.task)
        return command_misused("evaluate", request.path ? "give either --data FILE or --task NAME"
                                                        : "give a model file");
    return decoding_check("evaluate", &request.decoding) ? evaluate(&request) : EXIT_USAGE;
}

const struct command command_evaluate = {"evaluate", "measures loss, error rates and BLEU",
                                         evaluate_run};
