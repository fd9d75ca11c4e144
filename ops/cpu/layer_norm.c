#include "ops/cpu/layer_norm_row.h"
#include "ops/cpu/stream.h"

/* The row to normalise: x, or the sum, which this computes. */
static const real *layer_norm_input_row(const struct layer_norm_forward *f,
                                        struct dropout_reader *reader, int64_t r)
{
    const int64_t C = f->C, first = r * C;
    const real *x = f->x, *branch = f->branch;
    real *sum = f->sum;
    if (!branch)
        return x + first;
    if (f->dropout.threshold > 0)
        layer_norm_add_dropped_row(reader, first, C, x + first, branch + first, sum + first);
    else
        layer_norm_add_row(C, x + first, branch + first, sum + first);
    return sum + first;
}

/* Called inside a parallel region, whose threads share the rows. */
static void layer_norm_forward_rows(const struct layer_norm_forward *f)
{
    const int64_t C = f->C;
    real *y = f->y, *mean = f->mean, *scale = f->scale;
    struct dropout_reader reader = {.dropout = &f->dropout};
    const bool streamed = streams(f->rows, C, y);
    real made[STREAM_ROW] __attribute__((aligned(64)));
#pragma omp for schedule(static) nowait
    for (int64_t r = 0; r < f->rows; r++) {
        const real *row = layer_norm_input_row(f, &reader, r);
        const struct moments m = layer_norm_row_moments(C, row, (real)f->epsilon);
        mean[r] = m.mean;
        scale[r] = m.scale;
        layer_norm_forward_row(C, mean[r], scale[r], row, f->gain, f->bias,
                               stream_begin(streamed, made, y + r * C));
        stream_row(streamed, C, made, y + r * C);
    }
    stream_end();
}

static bool layer_norm_forward(const struct layer_norm_forward *f)
{
    if (f->rows * f->C <= PARALLEL_WORK) {
        layer_norm_forward_rows(f);
        return true;
    }
#pragma omp parallel
    layer_norm_forward_rows(f);
    return true;
}

/* A fresh dx holds only the row's gradient, so dbranch is computed from it. */
static void layer_norm_add_gradients(const struct layer_norm_backward *b,
                                     struct dropout_reader *reader, int64_t r,
                                     const struct row *row, bool streamed)
{
    const int64_t first = r * b->C;
    real made[STREAM_ROW] __attribute__((aligned(64)));
    real *dx = b->dx.to, *dbranch = b->dbranch.to, *to = stream_begin(streamed, made, dx + first);
    if (dx)
        layer_norm_add_gradient(row, b->dx.fresh, to);
    stream_row(streamed, b->C, made, dx + first);
    const real *gradient = dx && b->dx.fresh ? to : NULL;
    if (dbranch && b->dropout.threshold > 0)
        layer_norm_add_dropped_gradient(reader, first, row, gradient, b->dbranch.fresh,
                                        dbranch + first);
    else if (dbranch && gradient && b->dbranch.fresh)
        memcpy(dbranch + first, gradient, (size_t)b->C * sizeof *dbranch);
    else if (dbranch)
        layer_norm_add_gradient(row, b->dbranch.fresh, dbranch + first);
}

static void layer_norm_backward_slab(const struct layer_norm_backward *b, int64_t slab)
{
    const int64_t C = b->C;
    const real *x = b->x, *dy = b->dy, *dsum = b->dsum, *mean = b->mean, *scale = b->scale;
    real *dgain = (real *)b->partial + slab * 2 * C, *dbias = dgain + C;
    struct dropout_reader reader = {.dropout = &b->dropout};
    const bool streamed = b->dx.to && b->dx.fresh && streams(b->rows, C, b->dx.to);
    memset(dgain, 0, 2 * (size_t)C * sizeof *dgain);
    for (int64_t r = slab * SLAB_ROWS; r < slab_end(slab, b->rows); r++) {
        struct row row = {C,       x + r * C, b->gain, dy + r * C, dsum ? dsum + r * C : NULL,
                          mean[r], scale[r],  0,       0};
        layer_norm_sum_row(&row, dgain, dbias);
        layer_norm_add_gradients(b, &reader, r, &row, streamed);
    }
    stream_end();
}

static bool layer_norm_backward(const struct layer_norm_backward *b)
{
    const int64_t C = b->C, slabs = slab_count(b->rows);
    const real *partial = b->partial;
#pragma omp parallel for schedule(static) if (b->rows * C > PARALLEL_WORK)
    for (int64_t slab = 0; slab < slabs; slab++)
        layer_norm_backward_slab(b, slab);
    if (b->dgain.to)
        add_slabs(slabs, C, 2 * C, partial, b->dgain.fresh, b->dgain.to);
    if (b->dbias.to)
        add_slabs(slabs, C, 2 * C, partial + C, b->dbias.fresh, b->dbias.to);
    return true;
}

KERNELS(layer_norm) = {layer_norm_forward, layer_norm_backward};
