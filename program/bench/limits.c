/*
 * The limits of the device in use: the bandwidth of a large copy, counting bytes read and written,
 * and the rate of multiply-adds. On the CPU the rate is measured in registers; on other devices it
 * is that of a product of two 4096 x 4096 matrices, so shares above 100 % are possible there.
 */
#include "autograd/tape.h"
#include "ops/gemm.h"
#include "ops/ops.h"
#include "program/bench/bench.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

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

struct product {
    sb_tensor *a, *b;
};

static double limits_product_once(void *context)
{
    const struct product *p = context;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const double begun = bench_clock();
    const double seconds = bench_since(begun, sb_matmul(p->a, p->b) != NULL);
    return sb_tape_end(&tape) ? seconds : -1;
}

static double limits_product_rate(struct bench *bench, sb_dtype dtype)
{
    const int64_t n = bench->quick ? 64 : 4096;
    struct product p = {bench_values(dtype, 1, SB_SHAPE(n, n)),
                        bench_values(dtype, 2, SB_SHAPE(n, n))};
    const double seconds =
        p.a && p.b ? bench_median(bench, BENCH_LIMITS, limits_product_once, &p) : -1;
    sb_tensor_release(p.a);
    sb_tensor_release(p.b);
    return seconds > 0 ? 2 * (double)(n * n * n) / seconds : -1;
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
    limit[BENCH_F32] =
        bench->gpu ? limits_product_rate(bench, SB_F32) : limits_processor_rate(bench);
    limit[BENCH_BF16] = bench->gpu ? limits_product_rate(bench, SB_BF16) : 0;
    return limit[BENCH_COPY] > 0 && limit[BENCH_F32] > 0 && limit[BENCH_BF16] >= 0;
}

/* The finaliser of MurmurHash3 (Appleby 2011): quick to compute, and random enough for matrices. */
static float limits_value_at(uint32_t seed, uint32_t i)
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
        values[i] = limits_value_at(seed, (uint32_t)i);
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
