/*
 * A decoding step of one sentence with a KV cache, as a line fitted to the times of steps
 * t = 1..512, each the least of several rounds, since other load only adds time. A step reads every
 * weight of the decoder once; weights in the CPU's cache are read faster than a large copy.
 */
#include "autograd/tape.h"
#include "models/seq2seq.h"
#include "ops/packed_weights.h"
#include "program/bench/bench.h"
#include <stdio.h>
#include <string.h>

enum { POSITIONS = 512, ROUNDS = 7, QUICK = 8, SOURCE = 24, PARTS = 8 };

static const struct way {
    const char *name;
    sb_weight_format format;
    double bytes; /* of a number that a step reads */
} ways[] = {{"f32", SB_WEIGHTS_AS_STORED, 4}, {"int8", SB_WEIGHTS_INT8, 1}};

struct decoding {
    sb_data *data;
    sb_parameters *weights;
    sb_seq2seq *model;
    sb_decoder_state *state;
    sb_tensor *memory, *lengths;
};

static void bench_decoding_close(struct decoding *d)
{
    sb_seq2seq_free(d->model);
    sb_parameters_free(d->weights);
    sb_data_free(d->data);
}

static bool bench_decoding_open(struct decoding *d)
{
    const sb_seq2seq_options options = {.transformer = {.width = 128,
                                                        .heads = 4,
                                                        .feed_forward = 256,
                                                        .encoder_layers = 4,
                                                        .decoder_layers = 4}};
    *d = (struct decoding){.data = sb_data_task("reverse", 1)};
    d->weights = d->data ? sb_parameters_new(1) : NULL;
    d->model = d->weights ? sb_seq2seq_new(d->weights, d->data, &options) : NULL;
    return d->model != NULL;
}

/* Decodes one more position; its time. */
static double bench_step(struct decoding *d)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const double begun = bench_clock();
    sb_tensor *id = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(1, 1), 5));
    sb_tensor *y =
        sb_decoder_step(sb_seq2seq_decoder(d->model), d->state, id, d->memory, d->lengths, NULL);
    const double seconds = bench_since(begun, sb_seq2seq_output(d->model, y) != NULL);
    return sb_tape_end(&tape) ? seconds : -1;
}

static bool decode_all(struct decoding *d, sb_weight_format format, int n, double *least)
{
    sb_tape tape;
    struct packed_weights *packed = packed_weights_new(format);
    sb_tape_begin_with(&tape, SB_NO_RECORD,
                       &(sb_context){.packed = packed, .batch_invariant = true});
    sb_tensor *ids = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(1, SOURCE), 5));
    d->lengths = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(1), SOURCE));
    d->memory = sb_seq2seq_encode(d->model, ids, d->lengths);
    d->state = d->memory ? sb_decoder_state_new(sb_seq2seq_decoder(d->model)) : NULL;
    bool ok = packed && d->state != NULL;
    for (int t = 0; ok && t < n; t++) {
        double seconds = bench_step(d);
        ok = seconds >= 0;
        if (seconds < least[t])
            least[t] = seconds;
    }
    sb_decoder_state_free(d->state);
    ok = sb_tape_end(&tape) && ok;
    packed_weights_free(packed);
    return ok;
}

/* Numbers that a step reads: the weights of the decoder's layers and of the output. */
static double bench_numbers_read(const sb_parameters *weights)
{
    double count = 0;
    for (int64_t i = 0; i < sb_parameters_count(weights); i++)
        if (strncmp(sb_parameters_name(weights, i), "encoder", 7) != 0)
            count += (double)sb_tensor_size(sb_parameters_get(weights, i));
    return count;
}

/* Least squares: seconds = start + slope t. */
static void bench_print_fit(const struct bench *bench, const struct way *way, int n,
                            const double *seconds, double numbers)
{
    double t_mean = (n + 1) / 2.0, s_mean = 0, over = 0, under = 0;
    for (int i = 0; i < n; i++)
        s_mean += seconds[i] / n;
    for (int i = 0; i < n; i++) {
        over += (i + 1 - t_mean) * (seconds[i] - s_mean);
        under += (i + 1 - t_mean) * (i + 1 - t_mean);
    }
    const double slope = over / under;
    for (int t = 1; t <= n; t += n - 1) {
        char name[32];
        snprintf(name, sizeof name, "with cache, t = %d", t);
        bench_print(bench, &(struct bench_row){.group = "decode",
                                               .name = name,
                                               .way = way->name,
                                               .seconds = s_mean + slope * (t - t_mean),
                                               .amount = 1,
                                               .unit = "tokens/s",
                                               .limit = BENCH_COPY,
                                               .work = way->bytes * numbers});
    }
}

/* For programs, which can check the fit: the mean time in each eighth of the steps. */
static void bench_print_parts(const struct bench *bench, const struct way *way, int n,
                              const double *seconds)
{
    for (int first = 0; first < n; first += n / PARTS) {
        double mean = 0;
        for (int t = first; t < first + n / PARTS; t++)
            mean += seconds[t] / (n / PARTS);
        char name[40];
        snprintf(name, sizeof name, "steps %d to %d", first + 1, first + n / PARTS);
        bench_print(bench, &(struct bench_row){
                               .group = "decode", .name = name, .way = way->name, .seconds = mean});
    }
}

static bool bench_way(struct bench *bench, const struct way *way, struct decoding *d)
{
    const int positions = bench->quick ? QUICK : POSITIONS;
    double least[POSITIONS];
    for (int t = 0; t < POSITIONS; t++)
        least[t] = 1e9;
    for (int round = 0; round < (bench->quick ? 1 : ROUNDS); round++)
        if (!decode_all(d, way->format, positions, least))
            return false;
    bench_print_fit(bench, way, positions, least, bench_numbers_read(d->weights));
    if (bench->tabs)
        bench_print_parts(bench, way, positions, least);
    return true;
}

bool bench_decode(struct bench *bench)
{
    struct decoding d;
    bool ok = bench_decoding_open(&d);
    const int count = bench->gpu ? 1 : 2; /* int8 is for the CPU */
    for (int way = 0; ok && way < count; way++)
        ok = bench_way(bench, &ways[way], &d);
    bench_decoding_close(&d);
    return ok;
}
