/* Operations over the last axis, over another one: the axis is moved to the end, and back. */
#include "ops/example.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include "tensor/storage.h"

/* x with this axis as its last; the rest stay in their order. */
static sb_tensor *over_axis_begin(const char *who, sb_tensor *x, int axis)
{
    if (!x)
        return fail_null(who, "x");
    const int over = shape_axis(x->rank, axis), rank = x->rank;
    if (over < 0)
        return sb_fail("%s: x is %s: it has no axis %d", who, tensor_shape(x).text, axis);
    int order[SB_MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = i == rank - 1 ? over : i < over ? i : i + 1;
    return over == rank - 1 ? x : sb_permute(x, rank, order);
}

/* y with its last axis back in this place. */
static sb_tensor *over_axis_end(sb_tensor *y, int axis)
{
    if (!y)
        return NULL;
    const int over = shape_axis(y->rank, axis), rank = y->rank;
    int order[SB_MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = i < over ? i : i == over ? rank - 1 : i - 1;
    return over == rank - 1 ? y : sb_permute(y, rank, order);
}

sb_tensor *sb_softmax_over(sb_tensor *x, int axis)
{
    sb_tensor *last = over_axis_begin("softmax_over", x, axis);
    return last ? over_axis_end(sb_softmax(last), axis) : NULL;
}

sb_tensor *sb_log_softmax_over(sb_tensor *x, int axis)
{
    sb_tensor *last = over_axis_begin("log_softmax_over", x, axis);
    return last ? over_axis_end(sb_log_softmax(last), axis) : NULL;
}

sb_tensor *sb_logsumexp_over(sb_tensor *x, int axis)
{
    sb_tensor *last = over_axis_begin("logsumexp_over", x, axis);
    return last ? sb_logsumexp(last) : NULL;
}

sb_tensor *sb_layer_norm_over(sb_tensor *x, int axis, sb_tensor *gain, sb_tensor *bias,
                              double epsilon)
{
    sb_tensor *last = over_axis_begin("layer_norm_over", x, axis);
    return last ? over_axis_end(sb_layer_norm(last, gain, bias, epsilon), axis) : NULL;
}

sb_tensor *sb_rms_norm_over(sb_tensor *x, int axis, sb_tensor *gain, double epsilon)
{
    sb_tensor *last = over_axis_begin("rms_norm_over", x, axis);
    return last ? over_axis_end(sb_rms_norm(last, gain, epsilon), axis) : NULL;
}

sb_tensor *sb_l2_normalize_over(sb_tensor *x, int axis)
{
    sb_tensor *last = over_axis_begin("l2_normalize_over", x, axis);
    return last ? over_axis_end(sb_l2_normalize(last), axis) : NULL;
}

EXAMPLE(example_softmax, sb_softmax_over(x[0], 1))
EXAMPLE(example_log_softmax, sb_log_softmax_over(x[0], 0))
EXAMPLE(example_logsumexp, sb_logsumexp_over(x[0], -3))
EXAMPLE(example_layer_norm, sb_layer_norm_over(x[0], 1, x[1], x[2], 0))
EXAMPLE(example_rms_norm, sb_rms_norm_over(x[0], -2, x[1], 0))
EXAMPLE(example_l2_normalize, sb_l2_normalize_over(x[0], 0))

OPERATION_WITHOUT_KERNELS(over_axis, {"softmax_over", example_softmax, {"2x3x4", "3x5", "2x7x3x5"}},
                          {"log_softmax_over", example_log_softmax, {"3x5", "4", "2x3x4"}},
                          {"logsumexp_over", example_logsumexp, {"2x3x4", "3x2x5x7", "4x1x3"}},
                          {"layer_norm_over",
                           example_layer_norm,
                           {"2x3x4 3 3", "2x5 5 5", "2x7x3x3 7 7"}},
                          {"rms_norm_over", example_rms_norm, {"2x3x4 3", "5x3 5"}},
                          {"l2_normalize_over", example_l2_normalize, {"3x5", "4x2x3"}});
