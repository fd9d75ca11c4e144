/* Jobs of whole models: training steps and decoding, on made-up words. */
#include "autograd/tape.h"
#include "models/data/windows.h"
#include "models/language_model.h"
#include "models/training/trainer.h"
#include "models/translation.h"
#include "ops/packed_weights.h"
#include "program/bench/job.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <string.h>

#define WORDS_NEED "width heads feed_forward layers dropout symbols pairs "

/* So many layers on each side. */
static sb_transformer_options words_transformer(const char *line)
{
    const int layers = (int)job_size(line, "layers");
    return (sb_transformer_options){.width = job_size(line, "width"),
                                    .heads = job_size(line, "heads"),
                                    .feed_forward = job_size(line, "feed_forward"),
                                    .encoder_layers = layers,
                                    .decoder_layers = layers,
                                    .dropout = job_number(line, "dropout"),
                                    .precision = job_flag(line, "bf16")   ? SB_PRECISION_BF16
                                                 : job_flag(line, "tf32") ? SB_PRECISION_TF32
                                                                          : SB_PRECISION_F32};
}

/* A vocabulary of as many symbols as the line says; its words are "w0", "w1" ... */
static sb_vocabulary *words_vocabulary(const char *line)
{
    enum { WORD = 16 };
    const int64_t symbols = job_size(line, "symbols");
    if (symbols <= SB_SPECIAL_SYMBOLS)
        return sb_fail("bench: symbols is %lld, not above %d", (long long)symbols,
                       SB_SPECIAL_SYMBOLS);
    char *text = memory_new((size_t)symbols * WORD);
    if (!text)
        return sb_fail("bench: out of memory");
    int64_t used = 0;
    for (int64_t i = 0; i < symbols - SB_SPECIAL_SYMBOLS; i++)
        used += snprintf(text + used, WORD, i ? " w%lld" : "w%lld", (long long)i);
    const char *texts[] = {text};
    sb_vocabulary *words =
        sb_vocabulary_new(texts, 1, &(sb_vocabulary_options){.units = SB_UNITS_WORDS});
    memory_free(text);
    return words;
}

/* All weights, for other libraries; returns how many. items NULL: only that. */
static int models_tensors(const sb_parameters *weights, sb_named_tensor items[])
{
    const int count = (int)sb_parameters_count(weights);
    for (int i = 0; items && i < count; i++)
        items[i] = (sb_named_tensor){sb_parameters_name(weights, i), sb_parameters_get(weights, i)};
    return count;
}

/*
 * ---- training steps, as softback train makes them: forward, backward and Adam ----
 *
 * All sequences of a batch have the same length, and random symbols; BATCHES batches are used in
 * turns.
 */

enum { BATCHES = 4, CHECKED_STEPS = 3, INPUTS = 3, NAME = 32 };

struct training {
    sb_parameters *weights;
    sb_model model;
    sb_trainer *trainer;
    sb_batch *batch[BATCHES];
    int64_t next; /* batch */
    char name[BATCHES][INPUTS][NAME];
};

static void training_close(void *job)
{
    struct training *t = job;
    sb_trainer_free(t->trainer);
    for (int i = 0; i < BATCHES; i++)
        sb_batch_free(t->batch[i]);
    sb_model_free(&t->model);
    sb_parameters_free(t->weights);
}

static const sb_batch *training_next(void *job)
{
    struct training *t = job;
    return t->batch[t->next++ % BATCHES];
}

static sb_data_position training_tell(const void *job)
{
    return (sb_data_position){.batch = ((const struct training *)job)->next};
}

static bool training_seek(void *job, sb_data_position position)
{
    ((struct training *)job)->next = position.batch;
    return true;
}

/* Sources of `length` symbols, and targets of one less, which the end symbol makes equally long. */
static sb_batch *training_pairs(int64_t n, int64_t length, int32_t *ids)
{
    sb_encoded_pair *pair = memory_new((size_t)n * sizeof *pair);
    for (int64_t i = 0; pair && i < n; i++, ids += 2 * length)
        pair[i] = (sb_encoded_pair){ids, ids + length, length, length - 1, NULL};
    sb_batch *batch = pair ? sb_batch_new(n, pair) : sb_fail("bench: out of memory");
    memory_free(pair);
    return batch;
}

