#include "models/decoding/generator.h"
#include "models/decoding/search.h"
#include "ops/linear_int8.h"
#include "ops/packed_weights.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The texts' symbols, padded: (n, *length). An empty text holds one symbol of padding, so that
   there is something to attend to, as in a batch of training. */
static int32_t *sequences_padded(int64_t n, const struct decoding_text texts[], int64_t *length)
{
    int64_t L = 1;
    for (int64_t i = 0; i < n; i++)
        L = texts[i].length > L ? texts[i].length : L;
    int32_t *ids = memory_new((size_t)(n * L) * sizeof *ids);
    for (int64_t i = 0; ids && i < n * L; i++) {
        const struct decoding_text *text = &texts[i / L];
        ids[i] = i % L < text->length ? text->ids[i % L] : SB_SYMBOL_PADDING;
    }
    *length = L;
    return ids ? ids : sb_fail("decode: out of memory");
}

static sb_tensor *sequences_tensor_of(int rank, const int64_t *dim, const int32_t *values)
{
    return sb_tape_own(sb_tensor_from(SB_I32, rank, dim, values));
}

/* Runs the encoder over the sources. */
static bool sequences_encode(struct sequences *s, const struct decoding_text texts[])
{
    int64_t n = s->count, L = 0;
    s->lengths = memory_new((size_t)n * sizeof *s->lengths);
    int32_t *ids = s->lengths ? sequences_padded(n, texts, &L) : sb_fail("decode: out of memory");
    if (!ids)
        return false;
    for (int64_t i = 0; i < n; i++)
        s->lengths[i] = (int32_t)(texts[i].length > 0 ? texts[i].length : 1);
    sb_tape tape;
    search_tape(&tape);
    sb_tensor *source = sequences_tensor_of(SB_SHAPE(n, L), ids), *lengths = NULL;
    if (source)
        lengths = sequences_tensor_of(SB_SHAPE(n), s->lengths);
    if (lengths)
        s->memory = sb_tensor_retain(s->generator->encode(s->generator->model, source, lengths));
    memory_free(ids);
    return sb_tape_end(&tape) && s->memory;
}

/* "Begin" for each text, unless the generator is bare, followed by the prompt. */
static bool sequences_starts(struct sequences *s, const struct decoding_text texts[])
{
    const struct generator *g = s->generator;
    const int64_t prompt = g->encode ? 0 : texts[0].length, begin = g->bare && prompt > 0 ? 0 : 1,
                  L = begin + prompt;
    s->start_length = L;
    s->start = memory_new((size_t)(s->count * L) * sizeof *s->start);
    if (!s->start)
        return sb_fail("decode: out of memory");
    for (int64_t i = 0; i < s->count; i++) {
        s->start[i * L] = sb_vocabulary_special(g->outputs, SB_SYMBOL_BEGIN);
        memcpy(s->start + i * L + begin, texts[i].ids, (size_t)prompt * sizeof *s->start);
    }
    return true;
}

bool sequences_begin(struct sequences *s, const struct generator *generator, int64_t n,
                     const struct decoding_text texts[], bool cache)
{
    *s = (struct sequences){.generator = generator, .count = n};
    return (!generator->encode || sequences_encode(s, texts)) &&
           (!cache || (s->state = sb_decoder_state_new(generator->decoder))) &&
           sequences_starts(s, texts);
}

void sequences_end(struct sequences *s)
{
    sb_tensor_release(s->memory);
    sb_decoder_state_free(s->state);
    memory_free(s->lengths);
    memory_free(s->prefix);
    memory_free(s->start);
    *s = (struct sequences){0};
}

/* Adds L symbols to each prefix. */
static bool sequences_prefix_add(struct sequences *s, int64_t L, const int32_t *ids)
{
    int64_t n = s->count, old = s->length, length = old + L;
    int32_t *prefix = memory_new((size_t)(n * length) * sizeof *prefix);
    if (!prefix)
        return sb_fail("decode: out of memory");
    for (int64_t i = 0; i < n * length; i++) {
        int64_t row = i / length, t = i % length;
        prefix[i] = t < old ? s->prefix[row * old + t] : ids[row * L + t - old];
    }
    memory_free(s->prefix);
    s->prefix = prefix;
    s->length = length;
    return true;
}

