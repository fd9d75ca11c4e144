/* Functions that row-wise kernels share. */
#ifndef SOFTBACK_OPS_CPU_ROWS_H
#define SOFTBACK_OPS_CPU_ROWS_H

#include "ops/cpu/mathematics.h"
#include "ops/cpu/real.h"
#include "ops/rows.h"

static inline int64_t slab_end(int64_t slab, int64_t rows)
{
    return smaller((slab + 1) * SLAB_ROWS, rows);
}

/* The value of a gradient before a part is added: 0 if it is fresh. */
static inline real before(bool fresh, real dx)
{
    return fresh ? 0 : dx;
}

/* A row is read in parts of this many numbers, so that the next row is fetched meanwhile. */
enum { ROW_PART = 1024 / sizeof(real) };

static inline void row_prefetch(int64_t n, const real *x)
{
    for (int64_t c = 0; c < n; c += 64 / (int64_t)sizeof *x)
        __builtin_prefetch(x + c);
}

/* The largest element, NaN left out; -infinity for none. Lanes, since compilers do not reorder
   comparisons of floats by themselves. */
static inline real row_max(int64_t C, const real *x)
{
    enum { WIDTH = 2 * VECTOR_BYTES / sizeof(real) };
    real lane[WIDTH], max = -INFINITY;
    for (int l = 0; l < WIDTH; l++)
        lane[l] = -INFINITY;
    int64_t c = 0;
    for (; c + WIDTH <= C; c += WIDTH)
        for (int l = 0; l < WIDTH; l++)
            lane[l] = x[c + l] > lane[l] ? x[c + l] : lane[l];
    for (int l = 0; l < WIDTH; l++)
        max = lane[l] > max ? lane[l] : max;
    for (; c < C; c++)
        max = x[c] > max ? x[c] : max;
    return max;
}

static inline real row_sum_of_squares(int64_t C, const real *x, real factor)
{
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < C; c++)
        sum += (x[c] * factor) * (x[c] * factor);
    return sum;
}

/* The sum of exp(x_c - shift). */
static inline real row_sum_exp(int64_t C, const real *x, real shift)
{
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < C; c++)
        sum += real_exp(x[c] - shift);
    return sum;
}

/* sum[c] += the partial sums of all slabs, `stride` elements apart, in order. */
static inline void add_slabs(int64_t slabs, int64_t C, int64_t stride, const real *partial,
                             bool fresh, real *sum)
{
    if (fresh)
        memset(sum, 0, (size_t)C * sizeof *sum);
#pragma omp parallel for schedule(static) if (slabs * C > PARALLEL_WORK)
    for (int64_t block = 0; block < (C + 255) / 256; block++) {
        int64_t end = C < 256 * (block + 1) ? C : 256 * (block + 1);
        for (int64_t slab = 0; slab < slabs; slab++)
#pragma omp simd
            for (int64_t c = 256 * block; c < end; c++)
                sum[c] += partial[slab * stride + c];
    }
}

#endif
