#include "ops/cpu/rows.h"
#include "ops/normalization.h"

/* 1 / sqrt(mean x^2 + epsilon); of smaller numbers, if squares overflow. */
static real rms_norm_row_scale(int64_t C, real epsilon, const real *x)
{
    const real sum = row_sum_of_squares(C, x, 1), factor = ROW_SHRINK(real);
    if (sum < INFINITY)
        return 1 / real_sqrt(sum / (real)C + epsilon);
    return factor / real_sqrt(row_sum_of_squares(C, x, factor) / (real)C);
}

static real rms_norm_forward_row(int64_t C, real epsilon, const real *restrict x,
                                 const real *restrict gain, real *restrict y)
{
    const real scale = rms_norm_row_scale(C, epsilon, x);
    for (int64_t c = 0; c < C; c++)
        y[c] = gain[c] * (x[c] * scale);
    return scale;
}

static bool rms_norm_forward(int64_t rows, int64_t C, double epsilon, const void *x_,
                             const void *gain, void *y_, void *scale_)
{
    const real *x = x_;
    real *y = y_, *scale = scale_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        scale[r] = rms_norm_forward_row(C, (real)epsilon, x + r * C, gain, y + r * C);
    return true;
}

/* y_c = gain_c h_c, h_c = x_c scale. The row's part of dgain goes to the slab's; the result is the
   mean of u h, u = gain dy. */
static real rms_norm_sum_row(int64_t C, const real *x, const real *gain, real scale, const real *dy,
                             real *dgain)
{
    real sum_uh = 0;
#pragma omp simd reduction(+ : sum_uh)
    for (int64_t c = 0; c < C; c++) {
        real h = x[c] * scale;
        sum_uh += gain[c] * dy[c] * h;
        dgain[c] += dy[c] * h;
    }
    return sum_uh / (real)C;
}

static void rms_norm_add_row(int64_t C, const real *restrict x, const real *restrict gain,
                             real scale, const real *restrict dy, real mean_uh, bool fresh,
                             real *restrict dx)
{
    for (int64_t c = 0; c < C; c++) {
        real h = x[c] * scale, u = gain[c] * dy[c];
        dx[c] = before(fresh, dx[c]) + (u - h * mean_uh) * scale;
    }
}

static bool rms_norm_backward(int64_t rows, int64_t C, const void *x_, const void *gain_,
                              const void *scale_, const void *dy_, struct norm_gradient dx,
                              struct norm_gradient dgain, void *partial)
{
    const real *x = x_, *gain = gain_, *scale = scale_, *dy = dy_;
    const int64_t slabs = slab_count(rows);
    memset(partial, 0, (size_t)(slabs * C) * sizeof(real));
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t slab = 0; slab < slabs; slab++)
        for (int64_t r = slab * SLAB_ROWS; r < slab_end(slab, rows); r++) {
            const real *x_row = x + r * C, *dy_row = dy + r * C;
            real *dgain_slab = (real *)partial + slab * C;
            real mean_uh = rms_norm_sum_row(C, x_row, gain, scale[r], dy_row, dgain_slab);
            if (dx.to)
                rms_norm_add_row(C, x_row, gain, scale[r], dy_row, mean_uh, dx.fresh,
                                 (real *)dx.to + r * C);
        }
    if (dgain.to)
        add_slabs(slabs, C, C, partial, dgain.fresh, dgain.to);
    return true;
}

KERNELS(rms_norm) = {rms_norm_forward, rms_norm_backward};
