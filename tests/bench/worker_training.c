/*
 * Training steps: forward, backward and Adam, as a user writes them. All sequences of a batch have
 * the same length, and random symbols; BATCHES batches are used in turns.
 */
#include "autograd/tape.h"
#include "models/language_model.h"
#include "models/seq2seq.h"
#include "nn/optimiser.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/safetensors.h"
#include "tests/bench/worker.h"
#include "tests/bench/worker_words.h"
#include <stdio.h>

enum { BATCHES = 4, CHECKED_STEPS = 3, NAME = 32 };

struct training {
    sb_parameters *weights;
    sb_seq2seq *seq2seq;         /* this, with batches, */
    sb_language_model *language; /* or that, with ids (pairs, length) */
    sb_optimiser *adam;
    sb_random dropout;
    sb_batch *batch[BATCHES];
    sb_tensor *ids[BATCHES];
    int64_t steps;
};

static void training_close(void *job)
{
    struct training *t = job;
    for (int i = 0; i < BATCHES; i++) {
        sb_batch_free(t->batch[i]);
        sb_tensor_release(t->ids[i]);
    }
    sb_optimiser_free(t->adam);
    sb_seq2seq_free(t->seq2seq);
    sb_language_model_free(t->language);
    sb_parameters_free(t->weights);
    memory_free(t);
}

static bool draw(sb_random *random, int64_t symbols, int64_t n, int32_t *ids)
{
    for (int64_t i = 0; i < n; i++)
        ids[i] = SB_SPECIAL_SYMBOLS +
                 (int32_t)sb_random_below(random, (uint32_t)(symbols - SB_SPECIAL_SYMBOLS));
    return true;
}

/* Sources of `length` symbols, and targets of one less, which the end symbol makes equally long. */
static sb_batch *make_batch(sb_random *random, int64_t pairs, int64_t length, int64_t symbols)
{
    sb_encoded_pair *pair = memory_new((size_t)pairs * sizeof *pair);
    int32_t *ids = memory_new((size_t)(pairs * length * 2) * sizeof *ids);
    for (int64_t i = 0; pair && ids && i < pairs; i++) {
        int32_t *source = ids + 2 * i * length, *target = source + length;
        draw(random, symbols, 2 * length, source);
        pair[i] = (sb_encoded_pair){source, target, length, length - 1};
    }
    sb_batch *batch = pair && ids ? sb_batch_new(pairs, pair) : sb_fail("worker: out of memory");
    memory_free(pair);
    memory_free(ids);
    return batch;
}

static sb_tensor *make_ids(sb_random *random, int64_t pairs, int64_t length, int64_t symbols)
{
    sb_tensor *ids = sb_tensor_zeros(SB_I32, SB_SHAPE(pairs, length));
    return ids && draw(random, symbols, pairs * length, sb_tensor_data(ids)) ? ids : NULL;
}

static bool make_data(struct training *t, const char *line)
{
    int64_t pairs, length, symbols;
    bool ok = worker_whole(line, "pairs", &pairs) && worker_whole(line, "length", &length) &&
              worker_whole(line, "symbols", &symbols);
    sb_random random = sb_random_new(1, SB_STREAM_DATA);
    for (int i = 0; ok && i < BATCHES; i++)
        if (t->seq2seq)
            ok = (t->batch[i] = make_batch(&random, pairs, length, symbols)) != NULL;
        else
            ok = (t->ids[i] = make_ids(&random, pairs, length, symbols)) != NULL;
    return ok;
}

static bool make_seq2seq(struct training *t, const char *line, sb_vocabulary *words)
{
    sb_seq2seq_options options = {.transformer.dropout = 0};
    int64_t tied;
    if (!words_transformer(line, &options.transformer) || !worker_whole(line, "tied", &tied))
        return false;
    options.tie_embeddings = tied != 0;
    t->seq2seq = sb_seq2seq_for(t->weights, words, words, &options);
    return t->seq2seq != NULL;
}

