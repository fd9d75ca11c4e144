/* softback classify: the label that a classifier gives to each text. */
#include "models/kinds.h"
#include "models/training/checkpoint.h"
#include "program/options/options.h"
#include "program/run/kind.h"
#include "program/screen/stream.h"
#include "tensor/failure.h"
#include "tensor/utf8.h"
#include <stdio.h>

struct classify_request {
    const char *path, *base;
    char **texts;
    int count;
};

static const struct field classify_fields[] = {
    {BASE_FIELD(struct classify_request)}, {.rows = machine_fields}, {0}};

static const sb_classifier *classify_model(const struct checkpoint *c, const char *path)
{
    const struct training_kind *kind = training_kind_of(c->subject.kind);
    if (c->subject.kind == &classifier_kind)
        return c->subject.self;
    return sb_fail("%s is %s, expected a classifier (softback train --model classifier)", path,
                   kind ? kind->title : c->subject.kind->name);
}

/* "label, tab, probability, tab, text". */
static bool classify_one(const sb_classifier *model, const char *where, const char *text)
{
    sb_class class;
    if (!sb_classify(model, &text, 1, &class))
        return false;
    unknown_note("classify", where, sb_classifier_vocabulary(model), text);
    stream_print(sb_classifier_label(model, class.label), true);
    printf("\t%.4f\t", class.probability);
    stream_print(text, true);
    putchar('\n');
    return true;
}

/* A line without an answer gets an empty one, so that the others keep their numbers. */
static bool classify_line(const sb_classifier *model, const struct lines *lines)
{
    const struct lines_problem problem = lines_problem(lines);
    char where[64];
    snprintf(where, sizeof where, INPUT ":%lld", (long long)lines->number);
    if (!problem.text[0] && classify_one(model, where, lines->text))
        return true;
    input_refuse("classify", lines->number, problem.text[0] ? problem.text : sb_error());
    putchar('\n');
    return false;
}

static bool classify_lines(const sb_classifier *model)
{
    struct lines lines;
    bool more = true;
    int64_t refused = 0;
    bool ok = input_begin(&lines);
    while (ok && (ok = lines_next(&lines, &more)) && more) {
        refused += !classify_line(model, &lines);
        fflush(stdout);
    }
    lines_end(&lines);
    return ok && (refused == 0 ||
                  sb_fail("lines that could not be classified: %lld", (long long)refused));
}

static int classify(const struct classify_request *r)
{
    struct checkpoint *c = checkpoint_open(r->path, &(struct checkpoint_options){.base = r->base});
    const sb_classifier *model = c ? classify_model(c, r->path) : NULL;
    bool ok = model != NULL;
    for (int i = 0; ok && i < r->count; i++)
        ok = classify_one(model, utf8_quote(r->texts[i]).text, r->texts[i]);
    ok = ok && (r->count > 0 || classify_lines(model));
    checkpoint_free(c);
    return ok ? EXIT_OK : command_failed("classify");
}

static int classify_run(struct options *o)
{
    struct classify_request request = {0};
    options_arguments(o, &request.path, NULL, NULL);
    options_rest(o, &request.texts, &request.count);
    const int wrong = options_read(o, &request);
    if (wrong >= 0)
        return wrong;
    if (!request.path)
        return command_misused("classify", "a model's file is expected");
    return classify(&request);
}

const struct command command_classify = {
    .name = "classify",
    .summary = "gives texts their labels",
    .arguments = "MODEL [TEXT...]",
    .help = "Prints the label, its probability and the text, for each text or each line of the "
            "standard input.",
    .fields = classify_fields,
    .run = classify_run,
};
