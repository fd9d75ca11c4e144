/*
 * Training steps at sizes at which other libraries are measured too. All sequences of a batch have
 * the same length, dropout is 0.1, and a step is forward, backward and Adam.
 */
#include "models/training/trainer.h"
#include "program/bench/profile.h"
#include <stdio.h>
#include <string.h>

struct size {
    const char *name;
    int64_t width, heads, feed_forward;
    int layers; /* on each side */
    int64_t pairs, length;
    int64_t symbols; /* of the vocabulary */
    bool tied, gpu;  /* only on a GPU */
};

static const struct size sizes[] = {
    {"toy", 64, 2, 128, 2, 64, 16, 64, false, false},
    {"usual", 128, 4, 512, 3, 64, 16, 64, false, false}, /* the defaults of train */
    {"tiny", 128, 4, 256, 4, 64, 24, 10000, true, false},
    {"base", 512, 8, 2048, 6, 16, 64, 8000, true, false},
    {"base, 256 pairs", 512, 8, 2048, 6, 256, 64, 8000, true, true},
};
static const struct size quick_size = {"quick", 16, 2, 16, 1, 2, 8, 16, true, false};

struct way {
    const char *name;
    sb_precision precision;
    sb_graphs graphs;
    bool gpu;
};

static const struct way ways[] = {
    {"f32", SB_PRECISION_F32, SB_GRAPHS_AUTO, false},
    {"f32, no graph", SB_PRECISION_F32, SB_GRAPHS_OFF, true},
    {"bf16", SB_PRECISION_BF16, SB_GRAPHS_AUTO, false},
    {"bf16, no graph", SB_PRECISION_BF16, SB_GRAPHS_OFF, true},
};

/* The floating-point operations of the products of a step, which are 3 times those of forward: of
   weights (2 for each weight and position) and of attention (4 C for each pair of positions). */
static double bench_step_operations(const struct size *s)
{
    const double C = (double)s->width, F = (double)s->feed_forward, L = (double)s->length;
    const double positions = (double)s->pairs * L;
    const double encoder = 4 * C * C + 2 * C * F, decoder = 8 * C * C + 2 * C * F;
    const double weights = s->layers * (encoder + decoder) + C * (double)s->symbols;
    return 3 * positions * (2 * weights + 3 * s->layers * 4 * C * L);
}

/* n words of the vocabulary, from word `first` on. */
static const char *bench_sentence(const struct size *s, int64_t first, int64_t n)
{
    static char text[1024];
    size_t used = 0;
    for (int64_t i = 0; i < n && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, i ? " w%lld" : "w%lld",
                                 (long long)((first + i) % (s->symbols - SB_SPECIAL_SYMBOLS)));
    return text;
}

/* Full batches in which each word occurs. A target is a word shorter: "end" is added to it. */
static sb_pairs *bench_make_pairs(const struct size *s)
{
    const int64_t batches = 1 + s->symbols / (s->pairs * (s->length - 1));
    sb_pairs *pairs = sb_pairs_new();
    bool ok = pairs != NULL;
    for (int64_t i = 0; ok && i < batches * s->pairs; i++) {
        char source[1024];
        strcpy(source, bench_sentence(s, i * s->length, s->length));
        ok = sb_pairs_add(pairs, source, bench_sentence(s, i * (s->length - 1), s->length - 1));
    }
    if (ok)
        return pairs;
    sb_pairs_free(pairs);
    return NULL;
}

static sb_data *bench_make_data(const struct size *s)
{
    const sb_vocabulary_options words = {.units = SB_UNITS_WORDS};
    const sb_data_options options = {
        .seed = 1, .batch_pairs = s->pairs, .batch_symbols = s->pairs * s->length};
    sb_pairs *pairs = bench_make_pairs(s);
    sb_vocabulary *v =
        pairs ? sb_vocabulary_new(sb_pairs_sources(pairs), sb_pairs_count(pairs), &words) : NULL;
    sb_data *data = v ? sb_data_new(pairs, v, v, &options) : NULL;
    sb_vocabulary_release(v);
    sb_pairs_free(pairs);
    return data;
}

static double bench_step_once(void *context)
{
    sb_trained trained;
    const double begun = bench_clock();
    return bench_since(begun, sb_trainer_step(context, &trained));
}

static double bench_measure(struct bench *bench, const struct size *s, const struct way *way)
{
    const sb_seq2seq_options options = {.transformer = {.width = s->width,
                                                        .heads = s->heads,
                                                        .feed_forward = s->feed_forward,
                                                        .encoder_layers = s->layers,
                                                        .decoder_layers = s->layers,
                                                        .dropout = 0.1,
                                                        .precision = way->precision},
                                        .tie_embeddings = s->tied};
    const int64_t outside = bench_memory_live();
    sb_data *data = bench_make_data(s);
    sb_parameters *weights = data ? sb_parameters_new(1) : NULL;
    sb_seq2seq *model = weights ? sb_seq2seq_new(weights, data, &options) : NULL;
    sb_trainer *trainer =
        model ? sb_trainer_new(model, data, &(sb_trainer_options){.seed = 1, .graphs = way->graphs})
              : NULL;
    double seconds = trainer ? bench_median(bench, BENCH_F32, bench_step_once, trainer) : -1;
    if (seconds >= 0 && bench->profile &&
        !bench_profile(bench, s->name, way->name, bench_step_once, trainer, weights, outside))
        seconds = -1;
    sb_trainer_free(trainer);
    sb_seq2seq_free(model);
    sb_parameters_free(weights);
    sb_data_free(data);
    return seconds;
}

static bool bench_size(struct bench *bench, const struct size *s)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const struct way *way = &ways[i];
        if (way->gpu && !bench->gpu)
            continue;
        const double seconds = bench_measure(bench, s, way);
        if (seconds < 0)
            return false;
        bench_print(bench,
                    &(struct bench_row){.group = "train",
                                        .name = s->name,
                                        .way = way->name,
                                        .seconds = seconds,
                                        .amount = (double)(s->pairs * s->length),
                                        .unit = "tokens/s",
                                        .limit = way->precision == SB_PRECISION_BF16 ? BENCH_BF16
                                                                                     : BENCH_F32,
                                        .work = bench_step_operations(s)});
        sb_device_trim(sb_device_in_use());
    }
    return true;
}

bool bench_train(struct bench *bench)
{
    if (bench->quick)
        return bench_size(bench, &quick_size);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if ((bench->gpu || !sizes[i].gpu) && !bench_size(bench, &sizes[i]))
            return false;
    return true;
}
