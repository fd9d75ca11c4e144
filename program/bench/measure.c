/*
 * Times, and what they are compared with: the limits of the device in use, and the highest rates of
 * the processor.
 */
#include "autograd/tape.h"
#include "ops/gemm.h"
#include "ops/ops.h"
#include "program/bench/job.h"
#include "tensor/clock.h"
#include "tensor/memory.h"
#include "tensor/philox.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ---- times ---- */

enum { LEAST = 3, MOST = 30, WARM = 3 };

double bench_clock(void)
{
    return sb_device_synchronize(sb_device_in_use()) ? clock_seconds() : -1;
}

double bench_since(double begun, bool ok)
{
    const double ended = bench_clock();
    return ok && begun >= 0 && ended >= 0 ? ended - begun : -1;
}

static int time_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Three calls, as the first allocates memory and the second records graphs; one if it is slow. */
static bool time_warm_up(const struct bench *bench, bench_once *once, void *context)
{
    double seconds = 0;
    for (int i = 0; i < (bench->quick ? 1 : WARM) && seconds >= 0 && seconds < 1; i++)
        seconds = once(context);
    return seconds >= 0;
}

double bench_middle(int n, double x[])
{
    qsort(x, (size_t)n, sizeof *x, time_compare);
    return x[n / 2];
}

double bench_median(struct bench *bench, enum bench_limit limit, bench_once *once, void *context)
{
    const double enough = 2;
    double seconds[MOST], rates[MOST];
    int n = 0, most = bench->quick ? 1 : MOST;
    if (!time_warm_up(bench, once, context))
        return -1;
    for (double begun = clock_seconds();
         n < most && (n < LEAST || clock_seconds() - begun < enough); n++) {
        if ((seconds[n] = once(context)) < 0)
            return -1;
        rates[n] = bench_limit_now(bench, limit);
    }
    if (rates[0] > 0)
        bench->limit[limit] = bench_middle(n, rates);
    return bench_middle(n, seconds);
}

/*
 * ---- limits ----
 *
 * The bandwidth of a large copy, counting bytes read and written, and the rate of multiply-adds. On
 * the CPU the rate is measured in registers; on other devices it is that of a large product, so
 * shares above 100 % are possible there.
 */

static double limits_copy_once(void *block)
{
    const double begun = bench_clock();
    sb_tensor *to = sb_tensor_to(block, sb_device_in_use());
    const double seconds = bench_since(begun, to != NULL);
    sb_tensor_release(to);
    return seconds;
}

static double limits_copied_bytes(const struct bench *bench)
{
    return 2 * 4 * (double)sb_tensor_size(bench->block);
}

static double limits_copy_rate(struct bench *bench)
{
    const int64_t n = bench->quick ? 1 << 12 : bench->gpu ? 1 << 28 : 1 << 26;
    if (!bench->block)
        bench->block = sb_tensor_full(SB_F32, SB_SHAPE(n), 1);
    const double seconds =
        bench->block ? bench_median(bench, BENCH_LIMITS, limits_copy_once, bench->block) : -1;
    return seconds > 0 ? limits_copied_bytes(bench) / seconds : -1;
}

/* FLOP/s of a product of two 4096 x 4096 matrices. */
static double limits_product_rate(struct bench *bench, const char *of)
{
    const int n = bench->quick ? 64 : 4096;
    char line[80];
    struct job job;
    snprintf(line, sizeof line, "product m=%d n=%d k=%d%s", n, n, n, of);
    const double seconds =
        job_open(&job, line) ? bench_median(bench, BENCH_LIMITS, job_step, &job) : -1;
    job_close(&job);
    return seconds > 0 ? 2.0 * n * n * n / seconds : -1;
}

