/* softback evaluate */
#include "program/options/decoding.h"
#include "program/run/kind.h"
#include <string.h>

static void evaluate_options(struct options *o, struct evaluate_request *r)
{
    option_text(o, "data", "FILE", &r->data,
                "evaluate on a TSV file: lines of source, tab, target; for a language model on a "
                "text");
    option_task(o, &r->task, training_classifier.task,
                "evaluate on held-out pairs of a built-in task");
    option_count(o, "count", &r->count, 1, 1 << 24, "number of pairs of --task [1000]");
    option_flag(o, "json", &r->json, "print the numbers as JSON");
    option_count(o, "show", &r->show, 0, 1 << 24, "show the N worst errors");
    option_base(o, &r->base);
    options_of_decoding(o, &r->decoding);
    options_arguments(o, &r->path, NULL, "give one model");
}

static int evaluate(const struct evaluate_request *r)
{
    struct checkpoint *c = checkpoint_open(r->path, &(struct checkpoint_options){.base = r->base});
    const struct training_kind *kind = c ? training_kind_of(c->subject.kind) : NULL;
    json_t *json = NULL;
    const bool ok = c && (kind ? kind->evaluate(r, c, &json)
                               : sb_fail("%s: a model of kind \"%s\" cannot be evaluated here",
                                         r->path, c->subject.kind->name) != NULL);
    if (json) {
        json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        putchar('\n');
        json_decref(json);
    }
    checkpoint_free(c);
    return ok ? EXIT_OK : command_failed("evaluate");
}

static int evaluate_run(struct options *o)
{
    struct evaluate_request request = {.count = 1000};
    evaluate_options(o, &request);
    const int wrong = options_read(o);
    if (wrong >= 0)
        return wrong;
    if (!request.path || !request.data == !request.task)
        return command_misused("evaluate", request.path ? "give either --data FILE or --task NAME"
                                                        : "give a model file");
    return evaluate(&request);
}

const struct command command_evaluate = {
    .name = "evaluate",
    .summary = "measures loss, error rates and BLEU",
    .arguments = "MODEL --data FILE\nMODEL --task NAME",
    .help = "Measures loss and error rates of a model on data that it was not trained on.",
    .run = evaluate_run,
};
