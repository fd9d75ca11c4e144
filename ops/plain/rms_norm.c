#include "ops/normalization.h"
#include "ops/plain/real.h"

/* y = gain x / s, s = sqrt(mean(x^2) + epsilon), for each row; scale = 1 / s
   (Zhang and Sennrich 2019) */
static bool rms_norm_forward(int64_t rows, int64_t C, double epsilon,
                             const void *x_, const void *gain_, void *y_,
                             void *scale_)
{
    const real *x = x_, *gain = gain_;
    real *y = y_, *scale = scale_;
    for (int64_t r = 0; r < rows; r++, x += C, y += C) {
        real sum = 0;
        for (int64_t c = 0; c < C; c++)
            sum += x[c] * x[c];
        scale[r] = 1 / real_sqrt(sum / (real)C + (real)epsilon);
        for (int64_t c = 0; c < C; c++)
            y[c] = gain[c] * x[c] * scale[r];
    }
    return true;
}

/* with h = x / s, u = gain dy: dx = (u - h mean(u h)) / s
   dgain = sum of dy h */
static bool rms_norm_backward(int64_t rows, int64_t C, const void *x_,
                              const void *gain_, const void *scale_,
                              const void *dy_, struct norm_gradient to_x,
                              struct norm_gradient to_gain, void *unused)
{
    const real *x = x_, *gain = gain_, *scale = scale_, *dy = dy_;
    real *dx = to_x.to, *dgain = to_gain.to;
    (void)unused;
    zero_if_fresh(dx && to_x.fresh, rows * C, dx);
    zero_if_fresh(dgain && to_gain.fresh, C, dgain);
    for (int64_t r = 0; r < rows; r++) {
        real mean_uh = 0;
        for (int64_t c = 0, i = r * C; c < C; c++, i++)
            mean_uh += gain[c] * dy[i] * x[i] * scale[r] / (real)C;
        for (int64_t c = 0, i = r * C; c < C; c++, i++) {
            const real h = x[i] * scale[r], u = gain[c] * dy[i];
            if (dx)
                dx[i] += (u - h * mean_uh) * scale[r];
            if (dgain)
                dgain[c] += dy[i] * h;
        }
    }
    return true;
}

KERNELS(rms_norm) = {rms_norm_forward, rms_norm_backward};
