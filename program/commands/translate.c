/* softback translate */
#include "models/kinds.h"
#include "models/training/checkpoint.h"
#include "program/commands/translate_lines.h"
#include "program/options/decoding.h"
#include "program/run/task_pairs.h"
#include "program/screen/foreign.h"
#include "program/screen/unknown.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>

struct translate_request {
    sb_decoding_options decoding;
    const char *task;
    int64_t count;
    const char *path, *base;
    char **texts;
    int texts_count;
};

enum { OF_SAMPLING = 1 };

static void translate_options(struct options *o, struct translate_request *r)
{
    sb_decoding_options *d = &r->decoding;
    option_task(o, &r->task, NULL, "translate held-out pairs of a built-in task");
    option_count(o, "count", &r->count, 1, 1 << 20, "number of pairs of --task [10]");
    option_base(o, &r->base);
    options_of_decoding(o, d);
    option_group(o, "Sampling:");
    option_flag(o, "sample", &d->sample, "sample each symbol by its probability");
    options_of_sampling(o, d, OF_SAMPLING);
    options_arguments(o, &r->path, NULL, NULL);
    options_rest(o, &r->texts, &r->texts_count);
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
    sb_pairs *pairs = task_pairs(r->task, &c->settings, SB_PART_TEST, r->count);
    char **output = pairs ? memory_new((size_t)r->count * sizeof *output) : NULL;
    bool ok = output && sb_translate_texts(c->subject.self, sb_pairs_sources(pairs), r->count,
                                           &r->decoding, output);
    for (int64_t i = 0; ok && i < r->count; i++) {
        bool right = strcmp(output[i], sb_pairs_target(pairs, i)) == 0;
        printf("  %-32s -> %s%s\n", sb_pairs_source(pairs, i), foreign(foreign_line(output[i])),
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

static int translate_run(struct options *o)
{
    struct translate_request request = {.count = 10};
    translate_options(o, &request);
    const int wrong = options_read(o);
    if (wrong >= 0)
        return wrong;
    if (!request.path)
        return command_misused("translate", "give a model file");
    if (request.task && request.texts_count)
        return command_misused("translate", "give either texts or --task, not both");
    if (!request.decoding.sample && options_given(o, OF_SAMPLING))
        return command_misused("translate", "--%s needs --sample", options_given(o, OF_SAMPLING));
    if (request.decoding.sample && request.decoding.beam_width > 1)
        return command_misused("translate", "--sample and --beam cannot be combined; use one");
    return translate(&request);
}

const struct command command_translate = {
    .name = "translate",
    .summary = "writes a model's outputs for texts",
    .arguments = "MODEL [TEXT...]\nMODEL --task NAME",
    .help = "Writes a model's output for each text, or for each line of the standard input.\vEach "
            "output is one line: line ends and control characters are written as \\n, \\r, \\x1b.",
    .run = translate_run,
};
