/*
 * Training steps, as softback train makes them: forward, backward and Adam. All sequences of a
 * batch have the same length, and random symbols; BATCHES batches are used in turns.
 */
#include "models/data/windows.h"
#include "models/language_model.h"
#include "models/training/trainer.h"
#include "program/bench/job.h"
#include "program/bench/words.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <string.h>

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
    memory_free(t);
}

/* ---- batches ---- */

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
    int64_t n, length, symbols;
    if (!job_whole(line, "pairs", &n) || !job_whole(line, "length", &length) ||
        !job_whole(line, "symbols", &symbols))
        return false;
    const uint32_t words = (uint32_t)(symbols - SB_SPECIAL_SYMBOLS);
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

/* ---- models ---- */

static bool seq2seq_make(struct training *t, const char *line, sb_vocabulary *words)
{
    sb_seq2seq_options options = {.tie_embeddings = job_flag(line, "tied")};
    if (!words_transformer(line, &options.transformer))
        return false;
    sb_seq2seq *model = sb_seq2seq_for(t->weights, words, words, &options);
    if (model)
        t->model = sb_seq2seq_as_model(model);
    return model && training_make_batches(t, line, training_pairs);
}

/* As GPT-2, except for the output bias of softback's models. */
static bool language_model_make(struct training *t, const char *line, sb_vocabulary *words)
{
    sb_language_model_options options = {.tie_embeddings = true};
    if (!words_transformer(line, &options.transformer) ||
        !job_whole(line, "positions", &options.transformer.longest))
        return false;
    options.transformer.positions = SB_POSITIONS_LEARNED;
    options.transformer.activation = SB_ACTIVATION_GELU_TANH;
    sb_language_model *model = sb_language_model_for(t->weights, words, &options);
    if (model)
        t->model = sb_language_model_as_model(model);
    return model && training_make_batches(t, line, training_windows);
}

static void *training_open(const char *line,
                           bool (*make)(struct training *, const char *, sb_vocabulary *))
{
    struct training *t = memory_new(sizeof *t);
    if (!t)
        return sb_fail("bench: out of memory");
    const sb_source source = {
        .object = t, .next = training_next, .tell = training_tell, .seek = training_seek};
    const sb_trainer_options options = {
        .seed = 1, .graphs = job_flag(line, "eager") ? SB_GRAPHS_OFF : SB_GRAPHS_AUTO};
    sb_vocabulary *words = words_vocabulary(line);
    t->weights = words ? sb_parameters_new(1) : NULL;
    if (t->weights && make(t, line, words))
        t->trainer = sb_trainer_for(&t->model, &source, &options);
    sb_vocabulary_release(words);
    if (t->trainer)
        return t;
    training_close(t);
    return NULL;
}

static void *seq2seq_open(const char *line)
{
    return training_open(line, seq2seq_make);
}

static void *language_model_open(const char *line)
{
    return training_open(line, language_model_make);
}

/* ---- steps ---- */

static double training_step(void *job)
{
    const struct training *t = job;
    sb_trained trained;
    const double begun = bench_clock();
    return bench_since(begun, sb_trainer_step(t->trainer, &trained));
}

/* Losses. */
static bool training_check(void *job, struct job_numbers *losses)
{
    const struct training *t = job;
    sb_trained trained;
    bool ok = true;
    for (int i = 0; ok && i < CHECKED_STEPS; i++)
        ok = sb_trainer_step(t->trainer, &trained) && job_add(losses, trained.loss);
    return ok;
}

static int training_tensors(void *job, sb_named_tensor items[])
{
    static const char *const inputs[INPUTS] = {"source", "target_in", "target_out"};
    struct training *t = job;
    int n = (int)sb_parameters_count(t->weights);
    for (int i = 0; items && i < n; i++)
        items[i] =
            (sb_named_tensor){sb_parameters_name(t->weights, i), sb_parameters_get(t->weights, i)};
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
static bool training_work(const char *line, struct job_work *work)
{
    sb_transformer_options o;
    int64_t pairs, length, symbols;
    if (!words_transformer(line, &o) || !job_whole(line, "pairs", &pairs) ||
        !job_whole(line, "length", &length) || !job_whole(line, "symbols", &symbols))
        return false;
    const bool alone = job_kind_of(line) == &job_language_model; /* a decoder */
    const double C = (double)o.width, F = (double)o.feed_forward, L = (double)length,
                 N = o.decoder_layers;
    const double layer = alone ? 4 * C * C + 2 * C * F : 12 * C * C + 4 * C * F;
    const double weights = N * layer + C * (double)symbols;
    work->tokens = (double)pairs * L;
    work->operations = 3 * work->tokens * (2 * weights + (alone ? 1 : 3) * N * 4 * C * L);
    return true;
}

#define TRAINING(name)                                                                             \
    {                                                                                              \
#name, training_work, name##_open, training_step, training_check, training_tensors,        \
            training_weights, training_close                                                       \
    }

const struct job_kind job_seq2seq = TRAINING(seq2seq);
const struct job_kind job_language_model = TRAINING(language_model);
