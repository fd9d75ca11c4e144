#include "ops/plain/broadcast.h"
#include "ops/shape.h"
#include <string.h>

/* y = x with its axes in another order; elements of any dtype. Backward is the
   same with the inverse order, x being dy. */
static bool permute_copy(size_t width, const struct broadcast *plan,
                         const void *x, void *y)
{
    for (int64_t n = 0; n < walk_size(plan); n++)
        memcpy((char *)y + (size_t)walk_at(plan, 0, n) * width,
               (const char *)x + (size_t)walk_at(plan, 1, n) * width, width);
    return true;
}

/* y += x */
static bool permute_add(const struct broadcast *plan, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    for (int64_t n = 0; n < walk_size(plan); n++)
        y[walk_at(plan, 0, n)] += x[walk_at(plan, 1, n)];
    return true;
}

KERNELS(permute) = {permute_copy, permute_add};
