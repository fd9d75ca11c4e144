/*
 * The highest rates of this machine: the fastest of many tries, since other load only makes a try
 * slower. A first call touches all pages and warms the caches: no training step can be faster.
 */
#include "program/bench/rates.h"
#include "ops/gemm.h"
#include "tensor/failure.h"
#include "tensor/philox.h"
#include "tensor/random.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { TRIES = 5 };

/* The least time of a try, which is one or more calls; and of all tries. */
static const double try_seconds = 1e-4, all_seconds = 0.1;

static double rates_seconds_of(void (*call)(void *context), void *context, int64_t calls)
{
    const double begun = bench_clock();
    for (int64_t i = 0; i < calls; i++)
        call(context);
    return (bench_clock() - begun) / (double)calls;
}

static double rates_best(void (*call)(void *context), void *context)
{
    call(context);
    const double begun = bench_clock(), once = rates_seconds_of(call, context, 1);
    const int64_t calls = once < try_seconds ? (int64_t)(try_seconds / once) + 1 : 1;
    double least = once;
    for (int t = 0; t < TRIES || bench_clock() - begun < all_seconds; t++) {
        const double seconds = rates_seconds_of(call, context, calls);
        least = seconds < least ? seconds : least;
    }
    return least;
}

/* ---- rates of independent threads ---- */

/* The sum of the threads' best rates while all run; a call returns its amount of work. */
static double rate_of_threads(double (*call)(void))
{
    double sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        double fastest = 0;
        for (const double begun = bench_clock(); bench_clock() - begun < all_seconds;) {
            const double before = bench_clock(), done = call();
            const double rate = done / (bench_clock() - before);
            fastest = rate > fastest ? rate : fastest;
        }
        sum += fastest;
    }
    return sum;
}

static double rates_multiply_add(void)
{
    const struct gemm_kernels *kernels = gemm_rows.row[kernel_cpu_set()][SB_F32];
    return kernels->peak(20000);
}

/* ---- copies ---- */

enum { PART = 1 << 10 }; /* floats; threads copy runs of such parts */

struct copy {
    int64_t n; /* floats, a multiple of PART */
    const float *from;
    float *to;
    bool parallel; /* one thread is faster if waking others takes longer than copying */
};

static void rates_copy_plainly(void *context)
{
    const struct copy *c = context;
#pragma omp parallel for schedule(static) if (c->parallel)
    for (int64_t i = 0; i < c->n; i += PART)
        memcpy(c->to + i, c->from + i, PART * sizeof(float));
}

#ifdef __SSE2__
/* Streaming stores: a line that is written need not be read first. */
static void rates_copy_streaming(void *context)
{
    const struct copy *c = context;
#pragma omp parallel for schedule(static) if (c->parallel)
    for (int64_t i = 0; i < c->n; i += PART)
        for (int64_t k = i; k < i + PART; k += 4)
            _mm_stream_ps(c->to + k, _mm_load_ps(c->from + k));
    _mm_sfence();
}
#else
static void rates_copy_streaming(void *context)
{
    rates_copy_plainly(context);
}
#endif

static double rates_best_copy(struct copy *c)
{
    const double plain = rates_best(rates_copy_plainly, c),
                 streaming = rates_best(rates_copy_streaming, c);
    return plain < streaming ? plain : streaming;
}

static double rate_copy(double bytes)
{
    const int64_t n = ((int64_t)(bytes / 8) + PART - 1) / PART * PART;
    sb_tensor *from = sb_tensor_full(SB_F32, SB_SHAPE(n), 1);
    sb_tensor *to = sb_tensor_full(SB_F32, SB_SHAPE(n), 0);
    double seconds = -1;
    if (from && to) {
        struct copy c = {n, sb_tensor_data(from), sb_tensor_data(to), false};
        const double alone = rates_best_copy(&c);
        c.parallel = true;
        const double together = rates_best_copy(&c);
        seconds = alone < together ? alone : together;
    }
    sb_tensor_release(from);
    sb_tensor_release(to);
    return seconds > 0 ? 8 * (double)n / seconds : -1;
}

