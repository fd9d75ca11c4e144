/* The formulas of y and dx are the table of ops/elementwise.h. */
#include "ops/elementwise.h"
#include "ops/plain/activation.h"

static bool elementwise_forward(enum elementwise kind, double factor, int64_t n,
                                const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    for (int64_t i = 0; i < n; i++)
        y[i] = elementwise_value(kind, (real)factor, x[i]);
    return true;
}

static bool elementwise_backward(enum elementwise kind, double factor,
                                 bool fresh, int64_t n, const void *x_,
                                 const void *y_, const void *dy_, void *dx_)
{
    const real *x = x_, *y = y_, *dy = dy_;
    real *dx = dx_;
    zero_if_fresh(fresh, n, dx);
    for (int64_t i = 0; i < n; i++)
        dx[i] += elementwise_dx(kind, (real)factor, x[i], y[i], dy[i]);
    return true;
}

KERNELS(elementwise) = {elementwise_forward, elementwise_backward};
