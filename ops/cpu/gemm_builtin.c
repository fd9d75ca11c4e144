/*
 * The built-in product. C is divided into tasks, which threads share. A task packs its columns of
 * B, some panels at a time (DEPTH rows, as wide as a tile), and multiplies each panel with all of
 * its rows of A, some rows at a time: panels and rows then stay in the second-level cache.
 *
 * k is divided into equal blocks of at most DEPTH. The sum over a block starts at zero and is added
 * to C. So every element of C is the same sequence of operations for any position, division of C,
 * number of rows and vector width; only fused multiply-add depends on the processor.
 */
#include "ops/cpu/gemm_builtin.h"
#include "ops/cpu/gemm.h"
#include "tensor/memory.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* Rows that are multiplied with the same panels, a multiple of every tile's; panels that are packed
   together: 512 KB of B. A second-level cache of that size holds most of them beside these rows,
   and a transposed A, which is packed once for each group of panels, costs half as much. */
enum { ROWS = 120, PANELS = (1 << 19) / (DEPTH * TILE_VECTORS * VECTOR_BYTES) };

/* How C is divided into tasks, and its rows of vectors into panels. */
struct cut {
    int64_t vectors, panels, row_blocks, column_blocks;
    bool shared; /* B is packed once for all tasks */
};

/* The rows and panels of a task, and its memory. */
struct task {
    const struct product *s;
    const struct cut *cut;
    tiles_function *tiles;
    int64_t row, end_row, panel, end_panel;
    real *packed, *copy; /* panels of B; ROWS rows of a transposed A, or NULL */
    int64_t room;        /* panels */
};

/* Whether B is read in place: for few rows, packing costs more than it saves. */
static bool gemm_is_strip(const struct product *s)
{
    return s->transpose_b && s->m <= STRIP_ROWS && !s->bf16 && !s->packed;
}

/* A's element (row, p), or the first number of a pair. */
static const void *gemm_a_at(const struct product *s, int64_t row, int64_t p)
{
    const int64_t k = s->bf16 ? 2 * p : p, i = s->transpose_a ? k * s->lda + row : row * s->lda + k;
    return s->bf16 ? (const void *)((const uint16_t *)s->a + i) : (const real *)s->a + i;
}

/* B's element (p, column), or the first number of a pair. */
static const void *gemm_b_at(const struct product *s, int64_t p, int64_t column)
{
    const int64_t k = s->bf16 ? 2 * p : p,
                  i = s->transpose_b ? column * s->ldb + k : k * s->ldb + column;
    return s->bf16 ? (const void *)((const uint16_t *)s->b + i) : (const real *)s->b + i;
}

/* The columns of a panel; reads B from row p on, unless B is packed. */
static struct tile gemm_panel_at(const struct task *task, int64_t panel, int64_t p, struct tile t)
{
    const struct product *s = task->s;
    int64_t column = part(panel, task->cut->panels, task->cut->vectors) * LANES;
    t.columns =
        smaller(part(panel + 1, task->cut->panels, task->cut->vectors) * LANES, s->n) - column;
    t.c = s->c + task->row * s->ldc + column;
    t.b = s->packed ? (const real *)s->b + packed_at(s->n, p, t.depth, column)
                    : gemm_b_at(s, p, column);
    return t;
}

/* Multiplies a panel with B in place; false if B has to be packed. */
static bool gemm_multiply_direct(const struct task *task, const struct tile *panel)
{
    const int64_t rows = task->end_row - task->row;
    const bool strip = gemm_is_strip(task->s) && panel->columns == STRIP_COLUMNS;
    const bool few = rows <= 16 || (panel->depth <= 64 && rows <= 64);
    const bool lies = !task->s->transpose_b && !task->s->bf16 && panel->columns % LANES == 0;
    if (strip)
        CPU(gemm_strip)(panel, rows);
    else if (few && lies)
        CPU(gemm_tiles)(panel, rows);
    else
        return false;
    return true;
}

/* Packs rows of a transposed A: in place, they map to few cache sets, and the numbers of a pair are
   not adjacent. */