/* Multiply-adds of all the processor's threads, for some milliseconds. */
static double limits_processor_rate(const struct bench *bench)
{
    const struct gemm_kernels *kernels = gemm_rows.row[kernel_cpu_set()][SB_F32];
    double operations = 0, begun = bench_clock();
#pragma omp parallel reduction(+ : operations)
    operations += kernels->peak(bench->quick ? 1000 : 1000000);
    return operations / bench_since(begun, true);
}

double bench_limit_now(const struct bench *bench, enum bench_limit limit)
{
    if (bench->gpu || bench->quick)
        return 0;
    if (limit == BENCH_COPY)
        return limits_copied_bytes(bench) / limits_copy_once(bench->block);
    return limit == BENCH_F32 ? limits_processor_rate(bench) : 0;
}

void bench_end(struct bench *bench)
{
    sb_tensor_release(bench->block);
    bench->block = NULL;
}

bool bench_limits(struct bench *bench)
{
    double *limit = bench->limit;
    limit[BENCH_COPY] = limits_copy_rate(bench);
    limit[BENCH_F32] = bench->gpu ? limits_product_rate(bench, "") : limits_processor_rate(bench);
    limit[BENCH_BF16] = bench->gpu ? limits_product_rate(bench, " bf16=1") : 0;
    return limit[BENCH_COPY] > 0 && limit[BENCH_F32] > 0 && limit[BENCH_BF16] >= 0;
}

/*
 * ---- the highest rates of this machine ----
 *
 * The fastest of many tries, since other load only makes a try slower. A first call touches all
 * pages and warms the caches: no training step can be faster.
 */

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
#define rates_copy_streaming rates_copy_plainly
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

static void rates_multiply(void *job)
{
    job_step(job);
}

static double rates_product_seconds(const char *line)
{
    struct job job;
    const double seconds = job_open(&job, line) ? rates_best(rates_multiply, &job) : -1;
    job_close(&job);
    return seconds;
}

/* The built-in product or OpenBLAS, whichever is faster. */
static double rate_product(const char *words)
{
    char line[160];
    int64_t m, n, k;
    int ta, tb;
    if (sscanf(words, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %d %d", &m, &n, &k, &ta, &tb) != 5 ||
        m < 1 || n < 1 || k < 1) {
        sb_fail("bench: rate gemm needs M N K and two of 0 or 1, not \"%s\"", words);
        return -1;
    }
    const int size =
        snprintf(line, sizeof line,
                 "product m=%" PRId64 " n=%" PRId64 " k=%" PRId64 " transpose_a=%d transpose_b=%d",
                 m, n, k, ta, tb);
    double seconds = rates_product_seconds(line);
    if (seconds > 0 && gemm_blas()) {
        snprintf(line + size, sizeof line - (size_t)size, " blas=1");
        seconds = fmin(seconds, rates_product_seconds(line));
    }
    return seconds > 0 ? 2 * (double)m * (double)n * (double)k / seconds : -1;
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

/* ---- values ---- */

/* The finaliser of MurmurHash3 (Appleby 2011): quick to compute, and random enough for matrices. */
static float values_at(uint32_t seed, uint32_t i)
{
    uint32_t x = i + seed * 0x9E3779B9u;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return (float)(int32_t)(x ^ (x >> 16)) * 0x1p-31f;
}

sb_tensor *bench_values(sb_dtype dtype, uint32_t seed, int rank, const int64_t *dim)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dim[i];
    float *values = memory_new((size_t)n * sizeof *values);
    if (!values)
        return sb_fail("bench: out of memory");
    for (int64_t i = 0; i < n; i++)
        values[i] = values_at(seed, (uint32_t)i);
    sb_tensor *x = sb_tensor_from(SB_F32, rank, dim, values);
    memory_free(values);
    if (!x || dtype == SB_F32)
        return x;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *cast = sb_cast(x, dtype),
              *leaf = cast ? sb_tensor_to(cast, sb_device_in_use()) : NULL;
    sb_tensor_release(x);
    if (sb_tape_end(&tape))
        return leaf;
    sb_tensor_release(leaf);
    return NULL;
}
