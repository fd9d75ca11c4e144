/*
 * Greedy decoding with cache: `pairs` sources of made-up words, each decoded to a given number of
 * symbols. The model is untrained; a bias keeps it from writing special symbols, in particular from
 * ending early.
 */
#include "models/translation.h"
#include "program/bench/job.h"
#include "program/bench/words.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <stdio.h>

struct decoding {
    sb_parameters *weights;
    sb_seq2seq *model;
    int64_t pairs, target;
    sb_weight_format format;
    sb_tensor *source; /* (pairs, words) */
    char *text;        /* the sources, one after the other */
    const char **texts;
    sb_decoded *outputs;
};

static void decoding_close(void *job)
{
    struct decoding *d = job;
    sb_tensor_release(d->source);
    memory_free(d->text);
    memory_free(d->texts);
    memory_free(d->outputs);
    sb_seq2seq_free(d->model);
    sb_parameters_free(d->weights);
    memory_free(d);
}

static bool make_model(struct decoding *d, const char *line)
{
    sb_seq2seq_options options = {.tie_embeddings = false};
    if (!words_transformer(line, &options.transformer))
        return false;
    sb_vocabulary *words = words_vocabulary(line);
    d->weights = words ? sb_parameters_new(1) : NULL;
    d->model = d->weights ? sb_seq2seq_for(d->weights, words, words, &options) : NULL;
    sb_vocabulary_release(words);
    sb_tensor *bias = d->model ? sb_parameters_find(d->weights, "output.bias") : NULL;
    for (int64_t id = 0; bias && id < SB_SPECIAL_SYMBOLS; id++)
        sb_tensor_set(bias, id, -1e9);
    return bias != NULL;
}

/* Source i in words, and in row i of d->source. */
static bool make_text(struct decoding *d, int64_t i, char *text, sb_random *random)
{
    sb_vocabulary *words = sb_seq2seq_source(d->model);
    const int64_t length = sb_tensor_dim(d->source, 1);
    const uint32_t known = (uint32_t)(sb_vocabulary_size(words) - SB_SPECIAL_SYMBOLS);
    d->texts[i] = text;
    for (int64_t n = 0; n < length; n++)
        text += sprintf(text, n ? " w%u" : "w%u", sb_random_below(random, known));
    int64_t count;
    int32_t *ids = sb_vocabulary_encode(words, d->texts[i], &count, NULL);
    bool ok = ids && (count == length || sb_fail("bench: a text has %lld symbols, not %lld",
                                                 (long long)count, (long long)length));
    for (int64_t n = 0; ok && n < length; n++)
        ok = sb_tensor_set(d->source, i * length + n, ids[n]);
    sb_free(ids);
    return ok;
}

static bool make_texts(struct decoding *d, const char *line)
{
    enum { WORD = 16 };
    int64_t length;
    if (!job_whole(line, "pairs", &d->pairs) || !job_whole(line, "source", &length) ||
        !job_whole(line, "target", &d->target))
        return false;
    d->format = job_flag(line, "int8") ? SB_WEIGHTS_INT8 : SB_WEIGHTS_AS_STORED;
    d->source = sb_tensor_zeros(SB_I32, SB_SHAPE(d->pairs, length));
    d->text = memory_new((size_t)(d->pairs * length) * WORD);
    d->texts = memory_new((size_t)d->pairs * sizeof *d->texts);
    d->outputs = memory_new((size_t)d->pairs * sizeof *d->outputs);
    bool ok = (d->source && d->text && d->texts && d->outputs) || sb_fail("bench: out of memory");
    sb_random random = sb_random_new(1, SB_STREAM_DATA);
    for (int64_t i = 0; ok && i < d->pairs; i++)
        ok = make_text(d, i, d->text + i * length * WORD, &random);
    return ok;
}

static void *decoding_open(const char *line)
{
    struct decoding *d = memory_new(sizeof *d);
    if (!d)
        return sb_fail("bench: out of memory");
    if (make_model(d, line) && make_texts(d, line))
        return d;
    decoding_close(d);
    return NULL;
}

static int decoding_tensors(void *job, sb_named_tensor items[])
{
    const struct decoding *d = job;
    const int count = (int)sb_parameters_count(d->weights);
    for (int i = 0; items && i < count; i++)
        items[i] =
            (sb_named_tensor){sb_parameters_name(d->weights, i), sb_parameters_get(d->weights, i)};
    if (items)
        items[count] = (sb_named_tensor){"source", d->source};
    return count + 1;
}

static bool decode(const struct decoding *d)
{
    const sb_decoding_options options = {
        .longest = d->target, .batch_pairs = d->pairs, .weights = d->format};
    return sb_decode_texts(d->model, d->texts, d->pairs, &options, d->outputs);
}

static double decoding_step(void *job)
{
    const struct decoding *d = job;
    const double begun = bench_clock();
    if (!decode(d))
        return -1;
    const double seconds = bench_since(begun, true);
    sb_decoded_free(d->pairs, d->outputs);
    return seconds;
}

/* The output symbols. */
static bool decoding_check(void *job, struct job_numbers *numbers)
{
    const struct decoding *d = job;
    bool ok = decode(d);
    if (!ok)
        return false;
    for (int64_t i = 0; i < d->pairs; i++)
        for (int64_t n = 0; ok && n < d->outputs[i].length; n++)
            ok = job_add(numbers, d->outputs[i].ids[n]);
    sb_decoded_free(d->pairs, d->outputs);
    return ok;
}

/* A step of one text reads all weights of the decoder; one of many computes more. */
static bool decoding_work(const char *line, struct job_work *work)
{
    sb_transformer_options o;
    int64_t symbols, pairs, target;
    if (!words_transformer(line, &o) || !job_whole(line, "symbols", &symbols) ||
        !job_whole(line, "pairs", &pairs) || !job_whole(line, "target", &target))
        return false;
    const double C = (double)o.width, F = (double)o.feed_forward;
    const double read = o.decoder_layers * (8 * C * C + 2 * C * F) + C * (double)symbols;
    const double number = job_flag(line, "int8") ? 1 : 4; /* its bytes */
    work->tokens = (double)(pairs * target);
    work->operations = 2 * read * work->tokens;
    work->memory = number * read;
    work->bytes = pairs == 1 ? number * read * work->tokens : 0;
    return true;
}

const struct job_kind job_decoding = {
    .name = "decoding",
    .work = decoding_work,
    .open = decoding_open,
    .step = decoding_step,
    .check = decoding_check,
    .tensors = decoding_tensors,
    .close = decoding_close,
};