static void gemm_pack_rows(const struct task *task, struct tile *t, int64_t rows)
{
    const struct product *s = task->s;
    if (s->bf16) {
        CPU(gemm_pack_pairs)(t->depth, rows, (const void *)t->a, s->lda, ROWS, task->copy);
        t->k_step = ROWS;
    } else {
        CPU(gemm_pack_a)(t->depth, rows, t->a, s->lda, task->copy);
        t->k_step = TILE_ROWS(TILE_VECTORS);
        t->tile_step = PACKED_STEP(t->depth);
    }
    t->a = task->copy;
}

/* Multiplies consecutive packed panels with all rows of the task. */
static void gemm_multiply_packed(const struct task *task, const struct tile *block, int64_t p,
                                 int64_t panel, int64_t count, const real *panels)
{
    const int64_t all = task->end_row - task->row, blocks = (all + ROWS - 1) / ROWS;
    const int64_t unit = TILE_ROWS(TILE_VECTORS), units = (all + unit - 1) / unit;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t first = part(i, blocks, units) * unit,
                rows = smaller(part(i + 1, blocks, units) * unit, all) - first;
        struct tile t = *block;
        t.a = gemm_a_at(task->s, task->row + first, p);
        if (task->copy)
            gemm_pack_rows(task, &t, rows);
        const real *packed = panels;
        for (int64_t j = panel; j < panel + count; j++) {
            struct tile one = gemm_panel_at(task, j, p, t);
            one.b = packed;
            one.ldb = (one.columns + LANES - 1) / LANES * LANES;
            one.c += first * one.ldc;
            task->tiles(&one, rows);
            packed += one.ldb * one.depth;
        }
    }
}

/* Packs panels from this one on while there is room, and returns their number. Contiguous pairs are
   copied like reals. */
static int64_t gemm_pack_panel(const struct task *task, const struct tile *block, int64_t p,
                               int64_t panel)
{
    const struct product *s = task->s;
    const bool pairs_lie_apart = s->bf16 && !s->transpose_b;
    const int64_t count = smaller(task->room, task->end_panel - panel);
    const int64_t ldb = s->bf16 ? s->ldb / 2 : s->ldb;
    real *packed = task->packed;
    for (int64_t j = panel; j < panel + count; j++) {
        const struct tile t = gemm_panel_at(task, j, p, *block);
        const int64_t width = (t.columns + LANES - 1) / LANES * LANES;
        if (pairs_lie_apart)
            CPU(gemm_pack_pairs)(t.depth, t.columns, (const void *)t.b, s->ldb, width, packed);
        else
            CPU(gemm_pack)(s->transpose_b, t.depth, t.columns, t.b, ldb, packed);
        packed += width * t.depth;
    }
    return count;
}

/* Whether the panel's B is already in packed order, as when it is all of B. */
static bool gemm_lies_packed(const struct product *s, const struct tile *panel)
{
    const bool is_all = !s->transpose_b && panel->columns == s->ldb && s->ldb % LANES == 0;
    return s->packed || (is_all && !s->bf16);
}

static void gemm_multiply_block(const struct task *task, const struct tile *block, int64_t p)
{
    for (int64_t panel = task->panel; panel < task->end_panel;) {
        struct tile t = gemm_panel_at(task, panel, p, *block);
        t.a = gemm_a_at(task->s, task->row, p);
        if (gemm_multiply_direct(task, &t)) {
            panel++;
            continue;
        }
        const bool packed = gemm_lies_packed(task->s, &t);
        const int64_t count =
            packed ? task->end_panel - panel : gemm_pack_panel(task, block, p, panel);
        gemm_multiply_packed(task, block, p, panel, count, packed ? t.b : task->packed);
        panel += count;
    }
}

static void gemm_multiply_task(const struct task *task)
{
    const struct product *s = task->s;
    const int64_t depth = block_depth(s->k), lda = s->bf16 ? s->lda / 2 : s->lda;
    for (int64_t p = 0; p < s->k; p += depth) {
        const struct tile t = {.depth = smaller(depth, s->k - p),
                               .row_step = s->transpose_a ? 1 : lda,
                               .k_step = s->transpose_a ? s->lda : 1,
                               .ldb = s->ldb,
                               .add = p > 0 || s->beta != 0,
                               .ldc = s->ldc};
        gemm_multiply_block(task, &t, p);
    }
}

