#include "ops/plain/real.h"
#include "ops/shape.h"
#include <string.h>

/* y = x, run by run: the parts that slice, split, concatenate and stack move.
   Elements of any dtype. */
static bool slice_copy(size_t width, struct runs runs, const void *x, void *y)
{
    for (int64_t r = 0; r < runs.count; r++)
        memcpy((char *)y + (size_t)(r * runs.y_stride) * width,
               (const char *)x + (size_t)(r * runs.x_stride) * width,
               (size_t)runs.length * width);
    return true;
}

/* y += x; backward, where x is dy and y is dx: dx is dy at the part's place */
static bool slice_add(struct runs runs, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = 0; i < runs.length; i++)
            y[r * runs.y_stride + i] += x[r * runs.x_stride + i];
    return true;
}

KERNELS(slice) = {slice_copy, slice_add};
