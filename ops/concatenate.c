#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "ops/shape.h"
#include "tensor/failure.h"

/*
 * The axes before the joined one have `outer` index tuples. For each tuple, y holds one run of
 * every x_i, in order.
 */
static struct runs concatenate_runs_of(int64_t outer, const sb_tensor *x, const sb_tensor *y)
{
    const int64_t length = outer ? tensor_size(x) / outer : 0;
    return (struct runs){outer, length, length, outer ? tensor_size(y) / outer : 0};
}

/* y contains x_i: dx_i = dy in that range */
static bool concatenate_backward(sb_node *node)
{
    const int64_t outer = *(const int64_t *)sb_node_options(node);
    const sb_tensor *dy = sb_node_dy(node, 0);
    const size_t width = sb_dtype_bytes(dy->dtype);
    const struct slice_kernels *k = kernel_row(&slice_rows, dy);
    const char *from = dy->data;
    bool ok = k != NULL;
    for (int i = 0; i < node->inputs && ok; i++) {
        const struct runs to = concatenate_runs_of(outer, node->in[i], dy);
        const struct runs back = {outer, to.length, to.y_stride, to.x_stride};
        sb_tensor *dx = sb_node_dx(node, i);
        if (dx && sb_node_fresh(node, i))
            ok = k->copy(width, back, from, dx->data);
        else if (dx)
            ok = k->add(back, from, dx->data);
        from += (size_t)to.length * width;
    }
    return ok;
}

static const sb_operation concatenate = {"concatenate", "x[]", concatenate_backward, true, true};
static const sb_operation stack = {"stack", "x[]", concatenate_backward, true, true};

static sb_tensor *concatenate_join(sb_node *node, int64_t outer, int rank, const int64_t *dim)
{
    const sb_tensor *x = node->in[0];
    *(int64_t *)node->options = outer;
    const struct slice_kernels *k = kernel_row(&slice_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, rank, dim) : NULL;
    if (!y)
        return NULL;
    const size_t width = sb_dtype_bytes(x->dtype);
    char *to = y->data;
    for (int i = 0; i < node->inputs; i++) {
        const struct runs runs = concatenate_runs_of(outer, node->in[i], y);
        if (!k->copy(width, runs, node->in[i]->data, to))
            return NULL;
        to += (size_t)runs.length * width;
    }
    return call_end(node, true);
}

/* A node for n tensors of one dtype. */
static sb_node *concatenate_begin(const sb_operation *operation, sb_tensor *const x[], int n)
{
    const char *op = operation->name;
    if (!x)
        return fail_null(op, "x");
    if (!check_at_least(op, "n", n, 1))
        return NULL;
    sb_node *node = call_begin(operation, &slice_rows, n, x, 1, &(int64_t){0}, sizeof(int64_t));
    for (int i = 1; node && i < n; i++)
        if (node->in[i]->dtype != node->in[0]->dtype)
            return sb_fail("%s: x[0] is %s, x[%d] is %s: dtypes differ", op,
                           sb_dtype_name(x[0]->dtype), i, sb_dtype_name(x[i]->dtype));
    return node;
}

/* Whether a and b have equal shapes except in one axis (-1: equal shapes). */
static bool concatenate_alike(const sb_tensor *a, const sb_tensor *b, int axis)
{
    bool same = a->rank == b->rank;
    for (int i = 0; i < a->rank && same; i++)
        same = i == axis || a->dim[i] == b->dim[i];
    return same;
}

sb_tensor *sb_concatenate(sb_tensor *const x[], int n, int axis)
{
    sb_node *node = concatenate_begin(&concatenate, x, n);
    if (!node)
        return NULL;
    const int place = shape_axis(x[0]->rank, axis);
    if (place < 0)
        return sb_fail("concatenate: x[0] is %s: it has no axis %d", tensor_shape(x[0]).text, axis);
    int64_t dim[SB_MAX_RANK], length = 0;
    for (int i = 0; i < n; i++) {
        if (!concatenate_alike(x[0], x[i], place))
            return sb_fail("concatenate: x[0] is %s, x[%d] is %s: shapes differ outside axis %d",
                           tensor_shape(x[0]).text, i, tensor_shape(x[i]).text, axis);
        if (__builtin_add_overflow(length, x[i]->dim[place], &length))
            return sb_fail("concatenate: the sizes along axis %d add up to more than 64 bits hold",
                           axis);
    }
    for (int i = 0; i < x[0]->rank; i++)
        dim[i] = i == place ? length : x[0]->dim[i];
    return concatenate_join(node, shape_size(place, dim), x[0]->rank, dim);
}

sb_tensor *sb_stack(sb_tensor *const x[], int n, int axis)
{
    sb_node *node = concatenate_begin(&stack, x, n);
    if (!node)
        return NULL;
    const int rank = x[0]->rank + 1, place = shape_axis(rank, axis);
    if (rank > SB_MAX_RANK)
        return sb_fail("stack: x[0] is %s; a new axis would be more than %d",
                       tensor_shape(x[0]).text, SB_MAX_RANK);
    if (place < 0)
        return sb_fail("stack: x[0] is %s: the new axis cannot be axis %d", tensor_shape(x[0]).text,
                       axis);
    for (int i = 1; i < n; i++)
        if (!concatenate_alike(x[0], x[i], -1))
            return sb_fail("stack: x[0] is %s, x[%d] is %s: shapes differ", tensor_shape(x[0]).text,
                           i, tensor_shape(x[i]).text);
    int64_t dim[SB_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dim[i] = i == place ? n : x[0]->dim[i < place ? i : i - 1];
    return concatenate_join(node, shape_size(place, dim), rank, dim);
}

EXAMPLE(example_concatenate_first, sb_concatenate(x, 2, 0))
EXAMPLE(example_concatenate_last, sb_concatenate((sb_tensor *[]){x[0], x[1], x[0]}, 3, -1))
EXAMPLE(example_stack, sb_stack(x, 3, 1))
EXAMPLE(example_stack_last, sb_stack(x, 2, -1))

OPERATION_WITHOUT_KERNELS(
    concatenate,
    {"concatenate", example_concatenate_first, {"1 2", "3x5 1x5", "=2x3 2x3", "2x1x2x65 1x1x2x65"}},
    {"concatenate", example_concatenate_last, {"1 7", "3x5 3x2", "2x3x4 2x3x1", "2x64 =2x63"}},
    {"stack", example_stack, {"2 2 2", "3x5 3x5 =3x5", "2x1x4 2x1x4 2x1x4"}},
    {"stack", example_stack_last, {". .", "7 7", "3x5 3x5", "2x3x65 =2x3x65"}});
