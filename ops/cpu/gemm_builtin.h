/* The built-in product, and its parts: micro-kernels, and the packing of B for them. */
#ifndef SOFTBACK_OPS_CPU_GEMM_BUILTIN_H
#define SOFTBACK_OPS_CPU_GEMM_BUILTIN_H

#include "ops/cpu/vector.h"

/*
 * C = A B + beta C, as in ops/gemm.h. For bf16 A and B, an element is a pair of numbers that are
 * adjacent along k: k counts pairs, lda and ldb count numbers. Matrices whose rows extend along k
 * have rows of whole pairs.
 */
struct product {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    const void *a;
    int64_t lda;
    const void *b;
    int64_t ldb;
    real beta, *c;
    int64_t ldc;
    bool bf16, packed; /* packed: B was packed by gemm_pack_b */
};

/* The whole product, with several threads if `threads` and if that is faster. False when out of
   memory, which happens for bf16 only. */
bool CPU(gemm_multiply)(const struct product *s, bool threads);

/*
 * A tile of C is TILE_ROWS x so many vectors, TILE_VECTORS at most, that its sums, the vectors of B
 * and one factor fit in the registers: 32 with AVX-512 and on ARM, 16 otherwise.
 */
#if VECTOR_BYTES == 64 || defined(__aarch64__)
#define TILES_ARE_WIDE 1
enum { TILE_VECTORS = 4, MOST_ROWS = 12 };
#define TILE_ROWS(vectors) ((vectors) == 4 ? 6 : (vectors) == 3 ? 8 : 12)
#elif VECTOR_BYTES == 32
#define TILES_ARE_WIDE 0
enum { TILE_VECTORS = 2, MOST_ROWS = 6 };
#define TILE_ROWS(vectors) 6
#else
#define TILES_ARE_WIDE 0
enum { TILE_VECTORS = 2, MOST_ROWS = 4 };
#define TILE_ROWS(vectors) 4
#endif
enum { TILE_SUMS = 2 * MOST_ROWS }; /* vectors of a tile, at most */

/* The largest number of rows of B that are multiplied at a time: a panel of them, as wide as a
   tile, stays in the first- or second-level cache. Of all numbers here, results depend on this one
   only. */
enum { DEPTH = 256 };

/* Blocks of k have equal depth, rounded up to whole vectors. */
static inline int64_t block_depth(int64_t k)
{
    int64_t blocks = (k + DEPTH - 1) / DEPTH;
    return ((k + blocks - 1) / blocks + 15) / 16 * 16;
}

/* Where part i of n begins; the sizes of parts differ by at most one. */
static inline int64_t part(int64_t i, int64_t parts, int64_t n)
{
    return i * n / parts;
}

/* C = A B, or C += A B, for a few rows and vectors of columns. A's element (i, p) is
   a[i * row_step + p * k_step], or where A is packed by tiles, tile_step apart, that of the tile's
   row i; rows of B are ldb apart. */
struct tile {
    int64_t depth;
    const real *a;
    int64_t row_step, k_step, tile_step; /* tile_step: 0 where A is not packed */
    const real *b;
    int64_t ldb;
    bool add;
    real *c;
    int64_t ldc, columns; /* columns of C; B has whole vectors of them */
};

/* Any number of rows, at most TILE_VECTORS vectors; of reals, and of pairs of bf16, for which some
   processors have an instruction. */
typedef void tiles_function(const struct tile *t, int64_t rows);
tiles_function CPU(gemm_tiles), CPU(gemm_tiles_bf16), CPU(gemm_tiles_bf16_native);

/* The same for 1..STRIP_ROWS rows and STRIP_COLUMNS columns of a B that is stored transposed:
   element (p, j) is b[j * ldb + p]. */
enum { STRIP_ROWS = 4, STRIP_VECTORS = 2, STRIP_COLUMNS = STRIP_VECTORS * LANES };
void CPU(gemm_strip)(const struct tile *t, int64_t rows);

/* Short rows of a transposed B end before the hardware prefetcher finds the next strip; then each
   step along p fetches a part of the next strip. */
static inline void prefetch_rows(int64_t rows, const real *b, int64_t ldb, int64_t p, int64_t step)
{
    const int64_t line = 64 / (int64_t)sizeof(real);
    if (ldb > 256)
        return;
    int64_t share = rows * step / line, first = p % line / step * share;
    for (int64_t r = 0; r < share; r++)
        __builtin_prefetch(b + (rows + first + r) * ldb + p / line * line);
}

/*
 * Parts of a product, for kernels that make many small ones with the same B: C = A B, or C += A B,
 * for m rows, with A's element (i, p) at a[i * row_step + p * k_step]. B is row-major with whole
 * vectors of columns, or packed by gemm_pack_all.
 */
struct factor {
    const real *a;
    int64_t row_step, k_step;
};

void CPU(gemm_rows)(int64_t m, int64_t columns, int64_t k, struct factor a, const real *b,
                    int64_t ldb, bool add, real *c, int64_t ldc);
/* Computes at least the columns from .. to - 1 of C. */
void CPU(gemm_packed)(int64_t m, int64_t columns, int64_t from, int64_t to, int64_t k,
                      struct factor a, const real *packed, real *c, int64_t ldc);

/* Where a block of rows from p on, `depth` of them, has its column (the first one of a panel) in a
   B of n columns that gemm_pack_b packed: block after block, and each panel after panel. */
static inline int64_t packed_at(int64_t n, int64_t p, int64_t depth, int64_t column)
{
    return p * ((n + LANES - 1) / LANES * LANES) + column * depth;
}

/* Packs all of B, which may be stored transposed, for a product with `packed`; by several threads.
   packed has room for gemm_weight_size(n, k) numbers. */
void CPU(gemm_pack_b)(bool transposed, int64_t n, int64_t k, const real *b, int64_t ldb,
                      real *packed);

/* Packs the transpose of `columns` rows of `depth` elements, which lie ldb apart, for gemm_packed:
   depth x columns rounded up to whole vectors. */
void CPU(gemm_pack_all)(int64_t depth, int64_t columns, const real *b, int64_t ldb, real *packed);

/* Copies depth rows of `columns` columns of B to panel[p * width + j], width being the next whole
   number of vectors. Columns past the last are undefined. */
void CPU(gemm_pack)(bool transposed, int64_t depth, int64_t columns, const real *b, int64_t ldb,
                    real *panel);

/* Packs `rows` columns of A, which is stored transposed, by tiles of TILE_ROWS(TILE_VECTORS) rows:
   depth x so many elements each, and PACKED_STEP apart. */
#define PACKED_STEP(depth) ((depth)*TILE_ROWS(TILE_VECTORS) + 2)
void CPU(gemm_pack_a)(int64_t depth, int64_t rows, const real *a, int64_t lda, real *packed);

/* Pairs of bf16 out of two rows that follow each other: packed[p * width + j] is made of rows 2p
   and 2p + 1 of column j, and 0 in columns past the last. Only the f32 row multiplies bf16
   matrices. */
void CPU(gemm_pack_pairs)(int64_t depth, int64_t columns, const uint16_t *x, int64_t ldx,
                          int64_t width, real *packed);

#endif
