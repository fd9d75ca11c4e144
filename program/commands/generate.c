/* softback generate: what a language model writes after a prompt. */
#include "models/language_kind.h"
#include "models/training/checkpoint.h"
#include "program/run/kind.h"
#include "program/screen/base_option.h"
#include "program/screen/command.h"
#include "program/screen/decoding_options.h"
#include "program/screen/options.h"
#include "program/screen/stream.h"
#include "program/screen/unknown.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <string.h>

enum { KEY_COUNT = 1, KEY_LENGTH, KEY_GREEDY, USUAL_LENGTH = 400 };

struct generate_request {
    sb_decoding_options decoding;
    int64_t count;
    bool greedy;
    const char *path, *base, *prompt;
};

static error_t generate_parse(int key, char *argument, struct argp_state *state)
{
    struct generate_request *r = state->input;
    switch (key) {
    case KEY_COUNT:
        r->count = options_count(state, "count", argument, 1, 1 << 20);
        return 0;
    case KEY_LENGTH:
        r->decoding.longest = options_count(state, "length", argument, 1, 1 << 24);
        return 0;
    case KEY_GREEDY:
        r->greedy = true;
        return 0;
    case KEY_BASE:
        r->base = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (r->prompt)
            options_refuse(state,
                           "unexpected argument \"%s\"; quote a prompt of "
                           "several words",
                           argument);
        *(r->path ? &r->prompt : &r->path) = argument;
        return 0;
    default:
        return decoding_option(key, argument, state, &r->decoding);
    }
}

static const sb_language_model *generate_model(const struct checkpoint *c, const char *path)
{
    const struct training_kind *kind = training_kind_of(c->subject.kind);
    if (c->subject.kind == &language_model_kind)
        return c->subject.self;
    return sb_fail("%s is %s, expected a language model (softback train --model language)%s", path,
                   kind ? kind->title : c->subject.kind->name,
                   kind == &training_seq2seq ? "; softback translate runs an encoder-decoder" : "");
}

/* What the model reads for a prompt. A text that never begins can only be entered at a line. */
static const char *generate_start(const sb_language_model *model, const char *prompt)
{
    const sb_vocabulary *vocabulary = sb_language_model_vocabulary(model);
    const bool running = sb_language_model_options_of(model)->running_text;
    return !prompt[0] && running && unknown_count(vocabulary, "\n") == 0 ? "\n" : prompt;
}

/* Why a text stops or forgets, unless it ended by itself or by its length. */
static void generate_explain(const struct generate_request *r, const sb_language_model *model,
                             const sb_decoded *d)
{
    const sb_language_model_options *o = sb_language_model_options_of(model);
    if (d->slid)
        fprintf(stderr,
                "softback generate: the text is longer than the context of %lld symbols; each "
                "symbol beyond it is predicted from only the last %lld to %lld\n",
                (long long)o->context, (long long)(o->context + 1) / 2, (long long)o->context);
    if (!d->ended && d->length < r->decoding.longest)
        fprintf(stderr,
                "softback generate: the text ends after %lld symbols, where the model has no more "
                "positions\n",
                (long long)d->length);
}

/* One text, shown while it is written. */
static bool generate_one(const struct generate_request *r, const sb_language_model *model,
                         const char *start, sb_decoded *d)
{
    struct stream stream;
    sb_decoding_options o = r->decoding;
    o.listen = stream_listen;
    o.listener = &stream;
    stream_print(r->prompt);
    const bool ok = stream_begin(&stream, sb_language_model_vocabulary(model), r->prompt) &&
                    sb_continue_texts(model, &start, 1, &o, d) && stream_end(&stream);
    putchar('\n');
    return ok;
}

static bool generate_print(const struct generate_request *r, const sb_language_model *model,
                           int64_t n, const sb_decoded d[])
{
    struct stream stream;
    const bool running = sb_language_model_options_of(model)->running_text;
    bool ok = true;
    for (int64_t i = 0; ok && i < n; i++) {
        if (running)
            printf("--- %lld ---\n", (long long)i + 1);
        stream_print(r->prompt);
        ok = stream_begin(&stream, sb_language_model_vocabulary(model), r->prompt);
        for (int64_t t = 0; ok && t < d[i].length; t++)
            ok = stream_listen(&stream, i, d[i].ids[t]);
        ok = ok && stream_end(&stream);
        putchar('\n');
    }
    return ok;
}