/* Each symbol is predicted from those before it, the first one from "begin". */
static sb_batch *training_windows(int64_t n, int64_t length, int32_t *ids)
{
    const int32_t **window = memory_new((size_t)n * sizeof *window);
    int64_t *lengths = memory_new((size_t)n * sizeof *lengths);
    for (int64_t i = 0; window && lengths && i < n; i++, ids += 2 * length) {
        ids[0] = SB_SYMBOL_BEGIN;
        window[i] = ids;
        lengths[i] = length;
    }
    sb_batch *batch = window && lengths ? sb_window_batch_new(n, window, lengths)
                                        : sb_fail("bench: out of memory");
    memory_free(window);
    memory_free(lengths);
    return batch;
}

static bool training_make_batches(struct training *t, const char *line,
                                  sb_batch *(*make)(int64_t n, int64_t length, int32_t *ids))
{
    const int64_t n = job_size(line, "pairs"), length = job_size(line, "length");
    const uint32_t words = (uint32_t)(job_size(line, "symbols") - SB_SPECIAL_SYMBOLS);
    sb_random random = sb_random_new(1, SB_STREAM_DATA);
    int32_t *ids = memory_new((size_t)(2 * n * length) * sizeof *ids);
    bool ok = ids || sb_fail("bench: out of memory");
    for (int b = 0; ok && b < BATCHES; b++) {
        for (int64_t i = 0; i < 2 * n * length; i++)
            ids[i] = SB_SPECIAL_SYMBOLS + (int32_t)sb_random_below(&random, words);
        ok = (t->batch[b] = make(n, length, ids)) != NULL;
    }
    memory_free(ids);
    return ok;
}

static bool seq2seq_make(struct training *t, const char *line, sb_vocabulary *words)
{
    const sb_seq2seq_options options = {.transformer = words_transformer(line),
                                        .tie_embeddings = job_flag(line, "tied")};
    sb_seq2seq *model = sb_seq2seq_for(t->weights, words, words, &options);
    if (model)
        t->model = sb_seq2seq_as_model(model);
    return model && training_make_batches(t, line, training_pairs);
}

/* As GPT-2, except for the output bias of softback's models. */
static bool language_model_make(struct training *t, const char *line, sb_vocabulary *words)
{
    sb_language_model_options options = {.transformer = words_transformer(line),
                                         .tie_embeddings = true};
    options.transformer.positions_longest = job_size(line, "positions");
    options.transformer.positions = SB_POSITIONS_LEARNED;
    options.transformer.activation = SB_ACTIVATION_GELU_TANH;
    sb_language_model *model = sb_language_model_for(t->weights, words, &options);
    if (model)
        t->model = sb_language_model_as_model(model);
    return model && training_make_batches(t, line, training_windows);
}

static bool training_open(void *job, const char *line)
{
    struct training *t = job;
    const bool alone = job_kind_of(line) == &job_language_model; /* a decoder */
    const sb_source source = {
        .object = t, .next = training_next, .tell = training_tell, .seek = training_seek};
    const sb_trainer_options options = {
        .seed = 1, .graphs = job_flag(line, "eager") ? SB_GRAPHS_OFF : SB_GRAPHS_AUTO};
    sb_vocabulary *words = words_vocabulary(line);
    t->weights = words ? sb_parameters_new(1) : NULL;
    if (t->weights && (alone ? language_model_make : seq2seq_make)(t, line, words))
        t->trainer = sb_trainer_for(&t->model, &source, &options);
    sb_vocabulary_release(words);
    return t->trainer != NULL;
}

/* Its number is the loss. */
static double training_run(void *job, struct job_numbers *numbers)
{
    const struct training *t = job;
    sb_trained trained;
    const double begun = bench_clock();
    const double seconds = bench_since(begun, sb_trainer_step(t->trainer, &trained));
    return seconds < 0 || !numbers || job_add(numbers, trained.loss) ? seconds : -1;
}

static int training_tensors(void *job, sb_named_tensor items[])
{
    static const char *const inputs[INPUTS] = {"source", "target_in", "target_out"};
    struct training *t = job;
    int n = models_tensors(t->weights, items);
    for (int b = 0; b < BATCHES; b++)
        for (int p = 0; p < t->batch[b]->parts; p++)
            for (int i = 0; i < INPUTS; i++) {
                const sb_batch_part *part = &t->batch[b]->part[p];
                if (strcmp(part->name, inputs[i]) != 0)
                    continue;
                snprintf(t->name[b][i], NAME, "batch.%d.%s", b, part->name);
                if (items)
                    items[n] = (sb_named_tensor){t->name[b][i], part->t};
                n++;
            }
    return n;
}

