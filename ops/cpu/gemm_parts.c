/* Small products on one thread, with a B that is packed once or contiguous; and its packing. */
#include "ops/cpu/gemm.h"
#include "ops/cpu/gemm_builtin.h"

static int64_t parts_panel_count(int64_t columns, int64_t *vectors)
{
    *vectors = (columns + LANES - 1) / LANES;
    return (*vectors + TILE_VECTORS - 1) / TILE_VECTORS;
}

/* The columns of panel i, from *column on. */
static int64_t parts_panel_columns(int64_t i, int64_t columns, int64_t *column)
{
    int64_t vectors, panels = parts_panel_count(columns, &vectors);
    *column = part(i, panels, vectors) * LANES;
    int64_t end = part(i + 1, panels, vectors) * LANES;
    return (end < columns ? end : columns) - *column;
}

/* The panels of a product that have columns in from .. to - 1; t describes all columns. Those of a
   packed B lie one after the other. */
static inline void parts_multiply(struct tile t, int64_t m, int64_t from, int64_t to, bool packed)
{
    int64_t vectors, panels = parts_panel_count(t.columns, &vectors), column;
    for (int64_t i = 0; i < panels; i++) {
        struct tile panel = t;
        panel.columns = parts_panel_columns(i, t.columns, &column);
        if (column >= to || column + panel.columns <= from)
            continue;
        if (packed)
            panel.ldb = (panel.columns + LANES - 1) / LANES * LANES;
        panel.b += packed ? column * t.depth : column;
        panel.c += column;
        CPU(gemm_tiles)(&panel, m);
    }
}

void CPU(gemm_rows)(int64_t m, int64_t columns, int64_t k, struct factor a, const real *b,
                    int64_t ldb, bool add, real *c, int64_t ldc)
{
    const struct tile t = {k, a.a, a.row_step, a.k_step, 0, b, ldb, add, c, ldc, columns};
    parts_multiply(t, m, 0, columns, false);
}

void CPU(gemm_packed)(int64_t m, int64_t columns, int64_t from, int64_t to, int64_t k,
                      struct factor a, const real *packed, real *c, int64_t ldc)
{
    const struct tile t = {k, a.a, a.row_step, a.k_step, 0, packed, 0, false, c, ldc, columns};
    parts_multiply(t, m, from, to, true);
}

void CPU(gemm_pack_all)(int64_t depth, int64_t columns, const real *b, int64_t ldb, real *packed)
{
    int64_t vectors, panels = parts_panel_count(columns, &vectors), column;
    for (int64_t i = 0; i < panels; i++) {
        int64_t n = parts_panel_columns(i, columns, &column);
        CPU(gemm_pack)(true, depth, n, b + column * ldb, ldb, packed + column * depth);
    }
}

int64_t CPU(gemm_weight_size)(int64_t out, int64_t in)
{
    return packed_at(out, in, 0, 0);
}

void CPU(gemm_pack_b)(bool transposed, int64_t n, int64_t k, const real *b, int64_t ldb,
                      real *packed)
{
    const int64_t block = block_depth(k);
    int64_t vectors, panels = parts_panel_count(n, &vectors);
#pragma omp parallel for schedule(static) if (n * k > PARALLEL_WORK)
    for (int64_t i = 0; i < panels; i++) {
        int64_t column, columns = parts_panel_columns(i, n, &column);
        for (int64_t p = 0; p < k; p += block) {
            const int64_t depth = k - p < block ? k - p : block;
            const real *from = transposed ? b + column * ldb + p : b + p * ldb + column;
            CPU(gemm_pack)
            (transposed, depth, columns, from, ldb, packed + packed_at(n, p, depth, column));
        }
    }
}

void CPU(gemm_pack_weight)(int64_t out, int64_t in, const real *weight, real *packed)
{
    CPU(gemm_pack_b)(true, out, in, weight, in, packed);
}
