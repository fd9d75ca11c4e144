/*
 * The built-in product. C is cut into tasks, which threads share. A task packs its columns of B,
 * some panels at a time (DEPTH rows, as wide as a tile), and multiplies each panel with all of its
 * rows of A, some rows at a time: panels and rows then stay in the second-level cache.
 *
 * k is cut into equal blocks of at most DEPTH. The sum over a block starts at zero and is added to
 * C, so that every element of C is the same sequence of operations wherever it stands, however C is
 * cut, however many rows there are, and on any vector width; only whether a multiplication and an
 * addition are fused is up to the processor.
 */
#include "ops/cpu/gemm_builtin.h"
#include "tensor/memory.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* Rows that are multiplied with the same panels, a multiple of every tile's; panels that are packed
   together. */
enum { ROWS = 120, PANELS = 4 };

/* How C is cut into tasks, and its rows of vectors into panels. */
struct cut {
    int64_t vectors, panels, row_blocks, column_blocks;
};

/* The rows and panels of a task, and its memory. */
struct task {
    const struct product *s;
    const struct cut *cut;
    int64_t row, end_row, panel, end_panel;
    real *packed, *copy; /* PANELS or one panel of B; ROWS rows of a transposed A, or NULL */
    int64_t room;        /* panels */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
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

/* The columns of a panel. */
static struct tile panel_at(const struct task *task, int64_t panel, struct tile t)
{
    const struct product *s = task->s;
    int64_t column = part(panel, task->cut->panels, task->cut->vectors) * LANES;
    t.columns =
        least(part(panel + 1, task->cut->panels, task->cut->vectors) * LANES, s->n) - column;
    t.c = s->c + task->row * s->ldc + column;
    t.b += s->transpose_b ? column * s->ldb : column;
    return t;
}

/* A panel whose B is read where it lies; false where it is to be packed. */
static bool multiply_direct(const struct task *task, const struct tile *panel)
{
    const int64_t rows = task->end_row - task->row;
    const bool strip = is_strip(task->s) && panel->columns == STRIP_COLUMNS;
    const bool few = rows <= 16 || (panel->depth <= 64 && rows <= 64);
    if (strip)
        CPU(gemm_strip)(panel, rows);
    else if (!task->s->transpose_b && few && panel->columns % LANES == 0)
        CPU(gemm_tiles)(panel, rows);
    else
        return false;
    return true;
}

/* Rows of a transposed A are packed by tiles: where they lie, they would share a few sets of the
   cache. */
static void pack_a(const struct task *task, struct tile *t, int64_t rows)
{
    CPU(gemm_pack_a)(t->depth, rows, t->a, t->k_step, task->copy);
    t->a = task->copy;
    t->k_step = TILE_ROWS(TILE_VECTORS);
    t->tile_step = PACKED_STEP(t->depth);
}

/* Panels that were packed one behind the other, with all rows of the task. */
static void multiply_packed(const struct task *task, const struct tile *block, int64_t panel,
                            int64_t count)
{
    const int64_t all = task->end_row - task->row, blocks = (all + ROWS - 1) / ROWS;
    const int64_t unit = TILE_ROWS(TILE_VECTORS), units = (all + unit - 1) / unit;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t first = part(i, blocks, units) * unit,
                rows = least(part(i + 1, blocks, units) * unit, all) - first;
        struct tile t = *block;
        t.a += first * t.row_step;
        if (task->copy)
            pack_a(task, &t, rows);
        const real *packed = task->packed;
        for (int64_t j = panel; j < panel + count; j++) {
            struct tile one = panel_at(task, j, t);
            one.b = packed;
            one.ldb = (one.columns + LANES - 1) / LANES * LANES;
            one.c += first * one.ldc;
            CPU(gemm_tiles)(&one, rows);
            packed += one.ldb * one.depth;
        }
    }
}

/* Packs panels from this one on, as many as there is room for; how many those were. */
static int64_t pack(const struct task *task, const struct tile *block, int64_t panel)
{
    const int64_t count = least(task->room, task->end_panel - panel);
    real *packed = task->packed;
    for (int64_t j = panel; j < panel + count; j++) {
        struct tile t = panel_at(task, j, *block);
        CPU(gemm_pack)(task->s->transpose_b, t.depth, t.columns, t.b, task->s->ldb, packed);
        packed += (t.columns + LANES - 1) / LANES * LANES * t.depth;
    }
    return count;
}