/* Keeps only the last half window of each prefix and drops the state: positions start again at 0.
 */
static bool sequences_slide(struct sequences *s)
{
    const int64_t keep = (s->generator->window + 1) / 2, old = s->length;
    for (int64_t i = 0; i < s->count; i++)
        memmove(s->prefix + i * keep, s->prefix + (i + 1) * old - keep,
                (size_t)keep * sizeof *s->prefix);
    s->length = keep;
    s->slid = true;
    if (!s->state)
        return true;
    sb_decoder_state_free(s->state);
    s->state = sb_decoder_state_new(s->generator->decoder);
    return s->state != NULL;
}

/* The decoder's output for the L new positions, or, without a state, for all. */
static sb_tensor *sequences_decode(struct sequences *s, int64_t L, const int32_t *ids)
{
    const sb_decoder *decoder = s->generator->decoder;
    sb_tensor *lengths = s->lengths ? sequences_tensor_of(SB_SHAPE(s->count), s->lengths) : NULL;
    if (s->lengths && !lengths)
        return NULL;
    const int64_t window = s->generator->window;
    if ((!s->state || window > 0) && !sequences_prefix_add(s, L, ids))
        return NULL;
    if (window > 0 && s->length > window) {
        if (!sequences_slide(s))
            return NULL;
        L = s->length;
        ids = s->prefix;
    }
    if (!s->state) {
        sb_tensor *all = sequences_tensor_of(SB_SHAPE(s->count, s->length), s->prefix);
        return all ? sb_decoder_forward(decoder, all, s->memory, lengths, NULL) : NULL;
    }
    sb_tensor *new_ids = sequences_tensor_of(SB_SHAPE(s->count, L), ids);
    sb_tensor *y =
        new_ids ? sb_decoder_step(decoder, s->state, new_ids, s->memory, lengths, NULL) : NULL;
    sb_tensor_release(s->memory); /* the state has its keys and values */
    s->memory = NULL;
    return y;
}

sb_tensor *sequences_next(struct sequences *s, int64_t L, const int32_t *ids)
{
    sb_tensor *y = sequences_decode(s, L, ids); /* (count, 1 or more, C) */
    if (!y)
        return NULL;
    int64_t last = sb_tensor_dim(y, 1) - 1, C = sb_tensor_dim(y, 2);
    if (last > 0)
        y = sb_slice(y, 1, last, 1);
    y = sb_reshape(y, 2, (const int64_t[]){s->count, C});
    return s->generator->output(s->generator->model, y);
}

/* Selects rows of the memory (B, L, C) with an embedding lookup. */
static bool sequences_reorder_memory(struct sequences *s, int64_t n, const int32_t *rows)
{
    int64_t B = sb_tensor_dim(s->memory, 0), L = sb_tensor_dim(s->memory, 1);
    int64_t C = sb_tensor_dim(s->memory, 2);
    sb_tape tape;
    search_tape(&tape);
    sb_tensor *flat = sb_reshape(s->memory, 2, (const int64_t[]){B, L * C});
    sb_tensor *picked = sequences_tensor_of(SB_SHAPE(n), rows);
    if (picked)
        picked = sb_embedding(flat, picked);
    picked = sb_tensor_retain(sb_reshape(picked, 3, (const int64_t[]){n, L, C}));
    bool ok = sb_tape_end(&tape) && picked;
    sb_tensor_release(ok ? s->memory : picked);
    s->memory = ok ? picked : s->memory;
    return ok;
}

static bool sequences_reorder_ids(int64_t L, int64_t n, const int32_t *rows, int32_t **ids)
{
    int32_t *picked = memory_new((size_t)(n * L) * sizeof *picked + 1);
    if (!picked)
        return sb_fail("decode: out of memory");
    for (int64_t i = 0; i < n; i++)
        memcpy(picked + i * L, *ids + rows[i] * L, (size_t)L * sizeof *picked);
    memory_free(*ids);
    *ids = picked;
    return true;
}

