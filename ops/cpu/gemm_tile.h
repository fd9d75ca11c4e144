/*
 * Micro-kernels: sums of a tile of C, which stay in registers along k. Each element of C is one
 * chain of additions along k, in the same order in every tile.
 *
 * The including file first defines multiplication of an element of A and a vector of B:
 * factor_type, factor_of and multiply_add.
 */
#ifndef SOFTBACK_OPS_CPU_GEMM_TILE_H
#define SOFTBACK_OPS_CPU_GEMM_TILE_H

#include "ops/cpu/gemm_builtin.h"

UNROLLED void put_vector(vector sum, bool add, real *y)
{
    if (add)
        sum += vector_load(y);
    vector_store(y, sum);
}

/* The first lanes of a vector: the same arithmetic. */
OUTLINED void put_lanes(vector sum, bool add, int64_t count, real *y)
{
    real lane[LANES];
    vector_store(lane, sum);
    for (int l = 0; l < LANES; l++)
        if (l < count)
            y[l] = add ? y[l] + lane[l] : lane[l];
}

UNROLLED void put_tile(int rows, int vectors, vector sum[][TILE_VECTORS], const struct tile *t)
{
    const int64_t last = t->columns - (vectors - 1) * LANES;
    UNROLL
    for (int r = 0; r < rows; r++) {
        real *c = t->c + r * t->ldc;
        UNROLL
        for (int v = 0; v < vectors - 1; v++)
            put_vector(sum[r][v], t->add, c + v * LANES);
        if (last == LANES)
            put_vector(sum[r][vectors - 1], t->add, c + (vectors - 1) * LANES);
        else
            put_lanes(sum[r][vectors - 1], t->add, last, c + (vectors - 1) * LANES);
    }
}

/* Prefetches the tile of C while its sums are computed. */
UNROLLED void fetch_sums(int rows, int vectors, const struct tile *t)
{
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            __builtin_prefetch(t->c + r * t->ldc + v * LANES, 1);
    }
}

enum { LINE = 64 / (int)sizeof(real), AHEAD = 64 };

/*
 * Prefetches the part of A that is read AHEAD steps later along k, from the next tile where this
 * one ends. Not earlier, since the panel of B fills the first-level cache and would evict it. Where
 * rows of A are not contiguous along k, each step is a cache line.
 */
UNROLLED void fetch_factors(int rows, const struct tile *t, int64_t p)
{
    const int64_t next = p + AHEAD;
    if (t->k_step == 1) {
        const real *a = t->a + next + (next < t->depth ? 0 : rows * t->row_step - t->depth);
        UNROLL
        for (int r = 0; r < rows; r++)
            __builtin_prefetch(a + r * t->row_step);
    } else {
        UNROLL
        for (int i = 0; i < LINE; i++)
            __builtin_prefetch(t->a + (p + LINE + i) * t->k_step);
    }
}

/* Loops over rows and vectors are unrolled, so that the sums are allocated to registers. */
UNROLLED void tile(int rows, int vectors, const struct tile *t)
{
    vector sum[MOST_ROWS][TILE_VECTORS];
    const real *a[MOST_ROWS], *b = t->b;
    UNROLL
    for (int r = 0; r < rows; r++) {
        a[r] = t->a + r * t->row_step;
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] = vector_zero();
    }
    fetch_sums(rows, vectors, t);
    for (int64_t p = 0, at = 0; p < t->depth;) {
        const int64_t end = p + LINE < t->depth ? p + LINE : t->depth;
        fetch_factors(rows, t, p);
        for (; p < end; p++, at += t->k_step, b += t->ldb) {
            vector y[TILE_VECTORS];
            UNROLL
            for (int v = 0; v < vectors; v++)
                y[v] = vector_load(b + v * LANES);
            UNROLL
            for (int r = 0; r < rows; r++) {
                const factor_type x = factor_of(a[r][at]);
                UNROLL
                for (int v = 0; v < vectors; v++)
                    sum[r][v] = multiply_add(sum[r][v], x, y[v]);
            }
        }
    }
    put_tile(rows, vectors, sum, t);
}

/* For each number of rows, a copy of the loop in which rows and vectors are constants. */
UNROLLED void tiles(int vectors, struct tile t, int64_t rows)
{
    int64_t done;
    for (; rows > 0; rows -= done) {
        if (rows >= TILE_ROWS(vectors)) {
            done = TILE_ROWS(vectors);
            tile(TILE_ROWS(vectors), vectors, &t);
            t.a += t.tile_step ? t.tile_step - done * t.row_step : 0;
        } else if (rows >= 4) {
            done = 4;
            tile(4, vectors, &t);
        } else if (rows >= 2) {
            done = 2;
            tile(2, vectors, &t);
        } else {
            done = 1;
            tile(1, vectors, &t);
        }
        t.a += done * t.row_step;
        t.c += done * t.ldc;
    }
}

/* Any number of rows, at most TILE_VECTORS vectors. */
UNROLLED void tiles_of(const struct tile *t, int64_t rows)
{
    switch ((t->columns + LANES - 1) / LANES) {
    case 1:
        tiles(1, *t, rows);
        break;
    case 2:
        tiles(2, *t, rows);
        break;
#if TILES_ARE_WIDE
    case 3:
        tiles(3, *t, rows);
        break;
    case 4:
        tiles(4, *t, rows);
        break;
#endif
    }
}

#endif
