/* The micro-kernels of reals. */
#include "ops/cpu/gemm_builtin.h"
#include "ops/cpu/vector_transpose.h"

typedef real factor_type;

UNROLLED factor_type factor_of(real x)
{
    return x;
}

UNROLLED vector multiply_add(vector sum, factor_type x, vector y)
{
    return sum + x * y;
}

#include "ops/cpu/gemm_tile.h"

void CPU(gemm_tiles)(const struct tile *t, int64_t rows)
{
    tiles_of(t, rows);
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
    vector sum[STRIP_ROWS][TILE_VECTORS], y[QUARTER];
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
