#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "ops/shape.h"

KERNEL_ROWS(permute);

struct order {
    int axis[SB_MAX_RANK];
};

/* The traversal of y, whose axis i is axis order.axis[i] of x. */
static struct broadcast permute_plan(const sb_tensor *x, struct order order)
{
    int64_t stride[SB_MAX_RANK], step = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= x->dim[i];
    }
    struct broadcast walk = {.rank = x->rank};
    step = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        walk.dim[i] = x->dim[order.axis[i]];
        walk.stride[0][i] = step;
        walk.stride[1][i] = stride[order.axis[i]];
        step *= walk.dim[i];
    }
    return broadcast_merge(&walk);
}

/* Axis i of y is axis order[i] of x: axis order[i] of dx is axis i of dy */
static bool permute_backward(sb_node *node)
{
    const struct order *order = sb_node_options(node);
    const sb_tensor *dy = sb_node_dy(node, 0);
    sb_tensor *dx = sb_node_dx(node, 0);
    struct order inverse = {0};
    for (int i = 0; i < dy->rank; i++)
        inverse.axis[order->axis[i]] = i;
    const struct permute_kernels *k = kernel_row(&permute_rows, dy);
    const struct broadcast walk = permute_plan(dy, inverse);
    if (!k)
        return false;
    return sb_node_fresh(node, 0) ? k->copy(sb_dtype_bytes(dy->dtype), &walk, dy->data, dx->data)
                                  : k->add(&walk, dy->data, dx->data);
}

static const sb_operation permute = {"permute", "x", permute_backward, true, true};
static const sb_operation transpose = {"transpose", "x", permute_backward, true, true};

static sb_tensor *run(sb_node *node, struct order order)
{
    const sb_tensor *x = node->in[0];
    *(struct order *)node->options = order;
    int64_t dim[SB_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dim[i] = x->dim[order.axis[i]];
    const struct permute_kernels *k = kernel_row(&permute_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank, dim) : NULL;
    const struct broadcast walk = permute_plan(x, order);
    return call_end(node, y && k->copy(sb_dtype_bytes(x->dtype), &walk, x->data, y->data));
}

/* "(2, 0, 1)" */
static struct shape_text permute_order_text(int rank, const int *order)
{
    int64_t number[SB_MAX_RANK];
    for (int i = 0; i < rank; i++)
        number[i] = order[i];
    return shape_text(rank, number);
}

sb_tensor *sb_permute(sb_tensor *x, int rank, const int *order)
{
    struct order to = {0};
    sb_node *node = call_begin(&permute, &permute_rows, 1, &x, 1, &to, sizeof to);
    if (!node)
        return NULL;
    if (rank != x->rank)
        return sb_fail("permute: x is %s: the order has %d axes, expected %d", tensor_shape(x).text,
                       rank, x->rank);
    if (rank > 0 && !order)
        return fail_null("permute", "order");
    bool seen[SB_MAX_RANK] = {false};
    for (int i = 0; i < rank; i++) {
        const int axis = shape_axis(rank, order[i]);
        if (axis < 0 || seen[axis])
            return sb_fail("permute: x is %s: the order %s does not name each of its %d axes once",
                           tensor_shape(x).text, permute_order_text(rank, order).text, rank);
        seen[axis] = true;
        to.axis[i] = axis;
    }
    return run(node, to);
}

sb_tensor *sb_transpose(sb_tensor *x, int axis_a, int axis_b)
{
    struct order to = {0};
    sb_node *node = call_begin(&transpose, &permute_rows, 1, &x, 1, &to, sizeof to);
    if (!node)
        return NULL;
    const int a = shape_axis(x->rank, axis_a), b = shape_axis(x->rank, axis_b);
    if (a < 0 || b < 0)
        return sb_fail("transpose: x is %s: it has no axis %d", tensor_shape(x).text,
                       a < 0 ? axis_a : axis_b);
    for (int i = 0; i < x->rank; i++)
        to.axis[i] = i == a ? b : i == b ? a : i;
    return run(node, to);
}

static sb_tensor *example_reverse(void *unused, sb_tensor *const x[])
{
    (void)unused;
    const int rank = sb_tensor_rank(x[0]);
    int order[SB_MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = rank - 1 - i;
    return sb_permute(x[0], rank, order);
}

EXAMPLE(example_heads_first, sb_permute(x[0], 4, (int[]){0, 2, -3, -1}))
EXAMPLE(example_turn, sb_permute(x[0], 4, (int[]){2, 0, 3, 1}))
EXAMPLE(example_transpose, sb_transpose(x[0], -1, -2))

OPERATION(permute,
          {"permute", example_reverse, {".", "7", "3x5", "2x3x4", "2x1x3x4", "2x1x2x3x2", "1x65"}},
          {"permute", example_heads_first, {"2x3x2x4", "1x2x7x1", "2x1x3x5"}},
          {"permute", example_turn, {"2x3x4x5", "1x7x2x3", "2x17x2x3"}},
          {"transpose", example_transpose, {"1x1", "3x5", "2x3x4", "2x1x3x7", "63x2", "17x19"}});