/* ---- random words ---- */

enum { GROUPS = 32, ROUNDS = 1 << 10 };

/* As in dropout: loops over counters, which become vector instructions. */
static inline __attribute__((always_inline)) uint32_t rates_draw_words(uint64_t position)
{
    uint32_t sum[4][GROUPS] = {{0}}, all = 0;
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (uint64_t g = 0; g < GROUPS; g++) {
            const struct philox drawn = philox(1, position, GROUPS * round + g);
            for (int w = 0; w < 4; w++)
                sum[w][g] ^= drawn.word[w];
        }
    for (int w = 0; w < 4; w++)
        for (int g = 0; g < GROUPS; g++)
            all ^= sum[w][g];
    return all;
}

static uint32_t rates_draw_baseline(uint64_t position)
{
    return rates_draw_words(position);
}

#ifdef SOFTBACK_X86_SETS
__attribute__((target("avx2"))) static uint32_t rates_draw_v3(uint64_t position)
{
    return rates_draw_words(position);
}

__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))) static uint32_t
rates_draw_v4(uint64_t position)
{
    return rates_draw_words(position);
}
#else
#define rates_draw_v3 rates_draw_baseline
#define rates_draw_v4 rates_draw_baseline
#endif

static double rates_draw(void)
{
    uint32_t (*const ways[])(uint64_t) = {rates_draw_baseline, rates_draw_v3, rates_draw_v4};
    volatile uint32_t sum = ways[kernel_cpu_set()](1);
    (void)sum;
    return 4.0 * GROUPS * ROUNDS;
}

/* ---- matrix products ---- */

struct product {
    gemm_function *gemm;
    bool ta, tb;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
};

static void rates_multiply(void *context)
{
    const struct product *p = context;
    p->gemm(p->ta, p->tb, p->m, p->n, p->k, p->a, p->ta ? p->m : p->k, p->b, p->tb ? p->k : p->n, 0,
            p->c, p->n);
}

/* The built-in product or OpenBLAS, whichever is faster. */
static double rate_product(const char *words)
{
    const struct gemm_kernels *kernels = gemm_rows.row[kernel_cpu_set()][SB_F32];
    struct product p = {.gemm = kernels->builtin};
    int ta, tb;
    if (sscanf(words, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %d %d", &p.m, &p.n, &p.k, &ta, &tb) !=
            5 ||
        p.m < 1 || p.n < 1 || p.k < 1) {
        sb_fail("bench: rate gemm needs M N K and two of 0 or 1, not \"%s\"", words);
        return -1;
    }
    p.ta = ta;
    p.tb = tb;
    sb_tensor *a = bench_values(SB_F32, 1, SB_SHAPE(p.m, p.k)),
              *b = bench_values(SB_F32, 2, SB_SHAPE(p.k, p.n)),
              *c = sb_tensor_full(SB_F32, SB_SHAPE(p.m, p.n), 0);
    double seconds = -1;
    if (a && b && c) {
        p.a = sb_tensor_data(a);
        p.b = sb_tensor_data(b);
        p.c = sb_tensor_data(c);
        seconds = rates_best(rates_multiply, &p);
        p.gemm = kernels->blas;
        seconds = p.gemm ? fmin(seconds, rates_best(rates_multiply, &p)) : seconds;
    }
    sb_tensor_release(a);
    sb_tensor_release(b);
    sb_tensor_release(c);
    return seconds > 0 ? 2 * (double)p.m * (double)p.n * (double)p.k / seconds : -1;
}

double bench_rate(const char *words)
{
    if (strcmp(words, "fma") == 0)
        return rate_of_threads(rates_multiply_add);
    if (strcmp(words, "philox") == 0)
        return rate_of_threads(rates_draw);
    if (strncmp(words, "gemm ", 5) == 0)
        return rate_product(words + 5);
    if (strncmp(words, "copy ", 5) == 0 && strtod(words + 5, NULL) > 0)
        return rate_copy(strtod(words + 5, NULL));
    sb_fail("bench: \"%s\" is no rate", words);
    return -1;
}
