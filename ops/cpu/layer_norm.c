#include "ops/layer_norm.h"
#include "ops/cpu/dropout_bits.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/stream.h"

struct moments {
    real mean, variance;
};

/* The sums of d = x - (first mean) correct the rounding of that mean (Chan, Golub and LeVeque
   1983), so a row of equal values has variance 0 for any magnitude. */
static struct moments layer_norm_row_moments(int64_t C, const real *x)
{
    real sum = 0, sum_d = 0, sum_d2 = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < C; c++)
        sum += x[c];
    real first = sum / (real)C;
#pragma omp simd reduction(+ : sum_d, sum_d2)
    for (int64_t c = 0; c < C; c++) {
        real d = x[c] - first;
        sum_d += d;
        sum_d2 += d * d;
    }
    real variance = (sum_d2 - sum_d * (sum_d / (real)C)) / (real)C;
    return (struct moments){first + sum_d / (real)C, variance < 0 ? 0 : variance};
}

static void layer_norm_forward_row(int64_t C, real mean, real scale, const real *restrict x,
                                   const real *restrict gain, const real *restrict bias,
                                   real *restrict y)
{
    for (int64_t c = 0; c < C; c++)
        y[c] = gain[c] * ((x[c] - mean) * scale) + (bias ? bias[c] : 0);
}

static void layer_norm_add_row(int64_t C, const real *x, const real *branch, real *restrict sum)
{
    for (int64_t c = 0; c < C; c++)
        sum[c] = x[c] + branch[c];
}

/* sum = x + dropout(branch) for the row that begins at element `first` */
static void layer_norm_add_dropped_row(struct dropout_reader *reader, int64_t first, int64_t C,
                                       const real *x, const real *branch, real *sum)
{
    real kept[DROPOUT_CHUNK];
    for (int64_t c = 0, n; c < C; c += n) {
        n = C - c;
        const uint16_t *bits = dropout_read_here(reader, first + c, &n);
        dropout_apply(reader->dropout, bits, n, branch + c, kept);
        layer_norm_add_row(n, x + c, kept, sum + c);
    }
}

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
        struct moments m = layer_norm_row_moments(C, row);
        mean[r] = m.mean;
        scale[r] = 1 / real_sqrt(m.variance + (real)f->epsilon);
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

/* One row of what backward reads: y_c = gain_c h_c + bias_c, h_c = (x_c - mean) scale. */
struct row {
    int64_t C;
    const real *x, *gain, *dy, *dsum;
    real mean, scale;
    real mean_u, mean_uh; /* of u = gain dy, and of u h */
};

/* Finishes the row's means, and adds its part to the slab's dgain and dbias. */
static void layer_norm_sum_row(struct row *row, real *restrict dgain, real *restrict dbias)
{
    const real *x = row->x, *gain = row->gain, *dy = row->dy;
    const real mean = row->mean, scale = row->scale;
    real sum_u = 0, sum_uh = 0;
#pragma omp simd reduction(+ : sum_u, sum_uh)
    for (int64_t c = 0; c < row->C; c++) {
        real h = (x[c] - mean) * scale, u = gain[c] * dy[c];
        sum_u += u;
        sum_uh += u * h;
        dgain[c] += dy[c] * h;
        dbias[c] += dy[c];
    }
    row->mean_u = sum_u / (real)row->C;
    row->mean_uh = sum_uh / (real)row->C;
}

static void layer_norm_add_gradient(const struct row *row, bool fresh, real *restrict dx)
{
    const real *restrict x = row->x, *restrict gain = row->gain, *restrict dy = row->dy;
    const real mean = row->mean, scale = row->scale, mean_u = row->mean_u, mean_uh = row->mean_uh;
    for (int64_t c = 0; c < row->C; c++) {
        real h = (x[c] - mean) * scale, u = gain[c] * dy[c];
        dx[c] = before(fresh, dx[c]) + (u - mean_u - h * mean_uh) * scale;
    }
    for (int64_t c = 0; row->dsum && c < row->C; c++) /* sum = x + branch */
        dx[c] += row->dsum[c];
}

/* n elements of the row, from c on. */
static struct row layer_norm_part_of(const struct row *row, int64_t c, int64_t n)
{
    struct row part = *row;
    part.C = n;
    part.x += c;
    part.gain += c;
    part.dy += c;
    part.dsum = part.dsum ? part.dsum + c : NULL;
    return part;
}

/* dbranch += dropout(the row's gradient), which is computed unless it is given. */
static void layer_norm_add_dropped_gradient(struct dropout_reader *reader, int64_t first,
                                            const struct row *row, const real *gradient, bool fresh,
                                            real *dbranch)
{
    real kept[DROPOUT_CHUNK];
    for (int64_t c = 0, n; c < row->C; c += n) {
        n = row->C - c;
        const uint16_t *bits = dropout_read_here(reader, first + c, &n);
        const struct row part = layer_norm_part_of(row, c, n);
        real *to = fresh ? dbranch + c : kept;
        if (!gradient)
            layer_norm_add_gradient(&part, true, to);
        dropout_apply(reader->dropout, bits, n, gradient ? gradient + c : to, to);
        for (int64_t e = 0; !fresh && e < n; e++)
            dbranch[c + e] += kept[e];
    }
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
