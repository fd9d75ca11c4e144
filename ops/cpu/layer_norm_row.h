/* Rows of layer norm: the sums and formulas that its kernels share. */
#ifndef SOFTBACK_OPS_CPU_LAYER_NORM_ROW_H
#define SOFTBACK_OPS_CPU_LAYER_NORM_ROW_H

#include "ops/cpu/dropout_bits.h"
#include "ops/cpu/rows.h"
#include "ops/normalization.h"

struct moments {
    real mean, scale; /* scale = 1 / sqrt(variance + epsilon) */
};

/* Of x times a factor. The sums of d = x - (first mean) correct the rounding of that mean (Chan,
   Golub and LeVeque 1983), so a row of equal values has variance 0 for any magnitude. */
static inline struct moments layer_norm_moments_times(int64_t C, const real *x, real factor,
                                                      real epsilon)
{
    real sum = 0, sum_d = 0, sum_d2 = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < C; c++)
        sum += x[c] * factor;
    const real first = sum / (real)C;
#pragma omp simd reduction(+ : sum_d, sum_d2)
    for (int64_t c = 0; c < C; c++) {
        const real d = x[c] * factor - first;
        sum_d += d;
        sum_d2 += d * d;
    }
    const real variance = (sum_d2 - sum_d * (sum_d / (real)C)) / (real)C;
    return (struct moments){first + sum_d / (real)C,
                            1 / real_sqrt((variance < 0 ? 0 : variance) + epsilon)};
}

/* If a sum overflows, the scale is 0 or NaN, and the moments are computed from smaller numbers. */
static inline struct moments layer_norm_row_moments(int64_t C, const real *x, real epsilon)
{
    const real factor = ROW_SHRINK(real);
    struct moments m = layer_norm_moments_times(C, x, 1, epsilon);
    if (m.scale > 0)
        return m;
    m = layer_norm_moments_times(C, x, factor, 0);
    m.mean /= factor;
    m.scale = m.scale == INFINITY ? 1 / real_sqrt(epsilon) : m.scale * factor;
    return m;
}

static inline void layer_norm_forward_row(int64_t C, real mean, real scale, const real *restrict x,
                                          const real *restrict gain, const real *restrict bias,
                                          real *restrict y)
{
    for (int64_t c = 0; c < C; c++)
        y[c] = gain[c] * ((x[c] - mean) * scale) + (bias ? bias[c] : 0);
}

static inline void layer_norm_add_row(int64_t C, const real *x, const real *branch,
                                      real *restrict sum)
{
    for (int64_t c = 0; c < C; c++)
        sum[c] = x[c] + branch[c];
}

/* sum = x + dropout(branch) for the row that begins at element `first` */
static inline void layer_norm_add_dropped_row(struct dropout_reader *reader, int64_t first,
                                              int64_t C, const real *x, const real *branch,
                                              real *sum)
{
    real kept[DROPOUT_CHUNK];
    for (int64_t c = 0, n; c < C; c += n) {
        n = C - c;
        const uint16_t *bits = dropout_read_here(reader, first + c, &n);
        dropout_apply(reader->dropout, bits, n, branch + c, kept);
        layer_norm_add_row(n, x + c, kept, sum + c);
    }
}

/* One row of what backward reads: y_c = gain_c h_c + bias_c, h_c = (x_c - mean) scale. */
struct row {
    int64_t C;
    const real *x, *gain, *dy, *dsum;
    real mean, scale;
    real mean_u, mean_uh; /* of u = gain dy, and of u h */
};

/* Finishes the row's means, and adds its part to the slab's dgain and dbias. */
static inline void layer_norm_sum_row(struct row *row, real *restrict dgain, real *restrict dbias)
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

static inline void layer_norm_add_gradient(const struct row *row, bool fresh, real *restrict dx)
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
static inline struct row layer_norm_part_of(const struct row *row, int64_t c, int64_t n)
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
static inline void layer_norm_add_dropped_gradient(struct dropout_reader *reader, int64_t first,
                                                   const struct row *row, const real *gradient,
                                                   bool fresh, real *dbranch)
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

#endif
