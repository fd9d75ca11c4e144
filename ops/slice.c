#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "ops/shape.h"
#include "tensor/failure.h"

KERNEL_ROWS_AND_BF16(slice);

/* A part of x: runs that lie x_stride apart in x and are contiguous in y. */
struct part {
    struct runs runs;
    int64_t offset;
};

/* y_i = x_(i + offset): dx_(i + offset) = dy_i */
static bool slice_backward(sb_node *node)
{
    const struct part *part = sb_node_options(node);
    const struct runs back = {part->runs.count, part->runs.length, part->runs.y_stride,
                              part->runs.x_stride};
    const struct slice_kernels *k = kernel_row(&slice_rows, node->out[0]);
    return k && k->add(back, sb_node_dy(node, 0)->data,
                       tensor_element(sb_node_dx(node, 0), part->offset));
}

static const sb_operation slice = {"slice", "x", slice_backward, false, true};

static sb_tensor *slice_take(sb_node *node, int axis, int64_t start, int64_t length)
{
    const sb_tensor *x = node->in[0];
    const int64_t inner = shape_size(x->rank - axis - 1, x->dim + axis + 1);
    struct part *part = node->options;
    part->runs = (struct runs){shape_size(axis, x->dim), length * inner, x->dim[axis] * inner,
                               length * inner};
    part->offset = start * inner;
    int64_t dim[SB_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dim[i] = i == axis ? length : x->dim[i];
    if (axis == 0)
        return call_end(node, node_view(node, part->offset, x->rank, dim));
    const struct slice_kernels *k = kernel_row(&slice_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank, dim) : NULL;
    return call_end(node, y && k->copy(sb_dtype_bytes(x->dtype), part->runs,
                                       tensor_element(x, part->offset), y->data));
}

sb_tensor *sb_slice(sb_tensor *x, int axis, int64_t start, int64_t length)
{
    sb_node *node =
        call_begin(&slice, &slice_rows, 1, &x, 1, &(struct part){.offset = 0}, sizeof(struct part));
    if (!node)
        return NULL;
    const int place = shape_axis(x->rank, axis);
    if (place < 0)
        return sb_fail("slice: x is %s: it has no axis %d", tensor_shape(x).text, axis);
    if (start < 0 || length < 0 || start > x->dim[place] || length > x->dim[place] - start)
        return sb_fail("slice: x is %s: %lld elements from %lld on exceed axis %d",
                       tensor_shape(x).text, (long long)length, (long long)start, axis);
    return slice_take(node, place, start, length);
}

static bool slice_check_lengths(const sb_tensor *x, int axis, int n, const int64_t *lengths)
{
    const int place = shape_axis(x->rank, axis);
    if (place < 0)
        return sb_fail("split: x is %s: it has no axis %d", tensor_shape(x).text, axis);
    int64_t left = x->dim[place];
    for (int i = 0; i < n; i++) {
        if (lengths[i] < 0 || lengths[i] > left)
            return sb_fail("split: x is %s: length %d is %lld, but axis %d has %lld left",
                           tensor_shape(x).text, i, (long long)lengths[i], axis, (long long)left);
        left -= lengths[i];
    }
    return left == 0 || sb_fail("split: x is %s: the %d lengths leave %lld elements of axis %d",
                                tensor_shape(x).text, n, (long long)left, axis);
}

bool sb_split(sb_tensor *x, int axis, int n, const int64_t *lengths, sb_tensor *parts[])
{
    if (!parts || !lengths)
        return fail_null("split", parts ? "lengths" : "parts");
    for (int i = 0; i < n; i++)
        parts[i] = NULL;
    if (!x)
        return fail_null("split", "x");
    if (!check_at_least("split", "n", n, 1) || !slice_check_lengths(x, axis, n, lengths))
        return false;
    int64_t start = 0;
    for (int i = 0; i < n; i++) {
        parts[i] = sb_slice(x, axis, start, lengths[i]);
        if (!parts[i])
            return false;
        start += lengths[i];
    }
    return true;
}

EXAMPLE(example_slice_first, sb_slice(x[0], 0, 1, 1))
EXAMPLE(example_slice_last, sb_slice(x[0], -1, 1, sb_tensor_dim(x[0], -1) - 2))

/* Joins the parts in another order, so that a swap of two parts is noticed. */
static sb_tensor *example_split(void *unused, sb_tensor *const x[])
{
    (void)unused;
    const int64_t lengths[] = {1, 0, sb_tensor_dim(x[0], 1) - 1};
    sb_tensor *part[3];
    return sb_split(x[0], 1, 3, lengths, part)
               ? sb_concatenate((sb_tensor *[]){part[2], part[1], part[0]}, 3, 1)
               : NULL;
}

OPERATION(slice, {"slice", example_slice_first, {"2", "7", "3x5", "2x3x4", "3x2x1x2", "65x2"}},
          {"slice", example_slice_last, {"2", "7", "3x5", "2x3x65", "2x1x2x64", "=3x5"}},
          {"split", example_split, {"3x2", "1x5", "2x7x3", "2x3x2x2", "2x63"}});
