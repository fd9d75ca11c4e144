/* The kernels of permute and transpose. */
#ifndef SOFTBACK_OPS_PERMUTE_H
#define SOFTBACK_OPS_PERMUTE_H

#include "ops/broadcast.h"
#include "ops/kernel.h"

struct permute_kernels {
    /* y = x, elements of `width` bytes of any dtype. The operands of the plan are y and x; the plan
       has y's axes, and x's strides are in the order of y's axes. */
    bool (*copy)(size_t width, const struct broadcast *plan, const void *x, void *y);
    /* y += x */
    bool (*add)(const struct broadcast *plan, const void *x, void *y);
};

#endif