/* Only the f32 row multiplies bf16 matrices. */
static tiles_function *gemm_tiles_for(const struct product *s)
{
#if REAL_IS_FLOAT
#if defined(SOFTBACK_BF16_TILES) && VECTOR_BYTES == 64
    if (s->bf16 && __builtin_cpu_supports("avx512bf16"))
        return CPU(gemm_tiles_bf16_native);
#endif
    if (s->bf16)
        return CPU(gemm_tiles_bf16);
#endif
    (void)s;
    return CPU(gemm_tiles);
}

static struct task gemm_task_at(const struct product *s, const struct cut *cut, int64_t number)
{
    const int64_t unit = TILE_ROWS(TILE_VECTORS), units = (s->m + unit - 1) / unit;
    const int64_t i = number / cut->column_blocks, j = number % cut->column_blocks;
    return (struct task){
        .s = s,
        .cut = cut,
        .tiles = gemm_tiles_for(s),
        .row = part(i, cut->row_blocks, units) * unit,
        .end_row = smaller(part(i + 1, cut->row_blocks, units) * unit, s->m),
        .panel = part(j, cut->column_blocks, cut->panels),
        .end_panel = part(j + 1, cut->column_blocks, cut->panels),
    };
}

/* Packing a transposed A of reals is worthwhile when several panels read it; only full tiles can
   read it. */
static bool gemm_copies_a(const struct task *task)
{
    const struct product *s = task->s;
    const bool pays = s->lda >= 256 && task->end_panel - task->panel > 1;
    return s->transpose_a && (s->bf16 || (pays && task->cut->vectors % TILE_VECTORS == 0));
}

static int64_t gemm_size_of_copy(const struct product *s, int64_t depth)
{
    return s->bf16 ? ROWS * depth : (ROWS / TILE_ROWS(TILE_VECTORS) + 1) * PACKED_STEP(depth);
}

/* Runs a task with memory for a few deep panels. When out of memory it uses panels on the stack,
   except for a transposed A of bf16. */
static bool gemm_run_task(const struct product *s, const struct cut *cut, int64_t number)
{
    real stack[DEPTH * TILE_VECTORS * LANES] __attribute__((aligned(64)));
    struct task task = gemm_task_at(s, cut, number);
    const int64_t depth = smaller(block_depth(s->k), s->k), panel = depth * TILE_VECTORS * LANES;
    const int64_t panels = s->packed ? 0 : smaller(task.end_panel - task.panel, PANELS);
    const bool copies = gemm_copies_a(&task);
    const bool wants = copies || (panels > 1 && depth > DEPTH / 2);
    const int64_t copy = copies ? gemm_size_of_copy(s, depth) : 0;
    const size_t bytes = (size_t)(panels * panel + copy) * sizeof(real);
    real *memory = wants ? pool_take(memory_pool(), bytes) : NULL;
    task.packed = memory ? memory : stack;
    task.room = memory ? panels : smaller(panels, DEPTH / depth);
    task.copy = memory && copies ? memory + panels * panel : NULL;
    const bool ok = task.copy || !copies || !s->bf16;
    if (ok)
        gemm_multiply_task(&task);
    pool_give(memory_pool(), memory, bytes);
    return ok;
}

/*
 * Columns are divided first, so that each column of B is packed once. Rows are divided only when
 * there are too few columns for the threads or the columns cannot be shared evenly. A transposed A
 * costs more to pack, once for each group of panels, so these groups are not divided: then threads
 * pack B together, and tasks, which need not, are smaller.
 */
