#include "ops/plain/real.h"
#include "ops/softmax.h"

/* y_i = x_i - logsumexp(x), for each row */
static bool log_softmax_forward(int64_t rows, int64_t C, const void *x_,
                                void *y_)
{
    const real *x = x_;
    real *y = y_;
    for (int64_t r = 0; r < rows; r++, x += C, y += C) {
        real max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < C; i++)
            max = real_max(max, x[i]);
        for (int64_t i = 0; i < C; i++)
            sum += real_exp(x[i] - max);
        for (int64_t i = 0; i < C; i++)
            y[i] = x[i] - max - real_log(sum);
    }
    return true;
}

/* dx_i = dy_i - exp(y_i) sum_j dy_j */
static bool log_softmax_backward(int64_t rows, int64_t C, const void *y_,
                                 const void *dy_, bool fresh, void *dx_)
{
    const real *y = y_, *dy = dy_;
    real *dx = dx_;
    zero_if_fresh(fresh, rows * C, dx);
    for (int64_t r = 0; r < rows; r++, y += C, dy += C, dx += C) {
        real sum = 0;
        for (int64_t j = 0; j < C; j++)
            sum += dy[j];
        for (int64_t i = 0; i < C; i++)
            dx[i] += dy[i] - real_exp(y[i]) * sum;
    }
    return true;
}

/* Without a kernel of its own for the best class, decoding composes it. */
KERNELS(log_softmax) = {log_softmax_forward, log_softmax_backward, NULL};
