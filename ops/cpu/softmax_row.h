/*
 * Softmax of one row, in vectors. Rows of attention are short, often shorter than two vectors, so
 * the end of a row is processed as one more vector, padded with values that have no effect. Lane l
 * sums the elements l, l + LANES, ...: an order that depends on the length only.
 */
#ifndef SOFTBACK_OPS_CPU_SOFTMAX_ROW_H
#define SOFTBACK_OPS_CPU_SOFTMAX_ROW_H

#include "ops/cpu/mathematics.h"
#include "ops/cpu/vector.h"

static inline vector vector_of(real x)
{
    return x - vector_zero(); /* no operation, unlike 0 + x */
}

/* Without the pragma, gcc unrolls a loop of few lanes first and computes exp lane by lane. */
static inline vector vector_exp(vector x)
{
    real lane[LANES];
    vector_store(lane, x);
#pragma omp simd
    for (int l = 0; l < LANES; l++)
        lane[l] = real_exp(lane[l]);
    return vector_load(lane);
}

/* b where b > a, else a: a, where b is NaN. */
static inline vector vector_larger(vector a, vector b)
{
    const vector_bits larger = (vector_bits)(b > a);
    return (vector)(((vector_bits)b & larger) | ((vector_bits)a & ~larger));
}

static inline real vector_max(vector x)
{
    real lane[LANES];
    vector_store(lane, x);
#pragma GCC unroll 8
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
    return lane[0];
}

/* The first n lanes of x, and `fill` in the others. */
static inline vector vector_first(vector x, int64_t n, real fill)
{
    vector place;
    for (int l = 0; l < LANES; l++)
        place[l] = (real)l;
    vector_bits kept = (vector_bits)(place < vector_of((real)n));
    return (vector)(((vector_bits)x & kept) | ((vector_bits)vector_of(fill) & ~kept));
}

/* The n < LANES numbers at x, and `fill` behind them. `room` of them belong to the row. */
static inline vector tail_load(const real *x, int64_t n, int64_t room, real fill)
{
    if (room >= LANES)
        return vector_first(vector_load(x), n, fill);
    real lane[LANES];
    for (int l = 0; l < LANES; l++)
        lane[l] = l < n ? x[l] : fill;
    return vector_load(lane);
}

/* Writes the first n numbers; up to LANES where there is room. */
static inline void tail_store(real *x, int64_t n, int64_t room, vector y)
{
    if (room >= LANES) {
        vector_store(x, y);
        return;
    }
    real lane[LANES];
    vector_store(lane, y);
    for (int l = 0; l < LANES; l++)
        if (l < n)
            x[l] = lane[l];
}

/*
 * y_j = exp(scale (x_j - max x)) / sum for the n > 0 numbers of x, with scale > 0. Returns the sum,
 * which is NaN if a number is NaN. x and y may be the same; both have room for `room` numbers, and
 * those of y past n may change.
 */
static inline real row_softmax(int64_t n, int64_t room, real scale, const real *x, real *y)
{
    int64_t whole = n / LANES * LANES, rest = n - whole;
    vector largest = vector_of(-INFINITY), tail = largest, sums = vector_zero();
    if (rest > 0)
        largest = tail = tail_load(x + whole, rest, room - whole, -INFINITY);
    for (int64_t j = 0; j < whole; j += LANES)
        largest = vector_larger(largest, vector_load(x + j));
    real max = vector_max(largest);
    for (int64_t j = 0; j < whole; j += LANES) {
        __builtin_prefetch(x + room + j); /* usually the next row */
        vector e = vector_exp(scale * (vector_load(x + j) - max));
        vector_store(y + j, e);
        sums += e;
    }
    if (rest > 0) {
        tail = vector_exp(scale * (tail - max));
        sums += vector_first(tail, rest, 0);
    }
    real sum = vector_sum(sums);
    for (int64_t j = 0; j < whole; j += LANES)
        vector_store(y + j, vector_load(y + j) / sum);
    if (rest > 0)
        tail_store(y + whole, rest, room - whole, tail / sum);
    return sum;
}

/* Lane l: the sum of x_j y_j for j = l, l + LANES, ... */
static inline vector row_products(int64_t n, int64_t room, const real *x, const real *y)
{
    int64_t whole = n / LANES * LANES, rest = n - whole;
    vector sums = vector_zero();
    for (int64_t j = 0; j < whole; j += LANES)
        sums += vector_load(x + j) * vector_load(y + j);
    if (rest > 0)
        sums += tail_load(x + whole, rest, room - whole, 0) *
                tail_load(y + whole, rest, room - whole, 0);
    return sums;
}

/* sum_j x_j y_j */
static inline real row_dot(int64_t n, int64_t room, const real *x, const real *y)
{
    return vector_sum(row_products(n, room, x, y));
}

#endif
