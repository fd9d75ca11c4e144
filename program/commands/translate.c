/* softback translate */
#include "models/seq2seq_kind.h"
#include "models/training/checkpoint.h"
#include "program/commands/translate_lines.h"
#include "program/run/training.h"
#include "program/screen/base_option.h"
#include "program/screen/command.h"
#include "program/screen/decoding_options.h"
#include "program/screen/foreign.h"
#include "program/screen/options.h"
#include "program/screen/unknown.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>

enum { KEY_TASK = 1, KEY_COUNT };

struct translate_request {
    sb_decoding_options decoding;
    const char *task;
    int64_t count;
    const char *path, *base;
    char **texts;
    int texts_count;
};

static error_t translate_parse(int key, char *argument, struct argp_state *state)
{
    struct translate_request *r = state->input;
    switch (key) {
    case KEY_TASK:
        r->task = options_task(state, argument);
        return 0;
    case KEY_COUNT:
        r->count = options_count(state, "count", argument, 1, 1 << 20);
        return 0;
    case KEY_BASE:
        r->base = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (r->path)
            return ARGP_ERR_UNKNOWN; /* argp passes all texts together, below */
        r->path = argument;
        return 0;
    case ARGP_KEY_ARGS:
        r->texts = state->argv + state->next;
        r->texts_count = state->argc - state->next;
        return 0;
    default:
        return decoding_option(key, argument, state, &r->decoding);
    }
}

static bool translate_arguments(const struct translate_request *r, const sb_seq2seq *model)
{
    const char *const *texts = (const char *const *)r->texts;
    char **output = memory_new((size_t)r->texts_count * sizeof *output);
    bool ok = output ? sb_translate_texts(model, texts, r->texts_count, &r->decoding, output)
                     : sb_fail("out of memory") != NULL;
    for (int i = 0; ok && i < r->texts_count; i++) {
        unknown_note("translate", utf8_quote(texts[i]).text, sb_seq2seq_source(model), texts[i]);
        translate_print(output[i]);
        sb_free(output[i]);
    }
    memory_free(output);
    return ok;
}

/* Held-out pairs of a task, each with the model's output. */
static bool translate_task(const struct translate_request *r, const struct checkpoint *c)
{
    sb_pairs *pairs = training_task_pairs(r->task, &c->settings, SB_PART_TEST, r->count);
    char **output = pairs ? memory_new((size_t)r->count * sizeof *output) : NULL;
    bool ok = output && sb_translate_texts(c->subject.self, sb_pairs_sources(pairs), r->count,
                                           &r->decoding, output);
    for (int64_t i = 0; ok && i < r->count; i++) {
        bool right = strcmp(output[i], sb_pairs_target(pairs, i)) == 0;
        printf("  %-32s -> %s%s\n", sb_pairs_source(pairs, i), foreign(output[i]),
               right ? "" : "   wrong");
        sb_free(output[i]);
    }
    if (pairs && !output)
        sb_fail("out of memory");
    memory_free(output);
    sb_pairs_free(pairs);
    return ok;
}

static int translate(const struct translate_request *r)
{
    const struct checkpoint_options options = {.kind = &seq2seq_kind, .base = r->base};
    struct checkpoint *c = checkpoint_open(r->path, &options);
    bool ok = c && (r->task          ? translate_task(r, c)
                    : r->texts_count ? translate_arguments(r, c->subject.self)
                                     : translate_lines(c->subject.self, &r->decoding));
    checkpoint_free(c);
    return ok ? EXIT_OK : command_failed("translate");
}

static int translate_run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"task", KEY_TASK, "NAME", 0, "translate held-out pairs of a built-in task", 0},
        {"count", KEY_COUNT, "N", 0, "number of pairs of --task [10]", 0},
        BASE_OPTION(0),
        DECODING_OPTIONS,
        {.doc = "Sampling:", .group = 2},
        {"sample", KEY_SAMPLE, NULL, 0, "sample each symbol by its probability", 2},
        {"temperature", KEY_TEMPERATURE, "X", 0,
         "divisor of the logits; below 1: sharper distribution [1]", 2},
        {"top-k", KEY_TOP_K, "N", 0, "sample only among the N most probable symbols", 2},
        {"top-p", KEY_TOP_P, "X", 0, "sample only among the fewest with total probability X", 2},
        {"seed", KEY_SEED, "N", 0, "seed of the samples [0]", 2},
        {0}};
    const struct argp argp = {options,
                              translate_parse,
                              "MODEL [TEXT...]\nMODEL --task NAME",
                              "Writes a model's output for each text, or for each line of the "
                              "standard input.",
                              NULL,
                              NULL,
                              NULL};
    struct translate_request request = {.count = 10};
    int wrong = command_parse(&argp, "translate", argc, argv, &request);
    if (wrong >= 0)
        return wrong;
    if (!request.path)
        return command_misused("translate", "give a model file");
    if (request.task && request.texts_count)
        return command_misused("translate", "give either texts or --task, not both");
    return decoding_check("translate", &request.decoding) ? translate(&request) : EXIT_USAGE;
}

const struct command command_translate = {"translate", "writes a model's outputs for texts",
                                          translate_run};
