#include "ops/normalization.h"
#include "ops/plain/real.h"

/* y = x / max(|x|, 1e-12), |x| the Euclidean length of a row */
static bool l2_normalize_forward(int64_t rows, int64_t C, const void *x_,
                                 void *y_, void *length_)
{
    const real *x = x_;
    real *y = y_, *length = length_;
    for (int64_t r = 0; r < rows; r++, x += C, y += C) {
        real sum = 0;
        for (int64_t c = 0; c < C; c++)
            sum += x[c] * x[c];
        length[r] = real_sqrt(sum);
        for (int64_t c = 0; c < C; c++)
            y[c] = x[c] / real_max(length[r], (real)L2_NORMALIZE_LEAST);
    }
    return true;
}

static bool is_zero(int64_t C, const real *x)
{
    for (int64_t c = 0; c < C; c++)
        if (!(real_value(x[c]) == 0))
            return false;
    return true;
}

/* dx = (dy - y (y . dy)) / |x|; at x = 0, and where nothing depends on the row,
   whatever is in it: dx = 0. A row shorter than 1e-12 is x / 1e-12, whose
   length is not kept: dx = dy / 1e-12 */
static bool l2_normalize_backward(int64_t rows, int64_t C, const void *y_,
                                  const void *length_, const void *dy_,
                                  bool fresh, void *dx_)
{
    const real *y = y_, *length = length_, *dy = dy_;
    const real least = (real)L2_NORMALIZE_LEAST;
    real *dx = dx_;
    zero_if_fresh(fresh, rows * C, dx);
    for (int64_t r = 0; r < rows; r++, y += C, dy += C, dx += C) {
        if (is_zero(C, y) || is_zero(C, dy))
            continue;
        const bool is_short = real_value(length[r]) < real_value(least);
        real dot = 0;
        for (int64_t c = 0; !is_short && c < C; c++)
            dot += y[c] * dy[c];
        for (int64_t c = 0; c < C; c++)
            dx[c] += (dy[c] - y[c] * dot) / (is_short ? least : length[r]);
    }
    return true;
}

KERNELS(l2_normalize) = {l2_normalize_forward, l2_normalize_backward};
