/* softback evaluate */
#include "program/options/options.h"
#include "program/run/kind.h"
#include <string.h>

#define ROW(member) FIELD(struct evaluate_request, member)

static const struct field evaluate_fields[] = {
    {"data", ROW(data),
     "evaluate on a TSV file: lines of source, tab, target; for a language model on a text",
     .argument = "FILE"},
    {"task", ROW(task), "evaluate on held-out pairs of a built-in task", .argument = "NAME",
     .take = training_take_task},
    {"count", ROW(count), "number of pairs of --task [1000]", 1, 1 << 24},
    {"json", ROW(json), "print the numbers as JSON"},
    {"show", ROW(show), "show the N worst errors", 0, 1 << 24},
    {BASE_FIELD(struct evaluate_request)},
    {.rows = decoding_fields, .at = offsetof(struct evaluate_request, decoding)},
    {ARGUMENT, ROW(path), "give one model"},
    {0}};
#undef ROW

static bool evaluate_run(struct options *o)
{
    struct evaluate_request r = {.count = 1000};
    if (!options_read(o, &r))
        return false;
    if (!r.path || !r.data == !r.task)
        return command_misused(r.path ? "give either --data FILE or --task NAME"
                                      : "give a model file");
    struct checkpoint *c = checkpoint_open(r.path, &(struct checkpoint_options){.base = r.base});
    json_t *json = NULL;
    const bool ok = c && training_kind_of(c)->evaluate(&r, c, &json);
    if (json) {
        json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        putchar('\n');
        json_decref(json);
    }
    checkpoint_free(c);
    return ok || command_failed();
}

const struct command command_evaluate = {
    .summary = "measures loss, error rates and BLEU",
    .arguments = "MODEL --data FILE\nMODEL --task NAME",
    .help = "Measures loss and error rates of a model on data that it was not trained on.",
    .fields = evaluate_fields,
    .run = evaluate_run,
};