bool sequences_note(struct sequences *s, const int32_t *ids, const int32_t *rows)
{
    return s->generator->window == 0 ||
           (sequences_prefix_add(s, 1, ids) &&
            (!rows || sequences_reorder_ids(s->length, s->count, rows, &s->prefix)));
}

bool sequences_reorder(struct sequences *s, int64_t n, const int32_t *rows)
{
    bool same = n == s->count;
    for (int64_t i = 0; same && i < n; i++)
        same = rows[i] == i;
    if (same)
        return true;
    s->count = n;
    return (!s->lengths || sequences_reorder_ids(1, n, rows, &s->lengths)) &&
           (!s->prefix || sequences_reorder_ids(s->length, n, rows, &s->prefix)) &&
           (!s->memory || sequences_reorder_memory(s, n, rows)) &&
           (!s->state || sb_decoder_state_reorder(s->state, n, rows));
}

enum {
    BATCH_SYMBOLS = 1 << 14, /* the most of a batch, with padding */
    MOST = 1 << 24,          /* texts, and symbols of an output */
    WIDEST = 1 << 10,        /* beam */
};

static bool generator_check_sampling(const sb_decoding_options *o)
{
    if (o->listen && o->beam_width > 1)
        return sb_fail("decode: a beam of %lld knows its symbols at the end only; listen needs "
                       "beam_width 0 or 1",
                       (long long)o->beam_width);
    if (!o->sample && (o->temperature != 0 || o->top_k != 0 || o->top_p != 0))
        return sb_fail("decode: temperature is %g, top_k %lld, top_p %g; without sampling they "
                       "must be 0",
                       o->temperature, (long long)o->top_k, o->top_p);
    if (o->sample && o->beam_width > 1)
        return sb_fail("decode: beam_width is %lld; with sampling it must be 0 or 1",
                       (long long)o->beam_width);
    if (!(o->temperature >= 0 && o->temperature < INFINITY))
        return sb_fail("decode: temperature is %g; it must be positive, or 0 for the default, 1",
                       o->temperature);
    if (o->top_k < 0)
        return sb_fail("decode: top_k is %lld; it must be positive, or 0 for all symbols",
                       (long long)o->top_k);
    if (!(o->top_p >= 0 && o->top_p <= 1))
        return sb_fail("decode: top_p is %g; it must be in (0, 1], or 0 for the default, 1",
                       o->top_p);
    return true;
}

static bool generator_check(const sb_decoding_options *o)
{
    if (o->beam_width < 0 || o->beam_width > WIDEST)
        return sb_fail("decode: beam_width is %lld; it must be in 0..%d", (long long)o->beam_width,
                       WIDEST);
    if ((int)o->beam_rule < SB_BEAM_BOUNDED || (int)o->beam_rule > SB_BEAM_EARLY)
        return sb_fail("decode: %d is no rule of a beam", (int)o->beam_rule);
    if (o->longest < 0 || o->longest > MOST)
        return sb_fail("decode: longest is %lld; it must be in 0..%d", (long long)o->longest, MOST);
    if (o->batch_pairs < 0)
        return sb_fail("decode: batch_pairs is %lld; it must be positive, or 0 for 64",
                       (long long)o->batch_pairs);
    if ((int)o->weights < SB_WEIGHTS_AS_STORED || (int)o->weights > SB_WEIGHTS_INT8)
        return sb_fail("decode: %d is no format of weights", (int)o->weights);
    if (!(o->length_penalty >= 0 && o->length_penalty < INFINITY))
        return sb_fail("decode: length_penalty is %g; it must be at least 0", o->length_penalty);
    return generator_check_sampling(o);
}

