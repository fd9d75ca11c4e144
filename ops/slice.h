/* The kernels of slice, split, concatenate, stack and reshape: they copy runs of elements. */
#ifndef SOFTBACK_OPS_SLICE_H
#define SOFTBACK_OPS_SLICE_H

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

#endif
