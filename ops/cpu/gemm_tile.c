/* Micro-kernels: sums of a tile of C, which stay in registers along k. Each element of C is one
   chain of additions along k, in the same order in every tile. */
#include "ops/cpu/gemm_builtin.h"
#include "ops/cpu/vector_transpose.h"

#define UNROLLED static inline __attribute__((always_inline))

UNROLLED void put_vector(vector sum, bool add, real *y)
{
    if (add)
        sum += vector_load(y);
    vector_store(y, sum);
}

/* A tile whose last vector hangs over the edge of C: the same arithmetic, on a copy. */
static void put_edge(int rows, const real *sums, const struct tile *t)
{
    int64_t width = (t->columns + LANES - 1) / LANES * LANES;
    for (int r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j += LANES) {
            real lane[LANES] = {0}, *c = t->c + r * t->ldc + j;
            int64_t count = t->columns - j < LANES ? t->columns - j : LANES;
            for (int64_t i = 0; t->add && i < count; i++)
                lane[i] = c[i];
            put_vector(vector_load(sums + r * width + j), t->add, lane);
            for (int64_t i = 0; i < count; i++)
                c[i] = lane[i];
        }
}

UNROLLED void put_tile(int rows, int vectors, vector sum[TILE_ROWS][TILE_VECTORS],
                       const struct tile *t)
{
    if (t->columns == vectors * LANES) {
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                put_vector(sum[r][v], t->add, t->c + r * t->ldc + v * LANES);
        return;
    }
    real sums[TILE_ROWS * TILE_VECTORS * LANES];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            vector_store(sums + (r * vectors + v) * LANES, sum[r][v]);
    put_edge(rows, sums, t);
}

UNROLLED void tile(int rows, int vectors, const struct tile *t)
{
    vector sum[TILE_ROWS][TILE_VECTORS];
    const real *a[TILE_ROWS], *b = t->b;
    for (int r = 0; r < rows; r++) {
        a[r] = t->a + r * t->row_step;
        for (int v = 0; v < vectors; v++)
            sum[r][v] = vector_zero();
    }
    for (int64_t p = 0, at = 0; p < t->depth; p++, at += t->k_step, b += t->ldb) {
        vector y[TILE_VECTORS];
        __builtin_prefetch(a[0] + at + 24 * t->k_step); /* far apart where A is transposed */
        for (int v = 0; v < vectors; v++)
            y[v] = vector_load(b + v * LANES);
        for (int r = 0; r < rows; r++) {
            real x = a[r][at];
            for (int v = 0; v < vectors; v++)
                sum[r][v] += x * y[v];
        }
    }
    put_tile(rows, vectors, sum, t);
}

/* For each number of rows, a copy of the loop in which rows and vectors are constants. */
UNROLLED void tiles(int vectors, struct tile t, int64_t rows)
{
    int64_t done;
    for (; rows > 0; rows -= done) {
        if (rows >= TILE_ROWS) {
            done = TILE_ROWS;
            tile(TILE_ROWS, vectors, &t);
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

void CPU(gemm_tiles)(const struct tile *t, int64_t rows)
{
    switch ((t->columns + LANES - 1) / LANES) {
    case 1:
        tiles(1, *t, rows);
        break;
    case 2:
        tiles(2, *t, rows);
        break;
    default:
        tiles(TILE_VECTORS, *t, rows);
        break;
    }
}

UNROLLED vector load_column(const real *x, int64_t ldx)
{
    real lane[LANES];
    for (int j = 0; j < LANES; j++)
        lane[j] = x[j * ldx];
    return vector_load(lane);
}

UNROLLED void strip(int rows, const struct tile *t)
{
    vector sum[TILE_ROWS][TILE_VECTORS], y[QUARTER];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < STRIP_VECTORS; v++)
            sum[r][v] = vector_zero();
    int64_t p = 0;
    for (; p + QUARTER <= t->depth; p += QUARTER) {
        prefetch_rows(STRIP_COLUMNS, t->b, t->ldb, p, QUARTER);
        for (int v = 0; v < STRIP_VECTORS; v++) {
            load_transposed(t->b + v * LANES * t->ldb + p, t->ldb, y);
            for (int q = 0; q < QUARTER; q++)
                for (int r = 0; r < rows; r++)
                    sum[r][v] += t->a[r * t->row_step + (p + q) * t->k_step] * y[q];
        }
    }
    for (; p < t->depth; p++)
        for (int v = 0; v < STRIP_VECTORS; v++) {
            vector x = load_column(t->b + v * LANES * t->ldb + p, t->ldb);
            for (int r = 0; r < rows; r++)
                sum[r][v] += t->a[r * t->row_step + p * t->k_step] * x;
        }
    put_tile(rows, STRIP_VECTORS, sum, t);
}

void CPU(gemm_strip)(const struct tile *t, int64_t rows)
{
    switch (rows) {
    case 1:
        strip(1, t);
        break;
    case 2:
        strip(2, t);
        break;
    case 3:
        strip(3, t);
        break;
    default:
        strip(STRIP_ROWS, t);
        break;
    }
}
