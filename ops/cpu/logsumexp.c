#include "ops/cpu/rows.h"
#include "ops/softmax.h"

/* No shift by an infinite maximum: inf - inf is NaN, but the sum is inf or 0. */
static real logsumexp_forward_row(int64_t C, const real *x)
{
    real max = row_max(C, x), shift = real_abs(max) < INFINITY ? max : 0;
    return shift + real_log(row_sum_exp(C, x, shift));
}

static bool logsumexp_forward(int64_t rows, int64_t C, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        y[r] = logsumexp_forward_row(C, x + r * C);
    return true;
}

/* Of y = log sum_c exp(x_c): dx_c += dy exp(x_c - y), with a y that bf16 has not rounded */
static void logsumexp_backward_row(int64_t C, const real *restrict x, real dy, bool fresh,
                                   real *restrict dx)
{
    const real y = logsumexp_forward_row(C, x);
    for (int64_t c = 0; c < C; c++)
        dx[c] = before(fresh, dx[c]) + dy * real_exp(x[c] - y);
}

static bool logsumexp_backward(int64_t rows, int64_t C, const void *x_, const void *y_,
                               const void *dy_, bool fresh, void *dx_)
{
    const real *x = x_, *dy = dy_;
    (void)y_;
    real *dx = dx_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        logsumexp_backward_row(C, x + r * C, dy[r], fresh, dx + r * C);
    return true;
}

KERNELS(logsumexp) = {logsumexp_forward, logsumexp_backward};
