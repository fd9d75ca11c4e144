/* The kernels of mean_squared_error. */
#ifndef SOFTBACK_OPS_MEAN_SQUARED_ERROR_H
#define SOFTBACK_OPS_MEAN_SQUARED_ERROR_H

#include "ops/broadcast.h"
#include "ops/kernel.h"

struct mean_squared_error_kernels {
    /* y = sum of (x - target)^2 / divisor, summed along the axes on which y is broadcast. The
       operands of the plan are x, y and target. */
    bool (*forward)(const struct broadcast *plan, double divisor, const void *x, const void *target,
                    void *y);
    /* dx = factor (x - target) dy. Writes a fresh dx, else adds to it. */
    bool (*backward)(const struct broadcast *plan, double factor, bool fresh, const void *x,
                     const void *target, const void *dy, void *dx);
};

#endif
