#include "ops/plain/dropout.h"

/* y = dropped ? 0 : x / (1 - p), plus the residual of residual_dropout
   (Srivastava et al. 2014) */
static bool dropout_forward(const struct dropout *dropout, int64_t n,
                            const void *x_, const void *residual_, void *y_)
{
    const real *x = x_, *residual = residual_;
    real *y = y_;
    for (int64_t i = 0; i < n; i++)
        y[i] = dropout_here(dropout, i, x[i]) + (residual ? residual[i] : 0);
    return true;
}

/* dx = dropped ? 0 : dy / (1 - p)     dresidual = dy */
static bool dropout_backward(const struct dropout *dropout, int64_t n,
                             const void *dy_, void *dx_, bool fresh_dx,
                             void *dresidual_, bool fresh_dresidual)
{
    const real *dy = dy_;
    real *dx = dx_, *dresidual = dresidual_;
    zero_if_fresh(dx && fresh_dx, n, dx);
    zero_if_fresh(dresidual && fresh_dresidual, n, dresidual);
    for (int64_t i = 0; dx && i < n; i++)
        dx[i] += dropout_here(dropout, i, dy[i]);
    for (int64_t i = 0; dresidual && i < n; i++)
        dresidual[i] += dy[i];
    return true;
}

KERNELS(dropout) = {dropout_forward, dropout_backward};
