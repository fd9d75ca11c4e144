/* softback bench: what a training step and a decoding step cost on this machine. */
#include "models/program/bench.h"
#include "autograd/tape.h"
#include "models/program/command.h"
#include "models/program/machine_options.h"
#include "models/program/progress.h"
#include "models/seq2seq.h"
#include "nn/optimiser.h"
#include "ops/gemm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 30, POSITIONS = 512 };

struct request {
    bool train, decode, attention;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (strcmp(argument, "train") == 0)
            request->train = true;
        else if (strcmp(argument, "decode") == 0)
            request->decode = true;
        else if (strcmp(argument, "attention") == 0)
            request->attention = true;
        else
            argp_failure(state, EXIT_USAGE, 0, "\"%s\" is none of train, decode, attention",
                         argument);
        return 0;
    default:
        return machine_option(key, argument, state);
    }
}

struct bench {
    sb_data *data;
    sb_parameters *weights;
    sb_seq2seq *model;
    sb_optimiser *adam;
};

static void bench_close(struct bench *b)
{
    sb_optimiser_free(b->adam);
    sb_seq2seq_free(b->model);
    sb_parameters_free(b->weights);
    sb_data_free(b->data);
}

static bool bench_open(struct bench *b, const sb_transformer_options *transformer)
{
    const sb_task_options lengths = {.min_length = 16, .max_length = 16};
    const sb_data_options batches = {.seed = 1, .batch_pairs = 64};
    const sb_seq2seq_options options = {.transformer = *transformer};
    *b = (struct bench){.data = sb_data_task_with(SB_TASK_REVERSE, &lengths, &batches)};
    b->weights = sb_parameters_new(1);
    b->model = sb_seq2seq_new(b->weights, b->data, &options);
    b->adam = b->model ? sb_adam_new(b->weights, NULL) : NULL;
    if (b->adam)
        return true;
    bench_close(b);
    return false;
}

static bool train_step(struct bench *b, sb_random *random, int64_t *targets)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, random);
    const sb_batch *batch = sb_data_next(b->data);
    bool ok = sb_backward(sb_seq2seq_loss(b->model, batch)) && sb_optimiser_step(b->adam);
    if (batch)
        *targets = batch->targets;
    return sb_tape_end(&tape) && ok;
}

static bool bench_train(const char *name, const sb_transformer_options *transformer)
{
    struct bench b;
    if (!bench_open(&b, transformer))
        return false;
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    double seconds[STEPS];
    int64_t targets = 0;
    bool ok = true;
    for (int i = -3; ok && i < STEPS; i++) {
        double begun = bench_now();
        ok = train_step(&b, &random, &targets);
        if (i >= 0)
            seconds[i] = bench_now() - begun;
    }
    double step = ok ? bench_median(STEPS, seconds) : 0;
    if (ok)
        printf("train %-6s %8.2f ms a step  %9s target symbols/s\n", name, 1e3 * step,
               count_text((int64_t)((double)targets / step)).text);
    bench_close(&b);
    return ok;
}

/* One position more of one sentence; its time. */
static double decode_step(struct bench *b, sb_decoder_state *state, sb_tensor *memory,
                          sb_tensor *lengths)
{
    double begun = bench_now();
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *id = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(1, 1), 5));
    sb_tensor *y = sb_decoder_step(sb_seq2seq_decoder(b->model), state, id, memory, lengths, NULL);
    bool ok = sb_seq2seq_output(b->model, y) != NULL;
    return sb_tape_end(&tape) && ok ? bench_now() - begun : -1;
}

/* Least squares: seconds = a + b t. */
static void print_fit(int n, const double *seconds)
{
    double t_mean = (n + 1) / 2.0, s_mean = 0, over = 0, under = 0;
    for (int i = 0; i < n; i++)
        s_mean += seconds[i] / n;
    for (int i = 0; i < n; i++) {
        over += (i + 1 - t_mean) * (seconds[i] - s_mean);
        under += (i + 1 - t_mean) * (i + 1 - t_mean);
    }
    double slope = over / under, start = s_mean - slope * t_mean;
    printf("decode with cache: step t costs %.1f us + %.4f us * t, for t = 1..%d\n", 1e6 * start,
           1e6 * slope, n);
}

static bool decode_all(struct bench *b, double *least)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *ids = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(1, 24), 5));
    sb_tensor *lengths = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(1), 24));
    sb_tensor *memory = sb_seq2seq_encode(b->model, ids, lengths);
    sb_decoder_state *state = memory ? sb_decoder_state_new(sb_seq2seq_decoder(b->model)) : NULL;
    bool ok = state != NULL;
    for (int t = 0; ok && t < POSITIONS; t++) {
        double seconds = decode_step(b, state, memory, lengths);
        ok = seconds >= 0;
        if (seconds < least[t])
            least[t] = seconds;
    }
    sb_decoder_state_free(state);
    return sb_tape_end(&tape) && ok;
}

static bool bench_decode(void)
{
    const sb_transformer_options options = {
        .width = 128, .heads = 4, .feed_forward = 256, .encoder_layers = 4, .decoder_layers = 4};
    struct bench b;
    double least[POSITIONS]; /* of several rounds: what the machine else does only adds */
    for (int t = 0; t < POSITIONS; t++)
        least[t] = 1e9;
    bool ok = bench_open(&b, &options);
    for (int round = 0; ok && round < 7; round++)
        ok = decode_all(&b, least);
    if (ok)
        print_fit(POSITIONS, least);
    if (b.data)
        bench_close(&b);
    return ok;
}

static int bench(const struct request *request)
{
    const sb_transformer_options toy = {.width = 64,
                                        .heads = 2,
                                        .feed_forward = 128,
                                        .encoder_layers = 2,
                                        .decoder_layers = 2,
                                        .dropout = 0.1};
    const sb_transformer_options usual = {.dropout = 0.1};
    bool all = !request->train && !request->decode && !request->attention;
    if (sb_device_in_use() == sb_device_cpu())
        machine_print_cpu();
    else
        machine_print_cuda();
    bool ok = true;
    if (request->train || all)
        ok = bench_train("toy", &toy) && bench_train("usual", &usual);
    if (ok && (request->decode || all))
        ok = bench_decode();
    if (ok && (request->attention || all))
        ok = bench_attention();
    return ok ? EXIT_OK : command_failed("bench");
}

static int run(int argc, char **argv)
{
    static const struct argp_option options[] = {MACHINE_OPTIONS(0), {0}};
    const struct argp argp = {
        options,
        parse,
        "[train] [decode] [attention]",
        "Measures a training step (median of 30; toy: width 64, 2+2 layers; usual: the defaults of "
        "train; reversing 64 sequences of 16 digits), fits what a cached decoding step costs, and "
        "compares the two algorithms of attention with each other and with the processor's peak.",
        NULL,
        NULL,
        NULL};
    struct request request = {0};
    int wrong = command_parse(&argp, "bench", argc, argv, &request);
    return wrong < 0 ? bench(&request) : wrong;
}

const struct command command_bench = {"bench", "measures training, decoding and attention", run};
