/*
 * The built-in product. B is packed a panel at a time (DEPTH rows, as wide as a tile), each panel
 * is multiplied with all rows of A that the task has, and then overwritten: it lives on the stack.
 *
 * k is cut into equal blocks of at most DEPTH. The sum over a block starts at zero and is added to
 * C, so that every element of C is the same sequence of operations wherever it stands, however many
 * rows there are, and on any vector width; only whether a multiplication and an addition are fused
 * is up to the processor.
 */
#include "ops/cpu/gemm_builtin.h"
#include "tensor/memory.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* How C is cut into blocks, and its rows of vectors into panels. */
struct cut {
    int64_t vectors, panels, row_blocks, column_blocks;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Blocks of k are of equal depth, but for rounding, which keeps them whole in vectors. */
static int64_t block_depth(int64_t k)
{
    int64_t blocks = (k + DEPTH - 1) / DEPTH;
    return ((k + blocks - 1) / blocks + 15) / 16 * 16;
}

/* Whether B is read where it lies: for a few rows, packing costs more than it saves. */
static bool is_strip(const struct product *s)
{
    return s->transpose_b && s->m <= STRIP_ROWS;
}

/* One panel of B, so many rows of A. */
static void multiply_panel(const struct product *s, struct tile t, int64_t rows, const real *b,
                           real *panel)
{
    bool strip = is_strip(s) && t.columns == STRIP_COLUMNS;
    bool direct = strip || (!s->transpose_b && rows <= 2 * TILE_ROWS && t.columns % LANES == 0);
    t.b = direct ? b : panel;
    t.ldb = direct ? s->ldb : (t.columns + LANES - 1) / LANES * LANES;
    if (!direct)
        CPU(gemm_pack)(s->transpose_b, t.depth, t.columns, b, s->ldb, panel);
    if (strip)
        CPU(gemm_strip)(&t, rows);
    else
        CPU(gemm_tiles)(&t, rows);
}

/*
 * Rows of a transposed A that lie in pages of their own are slow to read a few elements at a time,
 * so the block's share of them is copied together: depth x rows, a line of space between rows.
 * Returns the memory for that, or NULL, and then they are read where they lie.
 */
static real *room_for_a(const struct product *s, int64_t rows, int64_t *row_step, size_t *bytes)
{
    const int64_t page = 4096 / (int64_t)sizeof(real), line = 64 / (int64_t)sizeof(real);
    if (!s->transpose_a || s->lda < page || rows <= 4 * TILE_ROWS)
        return NULL;
    *row_step = (rows + line - 1) / line * line + line;
    *bytes = (size_t)(*row_step * least(s->k, DEPTH)) * sizeof(real);
    return pool_take(memory_pool(), *bytes);
}

static void copy_a(struct tile *t, int64_t rows, real *copy, int64_t row_step)
{
    for (int64_t p = 0; p < t->depth; p++)
        memcpy(copy + p * row_step, t->a + p * t->k_step, (size_t)rows * sizeof(real));
    t->a = copy;
    t->k_step = row_step;
}

/* A block of C: rows from `row` on, and some panels of columns. */
static void multiply_block(const struct product *s, const struct cut *cut, int64_t row,
                           int64_t rows, int64_t panel, int64_t end_panel)
{
    real packed[DEPTH * TILE_VECTORS * LANES] __attribute__((aligned(64)));
    size_t copy_bytes = 0;
    int64_t copy_step = 0, depth = block_depth(s->k);
    real *copy = room_for_a(s, rows, &copy_step, &copy_bytes);
    for (int64_t p = 0; p < s->k; p += depth) {
        struct tile t = {.depth = least(depth, s->k - p),
                         .row_step = s->transpose_a ? 1 : s->lda,
                         .k_step = s->transpose_a ? s->lda : 1,
                         .add = p > 0 || s->beta != 0,
                         .ldc = s->ldc};
        t.a = s->a + row * t.row_step + p * t.k_step;
        if (copy)
            copy_a(&t, rows, copy, copy_step);
        for (int64_t i = panel; i < end_panel; i++) {
            int64_t column = part(i, cut->panels, cut->vectors) * LANES;
            t.columns = least(part(i + 1, cut->panels, cut->vectors) * LANES, s->n) - column;
            t.c = s->c + row * s->ldc + column;
            const real *b = s->b + (s->transpose_b ? column * s->ldb + p : p * s->ldb + column);
            multiply_panel(s, t, rows, b, packed);
        }
    }
    pool_give(memory_pool(), copy, copy_bytes);
}

static void multiply_task(const struct product *s, const struct cut *cut, int64_t task)
{
    int64_t i = task / cut->column_blocks, tiles = (s->m + TILE_ROWS - 1) / TILE_ROWS;
    int64_t row = part(i, cut->row_blocks, tiles) * TILE_ROWS;
    int64_t end = least(part(i + 1, cut->row_blocks, tiles) * TILE_ROWS, s->m);
    int64_t j = task % cut->column_blocks;
    multiply_block(s, cut, row, end - row, part(j, cut->column_blocks, cut->panels),
                   part(j + 1, cut->column_blocks, cut->panels));
}

/*
 * Blocks are what threads share: by rows, so few that a block of A stays in the second-level cache
 * and so many that packing B for each block costs little; then by panels.
 */
static struct cut cut_of(const struct product *s)
{
    int64_t width = is_strip(s) ? STRIP_VECTORS : TILE_VECTORS;
    struct cut cut;
    cut.vectors = (s->n + LANES - 1) / LANES;
    cut.panels = (cut.vectors + width - 1) / width;
    int64_t rows = cut.panels < 16 ? 128 : 256;
    cut.row_blocks = (s->m + rows - 1) / rows;
    cut.column_blocks = least(cut.panels, cut.row_blocks < 16 ? 16 / cut.row_blocks : 1);
    return cut;
}

static bool is_worth_threads(const struct product *s)
{
#ifdef _OPENMP
    double least_work = 32 * (double)PARALLEL_WORK;
    return (double)(s->m + 8) * (double)s->n * (double)s->k > least_work && !omp_in_parallel();
#else
    (void)s;
    return false;
#endif
}

static void scale(const struct product *s)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++)
            s->c[i * s->ldc + j] = s->beta == 0 ? 0 : s->beta * s->c[i * s->ldc + j];
}

void CPU(gemm_multiply)(const struct product *s, bool threads)
{
    if (s->m <= 0 || s->n <= 0)
        return;
    if (s->k <= 0) {
        scale(s);
        return;
    }
    if (s->beta != 0 && s->beta != 1)
        scale(s); /* apart, so that no compiler fuses it with the addition in one place only */
    struct cut cut = cut_of(s);
    int64_t tasks = cut.row_blocks * cut.column_blocks;
    if (!threads || tasks == 1 || !is_worth_threads(s)) {
        for (int64_t i = 0; i < tasks; i++)
            multiply_task(s, &cut, i);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < tasks; i++)
        multiply_task(s, &cut, i);
}
