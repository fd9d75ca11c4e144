/* The kernels that move elements: slice, split, concatenate, stack and reshape copy runs of them;
   permute, transpose and expand follow a plan. */
#ifndef SOFTBACK_OPS_SHAPE_H
#define SOFTBACK_OPS_SHAPE_H

#include "ops/broadcast.h"
#include "ops/kernel.h"

/* `count` runs of `length` elements each, and the distances between runs in x and y. */
struct runs {
    int64_t count, length, x_stride, y_stride;
};

struct slice_kernels {
    /* y = x, elements of `width` bytes of any dtype. */
    bool (*copy)(size_t width, struct runs runs, const void *x, void *y);
    /* y += x */
    bool (*add)(struct runs runs, const void *x, void *y);
};

extern struct kernel_rows slice_rows;

struct permute_kernels {
    /* y = x, elements of `width` bytes of any dtype. The operands of the plan are y and x; the plan
       has y's axes, and x's strides are in the order of y's axes. */
    bool (*copy)(size_t width, const struct broadcast *plan, const void *x, void *y);
    /* y += x */
    bool (*add)(const struct broadcast *plan, const void *x, void *y);
};

struct expand_kernels {
    /* The operands of the plan are y and x; elements of `width` bytes of any dtype. */
    bool (*forward)(size_t width, const struct broadcast *plan, const void *x, void *y);
    /* Writes a fresh dx, else adds to it. */
    bool (*backward)(bool fresh, const struct broadcast *plan, const void *dy, void *dx);
};

#endif
