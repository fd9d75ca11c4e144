/*
 * The highest rates of this machine: the fastest of many tries, since other load only makes a try
 * slower. A first call touches all pages and warms the caches: no training step can be faster.
 */
#include "ops/gemm.h"
#include "tensor/failure.h"
#include "tensor/philox.h"
#include "tensor/random.h"
#include "tests/bench/worker.h"
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { TRIES = 5 };

/* The least time of a try, which is one or more calls; and of all tries. */
static const double try_seconds = 1e-4, all_seconds = 0.1;

static double seconds_of(void (*call)(void *context), void *context, int64_t calls)
{
    const double begun = worker_clock();
    for (int64_t i = 0; i < calls; i++)
        call(context);
    return (worker_clock() - begun) / (double)calls;
}

double worker_best(void (*call)(void *context), void *context)
{
    call(context);
    const double begun = worker_clock(), once = seconds_of(call, context, 1);
    const int64_t calls = once < try_seconds ? (int64_t)(try_seconds / once) + 1 : 1;
    double least = once;
    for (int t = 0; t < TRIES || worker_clock() - begun < all_seconds; t++) {
        const double seconds = seconds_of(call, context, calls);
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
        for (const double begun = worker_clock(); worker_clock() - begun < all_seconds;) {
            const double before = worker_clock(), done = call();
            const double rate = done / (worker_clock() - before);
            fastest = rate > fastest ? rate : fastest;
        }
        sum += fastest;
    }
    return sum;
}

static double multiply_add(void)
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

static void copy_plainly(void *context)
{
    const struct copy *c = context;
#pragma omp parallel for schedule(static) if (c->parallel)
    for (int64_t i = 0; i < c->n; i += PART)
        memcpy(c->to + i, c->from + i, PART * sizeof(float));
}

#ifdef __SSE2__
/* Streaming stores: a line that is written need not be read first. */
static void copy_streaming(void *context)
{
    const struct copy *c = context;
#pragma omp parallel for schedule(static) if (c->parallel)
    for (int64_t i = 0; i < c->n; i += PART)
        for (int64_t k = i; k < i + PART; k += 4)
            _mm_stream_ps(c->to + k, _mm_load_ps(c->from + k));
    _mm_sfence();
}
#else
static void copy_streaming(void *context)
{
    copy_plainly(context);
}
#endif

static double best_copy(struct copy *c)
{
    const double plain = worker_best(copy_plainly, c), streaming = worker_best(copy_streaming, c);
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
        const double alone = best_copy(&c);
        c.parallel = true;
        const double together = best_copy(&c);
        seconds = alone < together ? alone : together;
    }
    sb_tensor_release(from);
    sb_tensor_release(to);
    return seconds > 0 ? 8 * (double)n / seconds : -1;
}

/* ---- random words ---- */

enum { GROUPS = 32, ROUNDS = 1 << 10 };

/* As in dropout: loops over counters, which become vector instructions. */
static inline __attribute__((always_inline)) uint32_t draw_words(uint64_t position)
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

static uint32_t draw_baseline(uint64_t position)
{
    return draw_words(position);
}

#ifdef SOFTBACK_X86_SETS
__attribute__((target("avx2"))) static uint32_t draw_v3(uint64_t position)
{
    return draw_words(position);
}

__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))) static uint32_t
draw_v4(uint64_t position)
{
    return draw_words(position);
}
#else
#define draw_v3 draw_baseline
#define draw_v4 draw_baseline
#endif

static double draw(void)
{
    uint32_t (*const ways[])(uint64_t) = {draw_baseline, draw_v3, draw_v4};
    volatile uint32_t sum = ways[kernel_cpu_set()](1);
    (void)sum;
    return 4.0 * GROUPS * ROUNDS;
}

double worker_rate(const char *words)
{
    if (strcmp(words, "fma") == 0)
        return rate_of_threads(multiply_add);
    if (strcmp(words, "philox") == 0)
        return rate_of_threads(draw);
    if (strncmp(words, "gemm ", 5) == 0)
        return worker_rate_product(words + 5);
    if (strncmp(words, "copy ", 5) == 0 && strtod(words + 5, NULL) > 0)
        return rate_copy(strtod(words + 5, NULL));
    sb_fail("worker: \"%s\" is no rate", words);
    return -1;
}
