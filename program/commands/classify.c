/* softback classify: the label that a classifier gives to each text. */
#include "models/training/checkpoint.h"
#include "program/options/options.h"
#include "program/run/kind.h"
#include "program/screen/stream.h"
#include "tensor/utf8.h"
#include <stdio.h>

struct classify_request {
    const char *path, *base;
    struct texts texts;
};

static const struct field classify_fields[] = {{BASE_FIELD(struct classify_request)},
                                               {.rows = machine_fields},
                                               {ARGUMENT, FIELD(struct classify_request, path)},
                                               {ARGUMENTS(struct classify_request, texts)},
                                               {0}};

/* "label, tab, probability, tab, text". */
static bool classify_one(const sb_classifier *model, const char *where, const char *text)
{
    sb_class class;
    if (!sb_classify(model, &text, 1, &class))
        return false;
    unknown_note(where, sb_classifier_vocabulary(model), text);
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
    input_refuse(lines->number, problem.text[0] ? problem.text : sb_error());
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

static bool classify_run(struct options *o)
{
    struct classify_request r = {0};
    if (!options_read(o, &r))
        return false;
    if (!r.path)
        return command_misused("a model's file is expected");
    struct checkpoint *c = checkpoint_open(r.path, &(struct checkpoint_options){.base = r.base});
    const sb_classifier *model = c ? c->subject.self : NULL;
    bool ok = c && training_kind_check(c, r.path, &training_classifier);
    for (int i = 0; ok && i < r.texts.count; i++)
        ok = classify_one(model, utf8_quote(r.texts.text[i]).text, r.texts.text[i]);
    ok = ok && (r.texts.count > 0 || classify_lines(model));
    checkpoint_free(c);
    return ok || command_failed();
}

const struct command command_classify = {
    .summary = "gives texts their labels",
    .arguments = "MODEL [TEXT...]",
    .help = "Prints the label, its probability and the text, for each text or each line of the "
            "standard input.",
    .fields = classify_fields,
    .run = classify_run,
};
