#include "ops/plain/broadcast.h"
#include "ops/shape.h"
#include <string.h>

/* y repeats x along the stretched axes; elements of any dtype */
static bool expand_forward(size_t width, const struct broadcast *plan,
                           const void *x, void *y)
{
    for (int64_t n = 0; n < walk_size(plan); n++)
        memcpy((char *)y + (size_t)walk_at(plan, 0, n) * width,
               (const char *)x + (size_t)walk_at(plan, 1, n) * width, width);
    return true;
}

/* dx = dy summed over the stretched axes */
static bool expand_backward(bool fresh, const struct broadcast *plan,
                            const void *dy_, void *dx_)
{
    const real *dy = dy_;
    real *dx = dx_;
    zero_if_fresh(fresh, walk_elements(plan, 1), dx);
    for (int64_t n = 0; n < walk_size(plan); n++)
        dx[walk_at(plan, 1, n)] += dy[walk_at(plan, 0, n)];
    return true;
}

KERNELS(expand) = {expand_forward, expand_backward};
