#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"
#include "ops/ops.h"

KERNEL_ROWS(mean_squared_error);

static struct broadcast squared_error_plan(const sb_node *node)
{
    return broadcast_plan(3, (const sb_tensor *[]){node->in[0], node->out[0], node->in[1]});
}

static double squared_error_divisor(const sb_node *node)
{
    const sb_reduction reduction = *(const sb_reduction *)sb_node_options(node);
    return reduction == SB_REDUCE_MEAN ? (double)tensor_size(node->in[0]) : 1;
}

static bool squared_error_backward(sb_node *node)
{
    const sb_tensor *x = node->in[0], *target = node->in[1], *dy = sb_node_dy(node, 0);
    const struct mean_squared_error_kernels *k = kernel_row(&mean_squared_error_rows, x);
    const struct broadcast walk = squared_error_plan(node);
    const double factor = 2 / squared_error_divisor(node);
    bool ok = k != NULL;
    for (int i = 0; i < 2 && ok; i++) {
        sb_tensor *dx = sb_node_dx(node, i);
        if (dx)
            ok = k->backward(&walk, i == 0 ? factor : -factor, sb_node_fresh(node, i), x->data,
                             target->data, dy->data, dx->data);
    }
    return ok;
}

static const sb_operation mean_squared_error = {"mean_squared_error", "x target",
                                                squared_error_backward, true, true};

static bool squared_error_check(const sb_tensor *x, const sb_tensor *target, sb_reduction reduction)
{
    const char *op = mean_squared_error.name;
    if (!check_real(op, "x", x) || !check_real(op, "target", target))
        return false;
    if (!shape_equal(x->rank, x->dim, target->rank, target->dim))
        return sb_fail("%s: x is %s, target is %s: shapes differ", op, tensor_shape(x).text,
                       tensor_shape(target).text);
    if (reduction != SB_REDUCE_MEAN && reduction != SB_REDUCE_SUM && reduction != SB_REDUCE_NONE)
        return sb_fail("%s: %d is not a reduction", op, (int)reduction);
    if (reduction == SB_REDUCE_MEAN && tensor_size(x) == 0)
        return sb_fail("%s: x is %s: the mean of no elements is undefined", op,
                       tensor_shape(x).text);
    return true;
}

sb_tensor *sb_mean_squared_error(sb_tensor *x, sb_tensor *target, sb_reduction reduction)
{
    sb_node *node = call_begin(&mean_squared_error, &mean_squared_error_rows, 2,
                               (sb_tensor *[]){x, target}, 1, &reduction, sizeof reduction);
    if (!node || !squared_error_check(x, target, reduction))
        return NULL;
    x = node->in[0];
    target = node->in[1];
    const struct mean_squared_error_kernels *k = kernel_row(&mean_squared_error_rows, x);
    const int rank = reduction == SB_REDUCE_NONE ? x->rank : 0;
    sb_tensor *y = k ? sb_node_output(node, x->dtype, rank, x->dim) : NULL;
    if (!y)
        return NULL;
    const struct broadcast walk = squared_error_plan(node);
    return k->forward(&walk, squared_error_divisor(node), x->data, target->data, y->data) ? y
                                                                                          : NULL;
}

EXAMPLE(example_mean, sb_mean_squared_error(x[0], x[1], SB_REDUCE_MEAN))
EXAMPLE(example_sum, sb_mean_squared_error(x[0], x[1], SB_REDUCE_SUM))
EXAMPLE(example_none, sb_mean_squared_error(x[0], x[1], SB_REDUCE_NONE))

OPERATION(mean_squared_error,
          {"mean_squared_error", example_mean, {". .", "1 1", "7 7", "3x65 =3x65", "2x3x4 2x3x4"}},
          {"mean_squared_error", example_sum, {"2 2", "=3x5 3x5", "2x1x2x63 2x1x2x63"}},
          {"mean_squared_error", example_none, {". .", "64 64", "3x5 3x5", "2x3x1x2 =2x3x1x2"}});
