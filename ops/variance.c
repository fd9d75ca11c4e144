#include "ops/example.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include "tensor/storage.h"

/* How many elements a reduction over the axis has; -1: there is no such axis. */
static int64_t variance_count(const sb_tensor *x, int axis)
{
    if (axis == SB_ALL)
        return tensor_size(x);
    const int over = shape_axis(x->rank, axis);
    return over < 0 ? -1 : x->dim[over];
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
    sb_tensor *centred = sb_subtract(x, sb_mean(x, axis, true));
    sb_tensor *sum = sb_sum(sb_multiply(centred, centred), axis, keep);
    return sb_scale(sum, 1 / ((double)n - correction));
}

EXAMPLE(example_variance, sb_variance(x[0], -1, 1, false))
EXAMPLE(example_variance_first, sb_variance(x[0], 0, 0, true))
EXAMPLE(example_variance_all, sb_variance(x[0], SB_ALL, 1, false))

OPERATION_WITHOUT_KERNELS(variance, {"variance", example_variance, {"2", "3x5", "2x3x65"}},
                          {"variance", example_variance_first, {"1", "3x5", "4x2x3"}},
                          {"variance", example_variance_all, {"7", "3x5"}});