/* Several texts, written together, each with draws of its own. */
static bool generate_many(const struct generate_request *r, const sb_language_model *model,
                          const char *start, sb_decoded *d)
{
    const char **texts = memory_new((size_t)r->count * sizeof *texts);
    for (int64_t i = 0; texts && i < r->count; i++)
        texts[i] = start;
    const bool ok = (texts || sb_fail("out of memory for %lld texts", (long long)r->count)) &&
                    sb_continue_texts(model, texts, r->count, &r->decoding, d) &&
                    generate_print(r, model, r->count, d);
    memory_free(texts);
    return ok;
}

static int generate(const struct generate_request *r)
{
    struct checkpoint *c = checkpoint_open(r->path, &(struct checkpoint_options){.base = r->base});
    const sb_language_model *model = c ? generate_model(c, r->path) : NULL;
    sb_decoded *d = model ? memory_new((size_t)r->count * sizeof *d) : NULL;
    bool ok = d != NULL;
    if (model && !d)
        sb_fail("out of memory for %lld texts", (long long)r->count);
    if (ok) {
        const char *start = generate_start(model, r->prompt);
        unknown_note("generate", "the prompt", sb_language_model_vocabulary(model), r->prompt);
        memset(d, 0, (size_t)r->count * sizeof *d);
        ok = (r->count == 1 ? generate_one : generate_many)(r, model, start, d);
        if (ok) {
            fflush(stdout);
            generate_explain(r, model, d);
        }
        sb_decoded_free(r->count, d);
    }
    memory_free(d);
    checkpoint_free(c);
    return ok ? EXIT_OK : command_failed("generate");
}

static int generate_check(struct generate_request *r)
{
    const sb_decoding_options *o = &r->decoding;
    const char *of_sampling = o->temperature > 0 ? "temperature"
                              : o->top_k > 0     ? "top-k"
                              : o->top_p > 0     ? "top-p"
                              : o->seed > 0      ? "seed"
                              : r->count > 1     ? "count"
                                                 : NULL;
    if (!r->path)
        return command_misused("generate", "a model's file is expected");
    if (r->greedy && of_sampling)
        return command_misused("generate", "--%s is for sampling, which --greedy turns off",
                               of_sampling);
    r->prompt = r->prompt ? r->prompt : "";
    r->decoding.sample = !r->greedy;
    r->decoding.longest = o->longest ? o->longest : USUAL_LENGTH;
    return -1;
}

static int generate_run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"length", KEY_LENGTH, "N", 0, "maximum number of symbols (tokens) to write [400]", 0},
        {"count", KEY_COUNT, "N", 0, "number of texts, sampled independently [1]", 0},
        WEIGHTS_OPTION(0),
        {"batch", KEY_BATCH, "N", 0, "texts written together; results do not depend on it [64]", 0},
        BASE_OPTION(0),
        {.doc = "Sampling:", .group = 1},
        {"temperature", KEY_TEMPERATURE, "X", 0,
         "divide the logits by X: below 1 sharpens the distribution [1]", 1},
        {"top-k", KEY_TOP_K, "N", 0, "sample from the N most probable symbols", 1},
        {"top-p", KEY_TOP_P, "X", 0,
         "nucleus sampling: from the most probable symbols with total probability X", 1},
        {"seed", KEY_SEED, "N", 0, "random seed; equal seeds give equal texts [0]", 1},
        {"greedy", KEY_GREEDY, NULL, 0, "always take the most probable symbol", 1},
        MACHINE_OPTIONS(2),
        {0}};
    const struct argp argp = {options,
                              generate_parse,
                              "MODEL [PROMPT]",
                              "Continues a prompt with a language model.\vA text ends where the "
                              "model ends it, or after --length symbols (tokens). Beyond the "
                              "model's context each symbol is predicted from the most recent ones "
                              "alone, with a warning.",
                              NULL,
                              NULL,
                              NULL};
    struct generate_request request = {.count = 1};
    int wrong = command_parse(&argp, "generate", argc, argv, &request);
    wrong = wrong < 0 ? generate_check(&request) : wrong;
    return wrong < 0 ? generate(&request) : wrong;
}

const struct command command_generate = {"generate", "continues a prompt with a language model",
                                         generate_run};
