/*
 * Tiled and composed attention, forward and backward. The work is counted as six products over the
 * pairs that the mask keeps, 12 D operations a pair; tiled backward computes a seventh.
 */
#include "autograd/tape.h"
#include "ops/ops.h"
#include "program/bench/bench.h"
#include <stdio.h>

enum { SIZE = 64, WINDOW_LENGTH = 256 };

enum kind { FULL, CAUSAL, WINDOW };
enum where { BOTH, ON_CPU, ON_GPU };

struct shape {
    int64_t n, heads;
    enum kind kind;
    double dropout;
    bool composed; /* also measured composed, which stores n^2 weights a head */
    enum where where;
};

static const struct shape shapes[] = {
    {256, 8, FULL, 0, true, ON_CPU},      {512, 8, FULL, 0, true, BOTH},
    {1024, 8, FULL, 0, true, BOTH},       {2048, 8, FULL, 0, true, ON_GPU},
    {4096, 8, FULL, 0, true, BOTH},       {8192, 8, FULL, 0, false, ON_GPU},
    {16384, 8, FULL, 0, false, ON_GPU},   {4096, 8, FULL, 0.1, true, BOTH},
    {4096, 1, FULL, 0, true, BOTH},       {512, 8, CAUSAL, 0, false, ON_GPU},
    {1024, 8, CAUSAL, 0, false, ON_GPU},  {2048, 8, CAUSAL, 0, false, ON_GPU},
    {4096, 8, CAUSAL, 0, true, BOTH},     {8192, 8, CAUSAL, 0, false, BOTH},
    {16384, 8, CAUSAL, 0, false, ON_GPU}, {4096, 8, WINDOW, 0, true, BOTH},
    {8192, 8, WINDOW, 0, false, BOTH},    {16384, 8, WINDOW, 0, false, BOTH},
};
static const struct shape quick_shape = {64, 2, CAUSAL, 0.1, true, BOTH};

static double bench_pairs(const struct shape *s)
{
    double n = (double)s->n, window = s->n < WINDOW_LENGTH ? n : WINDOW_LENGTH;
    double kept = s->kind == FULL     ? n * n
                  : s->kind == CAUSAL ? n * (n + 1) / 2
                                      : n * window - window * (window - 1) / 2;
    return kept * (double)s->heads;
}

static const struct way {
    const char *name;
    sb_dtype dtype;
    sb_attention_algorithm algorithm;
    bool tf32x3, gpu; /* on a GPU only */
} ways[] = {
    {"f32, tiled", SB_F32, SB_ATTENTION_TILED, false, false},
    {"f32, composed", SB_F32, SB_ATTENTION_COMPOSED, false, false},
    {"tf32x3, tiled", SB_F32, SB_ATTENTION_TILED, true, true},
    {"bf16, tiled", SB_BF16, SB_ATTENTION_TILED, false, true},
    {"bf16, composed", SB_BF16, SB_ATTENTION_COMPOSED, false, true},
};

struct call {
    const struct shape *shape;
    const struct way *way;
    sb_tensor *q, *k, *v, *dy;
};

static double bench_call_once(void *context)
{
    const struct call *c = context;
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_attention_options o = {
        .algorithm = c->way->algorithm, .tf32x3 = c->way->tf32x3, .dropout = c->shape->dropout};
    if (c->shape->kind == CAUSAL)
        o.mask = sb_mask_causal();
    if (c->shape->kind == WINDOW)
        o.mask = sb_mask_window(WINDOW_LENGTH - 1, 0);
    const double begun = bench_clock();
    bool ok = sb_backward_from(sb_attention(c->q, c->k, c->v, &o), c->dy);
    const double seconds = bench_since(begun, ok);
    sb_tensor *const inputs[] = {c->q, c->k, c->v};
    for (int i = 0; i < 3; i++)
        sb_tensor_clear_grad(inputs[i]);
    return sb_tape_end(&tape) ? seconds : -1;
}

static double bench_measure(struct bench *bench, const struct shape *s, const struct way *way)
{
    const sb_dtype dtype = way->dtype;
    struct call c = {s,
                     way,
                     bench_values(dtype, 1, SB_SHAPE(1, s->n, s->heads, SIZE)),
                     bench_values(dtype, 2, SB_SHAPE(1, s->n, s->heads, SIZE)),
                     bench_values(dtype, 3, SB_SHAPE(1, s->n, s->heads, SIZE)),
                     bench_values(dtype, 4, SB_SHAPE(1, s->n, s->heads, SIZE))};
    bool ok = sb_tensor_requires_grad(c.q) && sb_tensor_requires_grad(c.k) &&
              sb_tensor_requires_grad(c.v) && c.dy;
    const double seconds = ok ? bench_median(bench, BENCH_F32, bench_call_once, &c) : -1;
    sb_tensor *const all[] = {c.q, c.k, c.v, c.dy};
    for (int i = 0; i < 4; i++)
        sb_tensor_release(all[i]);
    return seconds;
}

static bool bench_shape(struct bench *bench, const struct shape *s, const struct way *way)
{
    static const char *const kinds[] = {"full", "causal", "window"};
    char name[64];
    snprintf(name, sizeof name, "%s %lld x %lld%s", kinds[s->kind], (long long)s->n,
             (long long)s->heads, s->dropout > 0 ? ", dropout" : "");
    const double seconds = bench_measure(bench, s, way);
    if (seconds < 0)
        return false;
    const double work = 12 * SIZE * bench_pairs(s);
    bench_print(bench, &(struct bench_row){.group = "attention",
                                           .name = name,
                                           .way = way->name,
                                           .seconds = seconds,
                                           .amount = work,
                                           .unit = "FLOP/s",
                                           .limit = way->dtype == SB_F32 ? BENCH_F32 : BENCH_BF16,
                                           .work = work});
    return true;
}

static bool bench_ways(struct bench *bench, const struct shape *s)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const struct way *way = &ways[i];
        const bool measured =
            (bench->gpu || !way->gpu) && (s->composed || way->algorithm == SB_ATTENTION_TILED);
        if (measured && !bench_shape(bench, s, way))
            return false;
    }
    sb_device_trim(sb_device_in_use());
    return true;
}

bool bench_attention(struct bench *bench)
{
    const enum where elsewhere = bench->gpu ? ON_CPU : ON_GPU;
    if (bench->quick)
        return bench_ways(bench, &quick_shape);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (shapes[i].where != elsewhere && !bench_ways(bench, &shapes[i]))
            return false;
    return true;
}
