/* The kernels of sum, mean, max and argmax. */
#ifndef SOFTBACK_OPS_REDUCE_H
#define SOFTBACK_OPS_REDUCE_H

#include "ops/broadcast.h"
#include "ops/kernel.h"

/* x as (outer, n, inner), reduced over the n to (outer, inner). */
struct reduce_shape {
    int64_t outer, n, inner;
};

struct reduce_kernels {
    /* y = sum_i x_i / divisor. The operands of the plan are x and y. */
    bool (*sum)(const struct broadcast *plan, double divisor, const void *x, void *y);
    bool (*sum_backward)(const struct broadcast *plan, double divisor, bool fresh, const void *dy,
                         void *dx);
    bool (*max)(struct reduce_shape shape, const void *x, void *y);
    bool (*max_backward)(struct reduce_shape shape, bool fresh, const void *x, const void *y,
                         const void *dy, void *dx);
    bool (*argmax)(struct reduce_shape shape, const void *x, int32_t *index);
};

#endif
