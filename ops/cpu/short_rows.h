/*
 * Softmax of short rows, LANES of them together: their maxima and sums are found in the lanes of
 * one vector, where a row by itself would wait for each step. The same bits as softmax_row.h's.
 *
 * Rows lie in the cache, short_pitch apart: a vector may be read and written wherever it begins in
 * the keys of a row.
 */
#ifndef SOFTBACK_OPS_CPU_SHORT_ROWS_H
#define SOFTBACK_OPS_CPU_SHORT_ROWS_H

#include "ops/cpu/softmax_row.h"
#include "ops/cpu/vector_transpose.h"
#include "ops/mask_terms.h"

enum { SHORT = 64 }; /* numbers of a short row, at most */

/* The distance between rows of n numbers. */
static inline int64_t short_pitch(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES + LANES;
}

/* Up to LANES rows, and the numbers of each that count: from `from` to before `to`. */
struct short_rows {
    int64_t count, pitch;
    struct key_range keys[LANES];
};

/* Lane j: vector_max of row j of a matrix (LANES, LANES). */
static inline vector vector_maxima(const real *rows)
{
    vector column[LANES];
    load_columns(rows, column);
#pragma GCC unroll 8
    for (int half = LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; i++)
            column[i] = vector_larger(column[i], column[i + half]);
    return column[0];
}

/* The next `left` numbers of a row, at x, and `fill` behind them. */
UNROLLED vector short_vector(const real *x, int64_t left, real fill)
{
    return left >= LANES ? vector_load(x) : vector_first(vector_load(x), left, fill);
}

/* The number of keys of row r; the first is x[*first]. */
static inline int64_t short_row(const struct short_rows *rows, int64_t r, int64_t *first)
{
    *first = r * rows->pitch + rows->keys[r].from;
    return rows->keys[r].to - rows->keys[r].from;
}

/* Stores the numbers from j on of row r, and zeros behind its last. */
UNROLLED void short_store(const struct short_rows *rows, int64_t r, int64_t j, vector y, real *x)
{
    int64_t first, n = short_row(rows, r, &first);
    vector_store(x + first + j, n - j >= LANES ? y : vector_first(y, n - j, 0));
}

/* Zeros before the first number of row r, and in the vectors behind its last. */
static inline void short_clear(const struct short_rows *rows, int64_t r, real *x)
{
    int64_t first, n = short_row(rows, r, &first), end = (r + 1) * rows->pitch - LANES;
    for (int64_t j = r * rows->pitch; j < first; j++)
        x[j] = 0;
    for (int64_t j = first + (n + LANES - 1) / LANES * LANES; j < end; j += LANES)
        vector_store(x + j, vector_zero());
}

/* Zeros in the lines of missing rows. */
static inline void short_begin(const struct short_rows *rows, real square[LANES * LANES])
{
    for (int64_t r = rows->count; r < LANES; r++)
        vector_store(square + r * LANES, vector_zero());
}

/* x_j = exp(scale (x_j - max x)) / sum in the range of each row, and 0 elsewhere; scale > 0. */
OUTLINED void short_softmax(const struct short_rows *rows, real scale, real *x)
{
    real square[LANES * LANES], max[LANES], sum[LANES];
    int64_t first;
    short_begin(rows, square);
    for (int64_t r = 0; r < rows->count; r++) {
        const int64_t n = short_row(rows, r, &first);
        vector largest = vector_of(-INFINITY);
        for (int64_t j = 0; j < n; j += LANES)
            largest = vector_larger(largest, short_vector(x + first + j, n - j, -INFINITY));
        vector_store(square + r * LANES, largest);
    }
    vector_store(max, vector_maxima(square));
    for (int64_t r = 0; r < rows->count; r++) {
        const int64_t n = short_row(rows, r, &first);
        vector sums = vector_zero();
        for (int64_t j = 0; j < n; j += LANES) {
            const vector s = short_vector(x + first + j, n - j, -INFINITY);
            const vector e = vector_exp(scale * (s - max[r]));
            vector_store(x + first + j, e);
            sums += e;
        }
        vector_store(square + r * LANES, sums);
    }
    vector_store(sum, vector_sums(square));
    for (int64_t r = 0; r < rows->count; r++) {
        const int64_t n = short_row(rows, r, &first);
        for (int64_t j = 0; j < n; j += LANES)
            short_store(rows, r, j, vector_load(x + first + j) / sum[r], x);
        short_clear(rows, r, x);
    }
}

/* dx_j = scale a_j (dx_j - sum a dx) in the range of each row, and 0 elsewhere. */
OUTLINED void short_softmax_gradient(const struct short_rows *rows, real scale, const real *a,
                                     real *dx)
{
    real square[LANES * LANES], dot[LANES];
    int64_t first;
    short_begin(rows, square);
    for (int64_t r = 0; r < rows->count; r++) {
        const int64_t n = short_row(rows, r, &first);
        vector sums = vector_zero();
        for (int64_t j = 0; j < n; j += LANES)
            sums += short_vector(a + first + j, n - j, 0) * short_vector(dx + first + j, n - j, 0);
        vector_store(square + r * LANES, sums);
    }
    vector_store(dot, vector_sums(square));
    for (int64_t r = 0; r < rows->count; r++) {
        const int64_t n = short_row(rows, r, &first);
        for (int64_t j = 0; j < n; j += LANES) {
            const vector da = vector_load(dx + first + j);
            short_store(rows, r, j, scale * (vector_load(a + first + j) * (da - dot[r])), dx);
        }
        short_clear(rows, r, dx);
    }
}

#endif
