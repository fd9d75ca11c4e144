/* The kernels of expand. */
#ifndef SOFTBACK_OPS_EXPAND_H
#define SOFTBACK_OPS_EXPAND_H

#include "ops/broadcast.h"
#include "ops/kernel.h"

struct expand_kernels {
    /* The operands of the plan are y and x; elements of `width` bytes of any dtype. */
    bool (*forward)(size_t width, const struct broadcast *plan, const void *x, void *y);
    /* Writes a fresh dx, else adds to it. */
    bool (*backward)(bool fresh, const struct broadcast *plan, const void *dy, void *dx);
};

#endif