static void multiply_block(const struct task *task, const struct tile *block)
{
    for (int64_t panel = task->panel; panel < task->end_panel;) {
        struct tile t = panel_at(task, panel, *block);
        if (multiply_direct(task, &t)) {
            panel++;
            continue;
        }
        int64_t count = pack(task, block, panel);
        multiply_packed(task, block, panel, count);
        panel += count;
    }
}

static void multiply_task(const struct task *task)
{
    const struct product *s = task->s;
    const int64_t depth = block_depth(s->k);
    for (int64_t p = 0; p < s->k; p += depth) {
        struct tile t = {.depth = least(depth, s->k - p),
                         .row_step = s->transpose_a ? 1 : s->lda,
                         .k_step = s->transpose_a ? s->lda : 1,
                         .ldb = s->ldb,
                         .add = p > 0 || s->beta != 0,
                         .ldc = s->ldc};
        t.a = s->a + task->row * t.row_step + p * t.k_step;
        t.b = s->b + (s->transpose_b ? p : p * s->ldb);
        multiply_block(task, &t);
    }
}

static struct task task_at(const struct product *s, const struct cut *cut, int64_t number)
{
    const int64_t unit = TILE_ROWS(TILE_VECTORS), units = (s->m + unit - 1) / unit;
    const int64_t i = number / cut->column_blocks, j = number % cut->column_blocks;
    return (struct task){
        .s = s,
        .cut = cut,
        .row = part(i, cut->row_blocks, units) * unit,
        .end_row = least(part(i + 1, cut->row_blocks, units) * unit, s->m),
        .panel = part(j, cut->column_blocks, cut->panels),
        .end_panel = part(j + 1, cut->column_blocks, cut->panels),
    };
}

/* Packing a transposed A pays where several panels read it, and only tiles of one kind can. */
static bool copies_a(const struct task *task)
{
    const struct product *s = task->s;
    return s->transpose_a && s->lda >= 256 && task->end_panel - task->panel > 1 &&
           task->cut->vectors % TILE_VECTORS == 0;
}

/* With memory for a few deep panels, or without: then those do for which the stack has room. */
static void run_task(const struct product *s, const struct cut *cut, int64_t number)
{
    real stack[DEPTH * TILE_VECTORS * LANES] __attribute__((aligned(64)));
    struct task task = task_at(s, cut, number);
    const int64_t depth = least(block_depth(s->k), s->k), panel = depth * TILE_VECTORS * LANES;
    const int64_t panels = least(task.end_panel - task.panel, PANELS);
    const bool copies = copies_a(&task), wants = copies || (panels > 1 && depth > DEPTH / 2);
    const int64_t copy = copies ? (ROWS / TILE_ROWS(TILE_VECTORS) + 1) * PACKED_STEP(depth) : 0;
    const size_t bytes = (size_t)(panels * panel + copy) * sizeof(real);
    real *memory = wants ? pool_take(memory_pool(), bytes) : NULL;
    task.packed = memory ? memory : stack;
    task.room = memory ? panels : least(panels, DEPTH / depth);
    task.copy = memory && copies ? memory + panels * panel : NULL;
    multiply_task(&task);
    pool_give(memory_pool(), memory, bytes);
}

/*
 * Columns are cut first: each column of B is then packed once. Rows are cut only where columns are
 * too few for the threads, or cannot be shared fairly.
 */
static struct cut cut_of(const struct product *s, int64_t threads)
{
    const int64_t width = is_strip(s) ? STRIP_VECTORS : TILE_VECTORS;
    const int64_t tasks = threads > 1 ? 2 * threads : 1;
    struct cut cut;
    cut.vectors = (s->n + LANES - 1) / LANES;
    cut.panels = (cut.vectors + width - 1) / width;
    cut.column_blocks = least(cut.panels, tasks);
    cut.row_blocks = (tasks + cut.column_blocks - 1) / cut.column_blocks;
    if (cut.panels % threads != 0 && cut.panels < 8 * threads)
        cut.row_blocks = most(cut.row_blocks, 2);
    cut.row_blocks = least(cut.row_blocks, most(s->m / 64, 1));
    return cut;
}

/* How many threads it is worth. */
static int64_t threads_for(const struct product *s)
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
    const struct cut cut = cut_of(s, threads ? threads_for(s) : 1);
    const int64_t tasks = cut.row_blocks * cut.column_blocks;
    if (tasks == 1) {
        run_task(s, &cut, 0);
        return;
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < tasks; i++)
        run_task(s, &cut, i);
}