static sb_parameters *training_weights(void *job)
{
    return ((struct training *)job)->weights;
}

/* The products of a step are 3 times those of forward: 2 for each weight and position, and 4 C for
   each pair of positions of an attention. A layer of an encoder has 4 C C + 2 C F weights. */
static struct job_work training_work(const char *line)
{
    const bool alone = job_kind_of(line) == &job_language_model; /* a decoder */
    const double C = job_number(line, "width"), F = job_number(line, "feed_forward"),
                 L = job_number(line, "length"), N = job_number(line, "layers");
    const double layer = alone ? 4 * C * C + 2 * C * F : 12 * C * C + 4 * C * F;
    const double weights = N * layer + C * job_number(line, "symbols");
    const double tokens = job_number(line, "pairs") * L;
    return (struct job_work){.tokens = tokens,
                             .operations =
                                 3 * tokens * (2 * weights + (alone ? 1 : 3) * N * 4 * C * L)};
}

#define TRAINING(name, needs)                                                                      \
    {                                                                                              \
#name, WORDS_NEED needs, sizeof(struct training), training_work, training_open,            \
            training_run, CHECKED_STEPS, training_tensors, training_weights, training_close        \
    }

const struct job_kind job_seq2seq = TRAINING(seq2seq, "length");
const struct job_kind job_language_model = TRAINING(language_model, "length positions");

/*
 * ---- greedy decoding with cache ----
 *
 * `pairs` sources of made-up words, each decoded to a given number of symbols. The model is
 * untrained; a bias keeps it from writing special symbols, in particular from ending early.
 */

enum { CHECKED_POSITIONS = 4 };

struct decoding {
    sb_parameters *weights;
    sb_seq2seq *model;
    int64_t pairs, target;
    sb_weight_format format;
    sb_tensor *source; /* (pairs, words) */
    char **texts;
    sb_decoded *outputs;
    /* of single steps */
    sb_tensor *lengths; /* (pairs), of the sources */
    struct packed_weights *packed;
    sb_decoder_state *state; /* NULL before the first position */
};

static void decoding_close(void *job)
{
    struct decoding *d = job;
    sb_decoder_state_free(d->state);
    packed_weights_free(d->packed);
    sb_tensor_release(d->lengths);
    sb_tensor_release(d->source);
    for (int64_t i = 0; d->texts && i < d->pairs; i++)
        sb_free(d->texts[i]);
    memory_free(d->texts);
    memory_free(d->outputs);
    sb_seq2seq_free(d->model);
    sb_parameters_free(d->weights);
}

static bool decoding_make_model(struct decoding *d, const char *line)
{
    const sb_seq2seq_options options = {.transformer = words_transformer(line)};
    sb_vocabulary *words = words_vocabulary(line);
    d->weights = words ? sb_parameters_new(1) : NULL;
    d->model = d->weights ? sb_seq2seq_for(d->weights, words, words, &options) : NULL;
    sb_vocabulary_release(words);
    sb_tensor *bias = d->model ? sb_parameters_find(d->weights, "output.bias") : NULL;
    for (int64_t id = 0; bias && id < SB_SPECIAL_SYMBOLS; id++)
        sb_tensor_set(bias, id, -1e9);
    return bias != NULL;
}

/* The sources, as symbols and in words. */
static bool decoding_make_texts(struct decoding *d, const char *line)
{
    const int64_t length = job_size(line, "source");
    d->pairs = job_size(line, "pairs");
    d->target = job_size(line, "target");
    const sb_vocabulary *words = sb_seq2seq_source(d->model);
    const uint32_t known = (uint32_t)(sb_vocabulary_size(words) - SB_SPECIAL_SYMBOLS);
    sb_random random = sb_random_new(1, SB_STREAM_DATA);
    int32_t *ids = memory_new((size_t)(d->pairs * length) * sizeof *ids);
    d->format = job_flag(line, "int8") ? SB_WEIGHTS_INT8 : SB_WEIGHTS_AS_STORED;
    d->texts = memory_new((size_t)d->pairs * sizeof *d->texts);
    d->outputs = memory_new((size_t)d->pairs * sizeof *d->outputs);
    bool ok = (ids && d->texts && d->outputs) || sb_fail("bench: out of memory");
    for (int64_t i = 0; ok && i < d->pairs * length; i++)
        ids[i] = SB_SPECIAL_SYMBOLS + (int32_t)sb_random_below(&random, known);
    for (int64_t i = 0; ok && i < d->pairs; i++)
        ok = (d->texts[i] = sb_vocabulary_decode(words, ids + i * length, length)) != NULL;
    d->source = ok ? sb_tensor_from(SB_I32, SB_SHAPE(d->pairs, length), ids) : NULL;
    d->lengths = sb_tensor_full(SB_I32, SB_SHAPE(d->pairs), (double)length);
    memory_free(ids);
    return d->source && d->lengths;
}

