#include "ops/plain/real.h"
#include "ops/softmax.h"

/* y = max x + ln sum_j exp(x_j - max x), for each row; an infinite maximum is
   no shift, since inf - inf is NaN */
static bool logsumexp_forward(int64_t rows, int64_t C, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    for (int64_t r = 0; r < rows; r++, x += C) {
        real max = -INFINITY, sum = 0;
        for (int64_t j = 0; j < C; j++)
            max = real_max(max, x[j]);
        if (isinf(real_value(max)))
            max = 0;
        for (int64_t j = 0; j < C; j++)
            sum += real_exp(x[j] - max);
        y[r] = max + real_log(sum);
    }
    return true;
}

/* dx_i = dy exp(x_i - y) */
static bool logsumexp_backward(int64_t rows, int64_t C, const void *x_,
                               const void *y_, const void *dy_, bool fresh,
                               void *dx_)
{
    const real *x = x_, *y = y_, *dy = dy_;
    real *dx = dx_;
    zero_if_fresh(fresh, rows * C, dx);
    for (int64_t r = 0; r < rows; r++, x += C, dx += C)
        for (int64_t i = 0; i < C; i++)
            dx[i] += dy[r] * real_exp(x[i] - y[r]);
    return true;
}

KERNELS(logsumexp) = {logsumexp_forward, logsumexp_backward};
