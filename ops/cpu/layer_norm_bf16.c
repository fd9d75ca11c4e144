/*
 * Layer norm in bf16: rows are widened in the cache and computed as in f32; results are rounded
 * once: y, the sum, dx, dbranch, dgain and dbias. y is the norm of the sum before its rounding.
 */
#include "ops/cpu/layer_norm_row.h"
#include "ops/cpu/real.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

#if REAL_IS_FLOAT
/* Rows of f32, in the memory of one thread. */
enum { ROW_X, ROW_BRANCH, ROW_GAIN, ROW_BIAS, ROW_SUM, ROW_RESULT, ROWS };

static size_t layer_norm_bytes(int64_t C)
{
    return (size_t)(ROWS * C) * sizeof(real);
}

/* Row n of the thread's memory, with C numbers of bf16; NULL for NULL. */
static const real *layer_norm_widened(real *memory, int n, int64_t C, const uint16_t *x)
{
    if (x)
        bf16_widen(C, x, memory + n * C);
    return x ? memory + n * C : NULL;
}

static const uint16_t *layer_norm_at(const void *x, int64_t first)
{
    return x ? (const uint16_t *)x + first : NULL;
}

/* The row to normalise: x, or the sum, which this computes and rounds. */
static const real *layer_norm_bf16_input(const struct layer_norm_forward *f,
                                         struct dropout_reader *reader, int64_t first, real *memory)
{
    const int64_t C = f->C;
    const real *x = layer_norm_widened(memory, ROW_X, C, layer_norm_at(f->x, first));
    const real *branch = layer_norm_widened(memory, ROW_BRANCH, C, layer_norm_at(f->branch, first));
    real *sum = memory + ROW_SUM * C;
    if (!branch)
        return x;
    if (f->dropout.threshold > 0)
        layer_norm_add_dropped_row(reader, first, C, x, branch, sum);
    else
        layer_norm_add_row(C, x, branch, sum);
    bf16_round(C, sum, (uint16_t *)f->sum + first);
    return sum;
}

static void layer_norm_bf16_row(const struct layer_norm_forward *f, struct dropout_reader *reader,
                                int64_t r, real *memory)
{
    const int64_t C = f->C;
    const real *row = layer_norm_bf16_input(f, reader, r * C, memory);
    const struct moments m = layer_norm_row_moments(C, row, (real)f->epsilon);
    real *y = memory + ROW_RESULT * C;
    ((real *)f->mean)[r] = m.mean;
    ((real *)f->scale)[r] = m.scale;
    layer_norm_forward_row(C, m.mean, m.scale, row, memory + ROW_GAIN * C,
                           f->bias ? memory + ROW_BIAS * C : NULL, y);
    bf16_round(C, y, (uint16_t *)f->y + r * C);
}

/* The memory of a thread, with what all of its rows read; NULL when there is none. */
static real *layer_norm_take(int64_t C, const void *gain, const void *bias)
{
    real *memory = pool_take(memory_pool(), layer_norm_bytes(C));
    if (!memory)
        return NULL;
    layer_norm_widened(memory, ROW_GAIN, C, gain);
    layer_norm_widened(memory, ROW_BIAS, C, bias);
    return memory;
}

static bool layer_norm_forward(const struct layer_norm_forward *f)
{
    bool ok = true;
#pragma omp parallel reduction(&& : ok) if (f->rows * f->C > PARALLEL_WORK)
    {
        struct dropout_reader reader = {.dropout = &f->dropout};
        real *memory = layer_norm_take(f->C, f->gain, f->bias);
        ok = memory != NULL;
#pragma omp for schedule(static)
        for (int64_t r = 0; r < f->rows; r++)
            if (memory)
                layer_norm_bf16_row(f, &reader, r, memory);
        pool_give(memory_pool(), memory, layer_norm_bytes(f->C));
    }
    return ok || sb_fail("layer_norm: out of memory");
}

/* Adds the gradients of one row to dx, dbranch, and the slab's dgain and dbias. */
static void layer_norm_bf16_gradients(const struct layer_norm_backward *b,
                                      struct dropout_reader *reader, int64_t r, real *memory,
                                      real *dgain)
{
    const int64_t C = b->C, first = r * C;
    struct row row = {.C = C, .gain = memory + ROW_GAIN * C};
    row.mean = ((const real *)b->mean)[r];
    row.scale = ((const real *)b->scale)[r];
    row.x = layer_norm_widened(memory, ROW_X, C, layer_norm_at(b->x, first));
    row.dy = layer_norm_widened(memory, ROW_BRANCH, C, layer_norm_at(b->dy, first));
    row.dsum = layer_norm_widened(memory, ROW_SUM, C, layer_norm_at(b->dsum, first));
    layer_norm_sum_row(&row, dgain, dgain + C);
    real *dx = memory + ROW_RESULT * C;
    layer_norm_add_gradient(&row, true, dx);
    if (b->dx.to)
        bf16_add(C, dx, b->dx.fresh, (uint16_t *)b->dx.to + first);
    if (b->dbranch.to && b->dropout.threshold > 0)
        layer_norm_add_dropped_gradient(reader, first, &row, dx, true, dx);
    if (b->dbranch.to)
        bf16_add(C, dx, b->dbranch.fresh, (uint16_t *)b->dbranch.to + first);
}

/* The sums of the slabs, rounded once, in `sums`, unless the gradient is wide. */
static void layer_norm_add_slabs(const struct layer_norm_backward *b, const real *partial,
                                 struct norm_gradient gradient, real *sums)
{
    if (!gradient.to)
        return;
    add_slabs(slab_count(b->rows), b->C, 2 * b->C, partial, !gradient.wide || gradient.fresh,
              gradient.wide ? gradient.to : sums);
    if (!gradient.wide)
        bf16_add(b->C, sums, gradient.fresh, gradient.to);
}

static bool layer_norm_backward(const struct layer_norm_backward *b)
{
    const int64_t C = b->C, slabs = slab_count(b->rows);
    real *partial = b->partial, *sums = layer_norm_take(C, NULL, NULL);
    bool ok = sums != NULL;
#pragma omp parallel reduction(&& : ok) if (b->rows * C > PARALLEL_WORK)
    {
        real *memory = layer_norm_take(C, b->gain, NULL);
        ok = ok && memory != NULL;
#pragma omp for schedule(static)
        for (int64_t slab = 0; slab < slabs; slab++) {
            struct dropout_reader reader = {.dropout = &b->dropout};
            memset(partial + slab * 2 * C, 0, 2 * (size_t)C * sizeof *partial);
            for (int64_t r = slab * SLAB_ROWS; memory && r < slab_end(slab, b->rows); r++)
                layer_norm_bf16_gradients(b, &reader, r, memory, partial + slab * 2 * C);
        }
        pool_give(memory_pool(), memory, layer_norm_bytes(C));
    }
    if (ok) {
        layer_norm_add_slabs(b, partial, b->dgain, sums);
        layer_norm_add_slabs(b, partial + C, b->dbias, sums);
    }
    pool_give(memory_pool(), sums, layer_norm_bytes(C));
    return ok || sb_fail("layer_norm: out of memory");
}

KERNELS_BF16(layer_norm) = {layer_norm_forward, layer_norm_backward};
#endif
