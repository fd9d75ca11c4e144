/* Loading a small matrix transposed, by shuffles within registers, and its row sums. */
#ifndef SOFTBACK_OPS_CPU_VECTOR_TRANSPOSE_H
#define SOFTBACK_OPS_CPU_VECTOR_TRANSPOSE_H

#include "ops/cpu/vector.h"

/* A vector consists of quarters of 16 bytes, within which shuffling is cheap. */
enum { QUARTER = 16 / (int)sizeof(real) };

typedef real quarter __attribute__((vector_size(16), aligned(sizeof(real)), may_alias));

static inline quarter quarter_load(const real *from)
{
    return *(const quarter *)from;
}

/* The indices i, j, ... within each quarter, where LANES + i is from a shuffle's second vector. */
#if REAL_IS_FLOAT
#define IN_QUARTER(q, i, j, k, l) 4 * q + i, 4 * q + j, 4 * q + k, 4 * q + l
#define JOINED 0, 1, 2, 3, 4, 5, 6, 7
#define JOINED_TWICE JOINED, 8, 9, 10, 11, 12, 13, 14, 15
#else
#define IN_QUARTER(q, i, j) 2 * q + i, 2 * q + j
#define JOINED 0, 1, 2, 3
#define JOINED_TWICE JOINED, 4, 5, 6, 7
#endif
#if VECTOR_BYTES == 16
#define IN_QUARTERS(...) IN_QUARTER(0, __VA_ARGS__)
#elif VECTOR_BYTES == 32
#define IN_QUARTERS(...) IN_QUARTER(0, __VA_ARGS__), IN_QUARTER(1, __VA_ARGS__)
#else
#define IN_QUARTERS(...)                                                                           \
    IN_QUARTER(0, __VA_ARGS__), IN_QUARTER(1, __VA_ARGS__), IN_QUARTER(2, __VA_ARGS__),            \
        IN_QUARTER(3, __VA_ARGS__)
#endif

/* The quarters at x, x + step, x + 2 step, ... */
static inline vector load_quarters(const real *x, int64_t step)
{
#if VECTOR_BYTES == 16
    (void)step;
    return quarter_load(x);
#elif VECTOR_BYTES == 32
    return __builtin_shufflevector(quarter_load(x), quarter_load(x + step), JOINED);
#else
    typedef real half __attribute__((vector_size(32)));
    half a = __builtin_shufflevector(quarter_load(x), quarter_load(x + step), JOINED);
    half b =
        __builtin_shufflevector(quarter_load(x + 2 * step), quarter_load(x + 3 * step), JOINED);
    return __builtin_shufflevector(a, b, JOINED_TWICE);
#endif
}

/* y[q] lane j = x[j * ldx + q], for q < QUARTER */
static inline void load_transposed(const real *x, int64_t ldx, vector y[QUARTER])
{
    int64_t step = QUARTER * ldx;
    vector a = load_quarters(x, step), b = load_quarters(x + ldx, step);
#if REAL_IS_FLOAT
    vector c = load_quarters(x + 2 * ldx, step), d = load_quarters(x + 3 * ldx, step);
    vector ab = __builtin_shufflevector(a, b, IN_QUARTERS(0, LANES, 1, LANES + 1));
    vector cd = __builtin_shufflevector(c, d, IN_QUARTERS(0, LANES, 1, LANES + 1));
    y[0] = __builtin_shufflevector(ab, cd, IN_QUARTERS(0, 1, LANES, LANES + 1));
    y[1] = __builtin_shufflevector(ab, cd, IN_QUARTERS(2, 3, LANES + 2, LANES + 3));
    ab = __builtin_shufflevector(a, b, IN_QUARTERS(2, LANES + 2, 3, LANES + 3));
    cd = __builtin_shufflevector(c, d, IN_QUARTERS(2, LANES + 2, 3, LANES + 3));
    y[2] = __builtin_shufflevector(ab, cd, IN_QUARTERS(0, 1, LANES, LANES + 1));
    y[3] = __builtin_shufflevector(ab, cd, IN_QUARTERS(2, 3, LANES + 2, LANES + 3));
#else
    y[0] = __builtin_shufflevector(a, b, IN_QUARTERS(0, LANES));
    y[1] = __builtin_shufflevector(a, b, IN_QUARTERS(1, LANES + 1));
#endif
}

/* The columns of a matrix (LANES, LANES). */
UNROLLED void load_columns(const real *rows, vector column[LANES])
{
#pragma GCC unroll 16
    for (int c = 0; c < LANES; c += QUARTER)
        load_transposed(rows + c, LANES, column + c);
}

/* Lane j: vector_sum of row j of a matrix (LANES, LANES), to the bit. */
static inline vector vector_sums(const real *rows)
{
    vector column[LANES];
    load_columns(rows, column);
#pragma GCC unroll 8
    for (int half = LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; i++)
            column[i] += column[i + half];
    return column[0];
}

#endif
