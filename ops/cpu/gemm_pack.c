#include "ops/cpu/gemm_builtin.h"
#include "ops/cpu/vector_transpose.h"

/* Loads fewer than LANES rows of a vector; the last row takes the place of missing ones. */
static void pack_load_some(int64_t count, const real *b, int64_t ldb, vector y[QUARTER])
{
    real some[LANES * QUARTER];
    for (int64_t j = 0; j < LANES; j++)
        memcpy(some + j * QUARTER, b + (j < count ? j : count - 1) * ldb, sizeof(quarter));
    load_transposed(some, QUARTER, y);
}

/* One vector of columns of a transposed B: the columns are `count` rows of its storage. */
static void pack_transposed(int64_t depth, int64_t count, const real *b, int64_t ldb, real *panel,
                            int64_t width)
{
    int64_t p = 0;
    for (; p + QUARTER <= depth; p += QUARTER) {
        vector y[QUARTER];
        if (count == LANES) {
            prefetch_rows(LANES, b, ldb, p, QUARTER);
            load_transposed(b + p, ldb, y);
        } else {
            pack_load_some(count, b + p, ldb, y);
        }
        for (int q = 0; q < QUARTER; q++)
            vector_store(panel + (p + q) * width, y[q]);
    }
    for (; p < depth; p++)
        for (int64_t j = 0; j < LANES; j++)
            panel[p * width + j] = b[(j < count ? j : count - 1) * ldb + p];
}

/* Each row prefetches a later one: a panel takes a few cache lines of each, which the hardware
   prefetcher does not follow where rows are long. */
static void pack_rows(int64_t depth, int64_t columns, const real *b, int64_t ldb, real *panel,
                      int64_t width)
{
    enum { LINE = 64 / (int)sizeof(real), AHEAD = 16 };
    int64_t whole = columns / LANES * LANES;
    for (int64_t p = 0; p < depth; p++, b += ldb, panel += width) {
        for (int64_t j = 0; j < columns; j += LINE)
            __builtin_prefetch(b + AHEAD * ldb + j);
        for (int64_t j = 0; j < whole; j += LANES)
            vector_store(panel + j, vector_load(b + j));
        for (int64_t j = whole; j < width; j++)
            panel[j] = j < columns ? b[j] : 0;
    }
}

void CPU(gemm_pack)(bool transposed, int64_t depth, int64_t columns, const real *b, int64_t ldb,
                    real *panel)
{
    int64_t width = (columns + LANES - 1) / LANES * LANES;
    if (!transposed) {
        pack_rows(depth, columns, b, ldb, panel, width);
        return;
    }
    for (int64_t j = 0; j < columns; j += LANES) {
        int64_t count = columns - j < LANES ? columns - j : LANES;
        pack_transposed(depth, count, b + j * ldb, ldb, panel + j, width);
    }
}

/* Rows that are packed for all tiles before the next ones, which are fetched meanwhile: rows that
   lie a power of two apart share a set of the first-level cache, which holds 8 to 12 of them. */
enum { PACKED_ROWS = 8 };

/* Packs the rows of one tile. The next row overwrites what is copied past the end of a row. */
static void pack_tile(int64_t depth, const real *a, int64_t lda, real *packed)
{
    enum { UNIT = TILE_ROWS(TILE_VECTORS), COPIED = UNIT == 6 ? 8 : UNIT };
#pragma GCC unroll 1
    for (; depth > 0; depth--, a += lda, packed += UNIT) {
        __builtin_prefetch(a + PACKED_ROWS * lda);
        memcpy(packed, a, COPIED * sizeof(real));
    }
}

/* The last tiles, where reading past the end of a row is not allowed. */
static void pack_edge(int64_t depth, int64_t rows, const real *a, int64_t lda, real *packed)
{
    enum { UNIT = TILE_ROWS(TILE_VECTORS) };
    for (int64_t p = 0; p < depth; p++)
        for (int64_t r = 0; r < rows; r++)
            packed[p * UNIT + r] = a[p * lda + r];
}

void CPU(gemm_pack_a)(int64_t depth, int64_t rows, const real *a, int64_t lda, real *packed)
{
    enum { UNIT = TILE_ROWS(TILE_VECTORS) };
    for (int64_t p = 0; p < depth; p += PACKED_ROWS) {
        const int64_t n = depth - p < PACKED_ROWS ? depth - p : PACKED_ROWS;
        const real *from = a + p * lda;
        real *to = packed + p * UNIT;
        for (int64_t r = 0; r < rows; r += UNIT, to += PACKED_STEP(depth))
            if (r + UNIT + 2 <= rows)
                pack_tile(n, from + r, lda, to);
            else
                pack_edge(n, rows - r < UNIT ? rows - r : UNIT, from + r, lda, to);
    }
}

void CPU(gemm_pack_pairs)(int64_t depth, int64_t columns, const uint16_t *x, int64_t ldx,
                          int64_t width, real *packed)
{
    typedef uint32_t pair __attribute__((may_alias));
    for (int64_t p = 0; p < depth; p++, x += 2 * ldx) {
        pair *to = (pair *)(packed + p * width);
        for (int64_t j = 0; j < columns; j++)
            to[j] = x[j] | (uint32_t)x[ldx + j] << 16;
        for (int64_t j = columns; j < width; j++)
            to[j] = 0;
    }
}
