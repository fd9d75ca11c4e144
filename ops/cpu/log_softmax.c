#include "ops/log_softmax.h"
#include "ops/cpu/rows.h"

static void forward_row(int64_t C, const real *restrict x, real *restrict y)
{
    real max = row_max(C, x), log_sum = real_log(row_sum_exp(C, x, max));
    for (int64_t c = 0; c < C; c++)
        y[c] = (x[c] - max) - log_sum;
}

static bool forward(int64_t rows, int64_t C, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        forward_row(C, x + r * C, y + r * C);
    return true;
}

/* y_c = x_c - max - log sum_j exp(x_j - max) */
static void backward_row(int64_t C, const real *restrict y, const real *restrict dy, bool fresh,
                         real *restrict dx)
{
    real total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t c = 0; c < C; c++)
        total += dy[c];
    for (int64_t c = 0; c < C; c++)
        dx[c] = before(fresh, dx[c]) + dy[c] - real_exp(y[c]) * total;
}

static bool backward(int64_t rows, int64_t C, const void *y_, const void *dy_, bool fresh,
                     void *dx_)
{
    const real *y = y_, *dy = dy_;
    real *dx = dx_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        backward_row(C, y + r * C, dy + r * C, fresh, dx + r * C);
    return true;
}

KERNELS(log_softmax) = {forward, backward};