/* As GPT-2, except for the output bias of softback's models. */
static bool make_language_model(struct training *t, const char *line, sb_vocabulary *words)
{
    sb_language_model_options options = {.tie_embeddings = true};
    if (!words_transformer(line, &options.transformer) ||
        !worker_whole(line, "positions", &options.transformer.longest))
        return false;
    options.transformer.positions = SB_POSITIONS_LEARNED;
    options.transformer.activation = SB_ACTIVATION_GELU_TANH;
    t->language = sb_language_model_for(t->weights, words, &options);
    return t->language != NULL;
}

static void *training_open(const char *line,
                           bool (*make)(struct training *, const char *, sb_vocabulary *))
{
    struct training *t = memory_new(sizeof *t);
    if (!t)
        return sb_fail("worker: out of memory");
    sb_vocabulary *words = words_vocabulary(line);
    t->dropout = sb_random_new(1, SB_STREAM_TRAIN);
    t->weights = sb_parameters_new(1);
    t->adam = t->weights ? sb_adam_new(t->weights, NULL) : NULL;
    const bool ok = words && t->adam && make(t, line, words) && make_data(t, line);
    sb_vocabulary_release(words);
    if (ok)
        return t;
    training_close(t);
    return NULL;
}

static void *seq2seq_open(const char *line)
{
    return training_open(line, make_seq2seq);
}

static void *language_model_open(const char *line)
{
    return training_open(line, make_language_model);
}

/* The named tensors of batch b; returns their number. */
static int name_batch(const struct training *t, int b, char name[][NAME], sb_named_tensor items[])
{
    const char *const names[] = {"source", "target_in", "target_out"};
    const sb_batch *batch = t->batch[b];
    const int n = batch ? 3 : 1;
    for (int i = 0; i < n; i++) {
        snprintf(name[i], NAME, "batch.%d.%s", b, batch ? names[i] : "ids");
        items[i] = (sb_named_tensor){name[i], batch ? sb_batch_get(batch, names[i]) : t->ids[b]};
    }
    return n;
}

static bool training_save(void *job, const char *path)
{
    const struct training *t = job;
    char name[3 * BATCHES][NAME];
    const int64_t count = sb_parameters_count(t->weights);
    sb_named_tensor *items = memory_new((size_t)(count + 3 * BATCHES) * sizeof *items);
    if (!items)
        return sb_fail("worker: out of memory");
    int n = 0;
    for (int b = 0; b < BATCHES; b++)
        n += name_batch(t, b, name + n, items + n);
    for (int64_t i = 0; i < count; i++)
        items[n++] =
            (sb_named_tensor){sb_parameters_name(t->weights, i), sb_parameters_get(t->weights, i)};
    const bool ok = sb_safetensors_save(path, n, items, 0, NULL);
    memory_free(items);
    return ok;
}

static double train(struct training *t, double *value)
{
    const int b = (int)(t->steps++ % BATCHES);
    sb_tape tape;
    const double begun = worker_clock();
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &t->dropout);
    sb_tensor *loss = t->seq2seq ? sb_seq2seq_loss(t->seq2seq, t->batch[b])
                                 : sb_language_model_loss(t->language, t->ids[b]);
    bool ok = sb_backward(loss) && sb_optimiser_step(t->adam);
    *value = ok ? sb_tensor_value(loss) : 0;
    ok = sb_tape_end(&tape) && ok;
    return ok ? worker_clock() - begun : -1;
}

static double training_step(void *job)
{
    double loss;
    return train(job, &loss);
}

static bool training_check(void *job, struct numbers *losses)
{
    for (int i = 0; i < CHECKED_STEPS; i++) {
        double loss;
        if (train(job, &loss) < 0 || !numbers_add(losses, loss))
            return false;
    }
    return true;
}

const struct job_kind job_seq2seq = {"seq2seq",      seq2seq_open,  training_save,
                                     training_check, training_step, training_close};
const struct job_kind job_language_model = {"language_model", language_model_open, training_save,
                                            training_check,   training_step,       training_close};