static bool generator_complete(const sb_decoding_options *given, sb_decoding_options *o)
{
    *o = given ? *given : (sb_decoding_options){0};
    if (!generator_check(o))
        return false;
    o->temperature = o->temperature == 0 ? 1 : o->temperature;
    o->top_p = o->top_p == 0 ? 1 : o->top_p;
    o->batch_pairs = o->batch_pairs ? o->batch_pairs : 64;
    return true;
}

/* A sum of logarithms falls with each symbol, so without a penalty a beam prefers short outputs. In
   texts of words that costs more than in those of characters: docs/measured.md. */
static double generator_penalty(const struct generator *g, const sb_decoding_options *o)
{
    const sb_units units = sb_vocabulary_units(g->outputs);
    const bool words = units == SB_UNITS_WORDS || units == SB_UNITS_BPE || units == SB_UNITS_IDS;
    return sb_option(o->length_penalty, words && o->beam_width > 1 ? 1 : 0);
}

bool decoding_complete_sampling(const sb_decoding_options *given, sb_decoding_options *o)
{
    sb_decoding_options all = given ? *given : (sb_decoding_options){0};
    all.sample = true;
    return generator_complete(&all, o);
}

static int generator_by_length(const void *a_, const void *b_)
{
    const struct decoding_text *a = a_, *b = b_;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* How many of n texts, the shortest first, make the next batch. */
static int64_t generator_next_batch(const struct generator *g, const sb_decoding_options *o,
                                    int64_t n, const struct decoding_text texts[])
{
    int64_t size = 1;
    while (size < n && size < o->batch_pairs &&
           (size + 1) * (texts[size].length + 1) <= BATCH_SYMBOLS &&
           (g->encode || texts[size].length == texts[0].length))
        size++;
    return size;
}

static int64_t generator_longest_output(const struct generator *g, const sb_decoding_options *o,
                                        int64_t length)
{
    int64_t longest = o->longest ? o->longest : 2 * length + 50;
    /* The decoder reads "begin" and the whole output, if that is scored or drawn later; with a
       prompt, "begin", the prompt, and all output symbols but the last. */
    int64_t room = g->encode ? g->positions - (g->positions > 1) : g->positions - length;
    return g->positions > 0 && g->window == 0 && room > 0 && room < longest ? room : longest;
}

/* Decodes one batch, on tapes inside the open one. */
static bool generator_search(const struct generator *g, const sb_decoding_options *o, int64_t n,
                             const struct decoding_text texts[])
{
    struct sequences sequences;
    const struct search search = {.options = o,
                                  .sequences = &sequences,
                                  .texts = n,
                                  .V = sb_vocabulary_size(g->outputs),
                                  .from = search_choosable(g->outputs),
                                  .text = texts};
    const bool ok = sequences_begin(&sequences, g, n, texts, !o->no_cache) &&
                    (o->beam_width > 1 ? search_beam : search_greedy)(&search);
    sequences_end(&sequences);
    return ok;
}

static bool generator_check_arguments(const char *const *texts, int64_t n, const void *outputs)
{
    if (n < 0 || n > MOST)
        return sb_fail("decode: n is %lld; it must be in 0..%d", (long long)n, MOST);
    if (n > 0 && (!texts || !outputs))
        return fail_null("decode", texts ? "outputs" : "texts");
    return true;
}

static bool generator_has_format(const struct generator *g, sb_weight_format format)
{
    const sb_tensor *table = sb_decoder_table(g->decoder);
    if (format != SB_WEIGHTS_INT8 ||
        kernel_row_if_any(&linear_int8_rows, table->device, table->dtype))
        return true;
    return sb_fail("decode: int8 weights are for f32 and f64 on the CPU; the model is %s on %s",
                   sb_dtype_name(table->dtype), table->device->name);
}

/* The batches of a call, which threads decode at the same time: an output does not depend on its
   batch. */
struct batches {
    const struct generator *generator;
    sb_decoding_options options;
    struct decoding_text *texts; /* the shortest first */
    struct packed_weights *packed;
    int64_t *begin; /* (count + 1): the first text of each */
};

/* Encodes the texts. */
static bool generator_encode(struct batches *b, const char *const *texts, int64_t n,
                             sb_decoded outputs[])
{
    const struct generator *g = b->generator;
    b->texts = memory_new((size_t)n * sizeof *b->texts);
    if (!b->texts)
        return sb_fail("decode: out of memory for %lld texts", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        struct decoding_text *text = &b->texts[i];
        text->ids = sb_vocabulary_encode(g->vocabulary, texts[i], &text->length, NULL);
        if (!text->ids)
            return sb_fail("decode: text %lld: %s", (long long)i, sb_error());
        text->index = i;
        text->longest = generator_longest_output(g, &b->options, text->length);
        text->output = &outputs[i];
    }
    qsort(b->texts, (size_t)n, sizeof *b->texts, generator_by_length);
    return true;
}

static bool generator_decode_batch(void *batches, int64_t i)
{
    const struct batches *b = batches;
    const sb_context context = {.packed = b->packed, .batch_invariant = true};
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_NO_RECORD, &context);
    sb_tape_random(&tape, NULL);
    const int64_t first = b->begin[i], n = b->begin[i + 1] - first;
    const bool ok = generator_search(b->generator, &b->options, n, b->texts + first);
    return sb_tape_end(&tape) && ok;
}