static bool decoding_open(void *job, const char *line)
{
    return decoding_make_model(job, line) && decoding_make_texts(job, line);
}

static int decoding_tensors(void *job, sb_named_tensor items[])
{
    const struct decoding *d = job;
    const int count = models_tensors(d->weights, items);
    if (items)
        items[count] = (sb_named_tensor){"source", d->source};
    return count + 1;
}

/* Its numbers are the output symbols. */
static double decoding_run(void *job, struct job_numbers *numbers)
{
    const struct decoding *d = job;
    const sb_decoding_options options = {
        .longest = d->target, .batch_pairs = d->pairs, .weights = d->format};
    const double begun = bench_clock();
    if (!sb_decode_texts(d->model, (const char *const *)d->texts, d->pairs, &options, d->outputs))
        return -1;
    const double seconds = bench_since(begun, true);
    bool ok = true;
    for (int64_t i = 0; numbers && i < d->pairs; i++)
        for (int64_t n = 0; ok && n < d->outputs[i].length; n++)
            ok = job_add(numbers, d->outputs[i].ids[n]);
    sb_decoded_free(d->pairs, d->outputs);
    return ok ? seconds : -1;
}

/* ---- decoding, position by position ---- */

/* Decodes the next position of symbols that are all the same, after `target` of them again the
   first one; weights are packed anew then. The measure of the decoder's output, as the bias hides
   that of the logits, goes to `numbers` unless NULL. */
static double decoding_step_run(void *job, struct job_numbers *numbers)
{
    struct decoding *d = job;
    if (sb_decoder_state_length(d->state) == d->target) {
        sb_decoder_state_free(d->state);
        d->state = NULL;
    }
    const bool first = !d->state;
    if (first) {
        packed_weights_free(d->packed);
        d->packed = packed_weights_new(d->format);
        d->state = sb_decoder_state_new(sb_seq2seq_decoder(d->model));
        if (!d->packed || !d->state)
            return -1;
    }
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_NO_RECORD,
                       &(sb_context){.packed = d->packed, .batch_invariant = true});
    sb_tensor *memory = first ? sb_seq2seq_encode(d->model, d->source, d->lengths) : NULL;
    const double begun = bench_clock();
    sb_tensor *id =
        sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(d->pairs, 1), SB_SPECIAL_SYMBOLS + 1));
    sb_tensor *y =
        sb_decoder_step(sb_seq2seq_decoder(d->model), d->state, id, memory, d->lengths, NULL);
    sb_tensor *logits = sb_seq2seq_output(d->model, y);
    const double seconds = bench_since(begun, logits != NULL);
    const bool ok = seconds >= 0 && (!numbers || job_add_measure(numbers, y));
    return sb_tape_end(&tape) && ok ? seconds : -1;
}

/* A step of one text reads all weights of the decoder; one of many computes more. */
static struct job_work decoding_work(const char *line)
{
    const double C = job_number(line, "width"), F = job_number(line, "feed_forward"),
                 pairs = job_number(line, "pairs");
    const double read =
        job_number(line, "layers") * (8 * C * C + 2 * C * F) + C * job_number(line, "symbols");
    const double number = job_flag(line, "int8") ? 1 : 4;      /* its bytes */
    const bool step = job_kind_of(line) == &job_decoding_step; /* one position */
    const double tokens = step ? pairs : pairs * job_number(line, "target");
    return (struct job_work){.tokens = tokens,
                             .operations = 2 * read * tokens,
                             .memory = number * read,
                             .bytes = pairs == 1 ? number * read * tokens : 0};
}

#define DECODING(name, checked)                                                                    \
    {                                                                                              \
#name, WORDS_NEED "source target", sizeof(struct decoding), decoding_work, decoding_open,  \
            name##_run, checked, decoding_tensors, NULL, decoding_close                            \
    }

const struct job_kind job_decoding = DECODING(decoding, 1);
const struct job_kind job_decoding_step = DECODING(decoding_step, CHECKED_POSITIONS);
