#include "ops/loss.h"
#include "ops/plain/broadcast.h"

/* y = sum of (x - target)^2 / n, n being the divisor; with SB_REDUCE_NONE each
   square, where y does not stretch */
static bool mean_squared_error_forward(const struct broadcast *plan,
                                       double divisor, const void *x_,
                                       const void *target_, void *y_)
{
    const real *x = x_, *target = target_;
    real *y = y_;
    zero_if_fresh(true, walk_elements(plan, 1), y);
    for (int64_t n = 0; n < walk_size(plan); n++) {
        const real d = x[walk_at(plan, 0, n)] - target[walk_at(plan, 2, n)];
        y[walk_at(plan, 1, n)] += d * d / (real)divisor;
    }
    return true;
}

/* dx = 2 (x - target) dy / n, dtarget = -dx: the factor is 2 / n or -2 / n */
static bool mean_squared_error_backward(const struct broadcast *plan,
                                        double factor, bool fresh,
                                        const void *x_, const void *target_,
                                        const void *dy_, void *dx_)
{
    const real *x = x_, *target = target_, *dy = dy_;
    real *dx = dx_;
    zero_if_fresh(fresh, walk_elements(plan, 0), dx);
    for (int64_t n = 0; n < walk_size(plan); n++) {
        const real d = x[walk_at(plan, 0, n)] - target[walk_at(plan, 2, n)];
        dx[walk_at(plan, 0, n)] += (real)factor * d * dy[walk_at(plan, 1, n)];
    }
    return true;
}

KERNELS(mean_squared_error) = {mean_squared_error_forward,
                               mean_squared_error_backward};