/* Cuts n texts into batches, at least one for each thread if they are not too small then. Not where
   order counts: a listener hears one symbol at a time, ranks that hold parts of the weights wait
   for each other, and a device has one queue. */
static bool generator_decode_batches(struct batches *b, int64_t n)
{
    enum { LEAST = 8 };
    const bool in_turn =
        b->options.listen || b->generator->waits || sb_device_in_use() != sb_device_cpu();
    const int64_t share = in_turn ? n : (n + sb_threads() - 1) / sb_threads();
    sb_decoding_options o = b->options;
    if (o.batch_pairs > share)
        o.batch_pairs = share > LEAST ? share : LEAST;
    int64_t count = 0;
    b->begin = memory_new((size_t)(n + 1) * sizeof *b->begin);
    if (!b->begin)
        return sb_fail("decode: out of memory");
    for (int64_t i = 0; i < n; b->begin[++count] = i)
        i += generator_next_batch(b->generator, &o, n - i, b->texts + i);
    return threads_each(count, in_turn, generator_decode_batch, b);
}

bool generator_decode(const struct generator *g, const char *const *texts, int64_t n,
                      const sb_decoding_options *options, sb_decoded outputs[])
{
    struct batches b = {.generator = g};
    if (!generator_check_arguments(texts, n, outputs) || !generator_complete(options, &b.options) ||
        !generator_has_format(g, b.options.weights))
        return false;
    b.options.length_penalty = generator_penalty(g, &b.options);
    for (int64_t i = 0; i < n; i++)
        outputs[i] = (sb_decoded){0};
    b.packed = packed_weights_new(b.options.weights);
    const bool ok =
        b.packed && generator_encode(&b, texts, n, outputs) && generator_decode_batches(&b, n);
    memory_free(b.begin);
    packed_weights_free(b.packed);
    for (int64_t i = 0; b.texts && i < n; i++)
        sb_free(b.texts[i].ids);
    memory_free(b.texts);
    if (!ok)
        sb_decoded_free(n, outputs);
    return ok;
}

bool generator_texts(const sb_vocabulary *vocabulary, int64_t n, const sb_decoded decoded[],
                     char *outputs[])
{
    int64_t made = 0;
    while (made < n && (outputs[made] = sb_vocabulary_decode(vocabulary, decoded[made].ids,
                                                             decoded[made].length)) != NULL)
        made++;
    for (int64_t i = 0; made < n && i < made; i++)
        sb_free(outputs[i]);
    for (int64_t i = 0; made < n && i < n; i++)
        outputs[i] = NULL;
    return made == n;
}

void sb_decoded_free(int64_t n, sb_decoded outputs[])
{
    for (int64_t i = 0; outputs && i < n; i++) {
        memory_free(outputs[i].ids);
        outputs[i] = (sb_decoded){0};
    }
}
