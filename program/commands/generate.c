/* softback generate: what a language model writes after a prompt. */
#include "models/training/checkpoint.h"
#include "program/options/options.h"
#include "program/run/kind.h"
#include "program/screen/stream.h"
#include "tensor/memory.h"
#include <stdio.h>

enum { USUAL_LENGTH = 400 };

struct generate_request {
    sb_decoding_options decoding;
    int64_t count;
    bool greedy;
    bool lines; /* each text is one line, as those that the model was trained on */
    const char *path, *base, *prompt;
};

#define ROW(member) FIELD(struct generate_request, member)

static const struct field generate_fields[] = {
    {"length", ROW(decoding.longest), "maximum number of symbols (tokens) to write [400]", 1,
     1 << 24},
    {"count", ROW(count), "number of texts, sampled independently [1]", 1, 1 << 20},
    {.rows = weights_fields, .at = offsetof(struct generate_request, decoding)},
    {"batch", ROW(decoding.batch_pairs), "texts written together; results do not depend on it [64]",
     1, 1 << 16},
    {BASE_FIELD(struct generate_request)},
    {HEADING("Sampling:")},
    {"greedy", ROW(greedy), "always take the most probable symbol"},
    {.rows = sampling_fields, .at = offsetof(struct generate_request, decoding)},
    {HEADING("")},
    {.rows = machine_fields},
    {ARGUMENT, ROW(path)},
    {ARGUMENT, ROW(prompt), "quote a prompt of several words"},
    {0}};
#undef ROW

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

static bool generate_print(const struct generate_request *r, const sb_language_model *model,
                           int64_t n, const sb_decoded d[])
{
    struct stream stream;
    const sb_vocabulary *vocabulary = sb_language_model_vocabulary(model);
    const bool running = sb_language_model_options_of(model)->running_text,
               breaks = sb_vocabulary_units(vocabulary) != SB_UNITS_IDS &&
                        unknown_count(vocabulary, "\n") == 0;
    bool ok = true;
    for (int64_t i = 0; ok && i < n; i++) {
        if (running || (breaks && !r->lines))
            printf("--- %lld ---\n", (long long)i + 1);
        ok = stream_begin(&stream, vocabulary, r->prompt, r->lines);
        for (int64_t t = 0; ok && t < d[i].length; t++)
            ok = stream_listen(&stream, i, d[i].ids[t]);
        ok = ok && stream_end(&stream);
        putchar('\n');
    }
    return ok;
}

/* One text is shown while it is written; several are written together, each with draws of its own.
 */
static bool generate_texts(const struct generate_request *r, const sb_language_model *model,
                           const char *start, sb_decoded *d)
{
    struct stream stream;
    const bool alone = r->count == 1;
    sb_decoding_options o = r->decoding;
    const char **texts = memory_new((size_t)r->count * sizeof *texts);
    for (int64_t i = 0; texts && i < r->count; i++)
        texts[i] = start;
    bool ok = texts || sb_fail("out of memory for %lld texts", (long long)r->count);
    if (ok && alone) {
        o.listen = stream_listen;
        o.listener = &stream;
        ok = stream_begin(&stream, sb_language_model_vocabulary(model), r->prompt, r->lines);
    }
    ok = ok && sb_continue_texts(model, texts, r->count, &o, d) &&
         (alone ? stream_end(&stream) : generate_print(r, model, r->count, d));
    if (alone)
        putchar('\n');
    memory_free(texts);
    return ok;
}

static bool generate_check(const struct options *o, const struct generate_request *r)
{
    const char *sampling = options_given(o, OF_SAMPLING);
    return (r->path || command_misused("a model's file is expected")) &&
           (!r->greedy || (!sampling && r->count == 1) ||
            command_misused("--%s is for sampling, which --greedy turns off",
                            sampling ? sampling : "count"));
}

static bool generate_run(struct options *o)
{
    struct generate_request r = {.count = 1, .prompt = "", .decoding.longest = USUAL_LENGTH};
    if (!options_read(o, &r) || !generate_check(o, &r))
        return false;
    struct checkpoint *c = checkpoint_open(r.path, &(struct checkpoint_options){.base = r.base});
    const sb_language_model *model = c ? c->subject.self : NULL;
    sb_decoded *d = memory_new((size_t)r.count * sizeof *d);
    bool ok = c && training_kind_check(c, r.path, &training_language_model) &&
              (d || sb_fail("out of memory for %lld texts", (long long)r.count));
    if (ok) {
        r.decoding.sample = !r.greedy;
        r.lines = c->settings.documents == SB_DOCUMENTS_LINES || c->task[0];
        unknown_note("the prompt", sb_language_model_vocabulary(model), r.prompt);
        ok = generate_texts(&r, model, generate_start(model, r.prompt), d);
        if (ok) {
            fflush(stdout);
            generate_explain(&r, model, d);
        }
        sb_decoded_free(r.count, d);
    }
    memory_free(d);
    checkpoint_free(c);
    return ok || command_failed();
}

const struct command command_generate = {
    .summary = "continues a prompt with a language model",
    .arguments = "MODEL [PROMPT]",
    .help = "Continues a prompt with a language model.\vA text ends where the model ends it, or "
            "after --length symbols (tokens). Beyond the model's context each symbol is predicted "
            "from the most recent ones alone, with a warning. A model of --documents lines writes "
            "one line for each text: line ends and control characters are written as \\n, \\r, "
            "\\x1b. Several texts that may have several lines are numbered.",
    .fields = generate_fields,
    .run = generate_run,
};
