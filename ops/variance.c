#include "ops/example.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include "tensor/storage.h"
#include <math.h>

/* How many elements a reduction over the axis has; -1: there is no such axis. */
static int64_t variance_count(const sb_tensor *x, int axis)
{
    if (axis == SB_ALL)
        return tensor_size(x);
    const int over = shape_axis(x->rank, axis);
    return over < 0 ? -1 : x->dim[over];
}

/* The first element of each reduction, a constant. */
static sb_tensor *variance_shift(sb_tensor *x, int axis)
{
    x = sb_detach(x);
    return !x               ? NULL
           : axis == SB_ALL ? sb_slice(sb_reshape(x, SB_SHAPE(-1)), 0, 0, 1)
                            : sb_slice(x, shape_axis(x->rank, axis), 0, 1);
}

/* x - m. The shift leaves the variance as it is, and the mean of what is left loses no digits to a
   common offset. */
static sb_tensor *variance_centred(sb_tensor *x, int axis)
{
    sb_tensor *shift = x ? variance_shift(x, axis) : NULL;
    sb_tensor *d = shift ? sb_subtract(x, shift) : NULL;
    return d ? sb_subtract(d, sb_mean(d, axis, true)) : NULL;
}

sb_tensor *sb_variance(sb_tensor *x, int axis, double correction, bool keep)
{
    if (!x)
        return fail_null("variance", "x");
    const int64_t n = variance_count(x, axis);
    if (n < 0)
        return sb_fail("variance: x is %s: it has no axis %d", tensor_shape(x).text, axis);
    if (!(correction >= 0 && correction < (double)n))
        return sb_fail(
            "variance: correction is %g; it must be at least 0 and below the %lld elements",
            correction, (long long)n);
    /* Differences of quarters do not overflow; and what is divided before it is squared overflows
       only where the variance does. */
    sb_tensor *quarter = sb_scale(x, 0.25);
    sb_tensor *part = sb_scale(variance_centred(quarter, axis), 4 / sqrt((double)n - correction));
    return sb_sum(sb_multiply(part, part), axis, keep);
}

EXAMPLE(example_variance, sb_variance(x[0], -1, 1, false))
EXAMPLE(example_variance_first, sb_variance(x[0], 0, 0, true))
EXAMPLE(example_variance_all, sb_variance(x[0], SB_ALL, 1, false))

OPERATION_WITHOUT_KERNELS(variance, {"variance", example_variance, {"2", "3x5", "2x3x65"}},
                          {"variance", example_variance_first, {"1", "3x5", "4x2x3"}},
                          {"variance", example_variance_all, {"7", "3x5"}});