static struct cut gemm_cut_of(const struct product *s, int64_t threads)
{
    const int64_t width = gemm_is_strip(s) ? STRIP_VECTORS : TILE_VECTORS;
    struct cut cut;
    cut.vectors = (s->n + LANES - 1) / LANES;
    cut.panels = (cut.vectors + width - 1) / width;
    cut.shared = threads > 1 && s->transpose_a && !s->bf16 && cut.panels > 1 && !gemm_is_strip(s);
    const int64_t tasks = threads == 1 ? 1 : cut.shared ? 4 * threads : 2 * threads;
    cut.column_blocks =
        smaller(s->transpose_a ? (cut.panels + PANELS - 1) / PANELS : cut.panels, tasks);
    cut.row_blocks = (tasks + cut.column_blocks - 1) / cut.column_blocks;
    if (cut.panels % threads != 0 && cut.panels < 8 * threads)
        cut.row_blocks = larger(cut.row_blocks, 2);
    cut.row_blocks = smaller(cut.row_blocks, larger(s->m / 24, 1));
    return cut;
}

/* The number of threads that the product is worth. */
static int64_t gemm_threads_for(const struct product *s)
{
#ifdef _OPENMP
    double least_work = 32 * (double)PARALLEL_WORK;
    if ((double)(s->m + 8) * (double)s->n * (double)s->k > least_work && !omp_in_parallel())
        return omp_get_max_threads();
#else
    (void)s;
#endif
    return 1;
}

static void gemm_scale(const struct product *s)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++)
            s->c[i * s->ldc + j] = s->beta == 0 ? 0 : s->beta * s->c[i * s->ldc + j];
}

/*
 * For small products, such as one head of a short sequence, planning takes longer than multiplying:
 * they call the tiles directly, which gives the same bits. False if the product is not small.
 */
enum { SMALL = 64 };

static bool gemm_multiply_small(const struct product *s)
{
    const struct factor a = {s->a, s->transpose_a ? 1 : s->lda, s->transpose_a ? s->lda : 1};
    const bool add = s->beta != 0;
    if (s->m <= STRIP_ROWS || s->m > SMALL || s->n > SMALL || s->k > SMALL || s->bf16 || s->packed)
        return false;
    if (!s->transpose_b && s->n % LANES == 0) {
        CPU(gemm_rows)(s->m, s->n, s->k, a, s->b, s->ldb, add, s->c, s->ldc);
        return true;
    }
    if (!s->transpose_b || add)
        return false;
    real packed[SMALL * SMALL];
    CPU(gemm_pack_all)(s->k, s->n, s->b, s->ldb, packed);
    CPU(gemm_packed)(s->m, s->n, 0, s->n, s->k, a, packed, s->c, s->ldc);
    return true;
}

static bool gemm_multiply_tasks(const struct product *s, const struct cut *cut)
{
    const int64_t tasks = cut->row_blocks * cut->column_blocks;
    if (tasks == 1)
        return gemm_run_task(s, cut, 0);
    bool ok = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : ok)
    for (int64_t i = 0; i < tasks; i++)
        ok = gemm_run_task(s, cut, i) && ok;
    return ok;
}

/* All tasks read one packed B. False if each has to pack its own, or there is no memory. */
static bool gemm_multiply_shared(const struct product *s, const struct cut *cut)
{
    const size_t bytes = (size_t)CPU(gemm_weight_size)(s->n, s->k) * sizeof(real);
    real *packed = cut->shared ? pool_take(memory_pool(), bytes) : NULL;
    if (!packed)
        return false;
    CPU(gemm_pack_b)(s->transpose_b, s->n, s->k, s->b, s->ldb, packed);
    struct product shared = *s;
    shared.b = packed;
    shared.transpose_b = shared.packed = true;
    const bool ok = gemm_multiply_tasks(&shared, cut);
    pool_give(memory_pool(), packed, bytes);
    return ok;
}

bool CPU(gemm_multiply)(const struct product *s, bool threads)
{
    if (s->m <= 0 || s->n <= 0)
        return true;
    if (s->beta != 0 && s->beta != 1)
        gemm_scale(
            s); /* separate, so that compilers fuse it with the addition everywhere or nowhere */
    if (s->k <= 0) {
        if (s->beta == 0)
            gemm_scale(s);
        return true;
    }
    if (gemm_multiply_small(s))
        return true;
    const struct cut cut = gemm_cut_of(s, threads ? gemm_threads_for(s) : 1);
    return gemm_multiply_shared(s, &cut) || gemm_multiply_tasks(s, &cut);
}
