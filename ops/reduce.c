#include "ops/reduce.h"
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"

KERNEL_ROWS(reduce);

struct reduction {
    struct reduce_shape shape;
    double divisor; /* n for mean, 1 for sum */
};

/* The traversal of all elements of x; y is broadcast along the middle axis. */
static struct broadcast reduce_plan(struct reduce_shape s)
{
    const struct broadcast walk = {
        3, {s.outer, s.n, s.inner}, {{s.n * s.inner, s.inner, 1}, {s.inner, 0, 1}}};
    return broadcast_merge(&walk);
}

static bool reduce_sum_backward(sb_node *node)
{
    const struct reduction *r = sb_node_options(node);
    const struct reduce_kernels *k = kernel_row(&reduce_rows, node->out[0]);
    const struct broadcast walk = reduce_plan(r->shape);
    return k && k->sum_backward(&walk, r->divisor, sb_node_fresh(node, 0),
                                sb_node_dy(node, 0)->data, sb_node_dx(node, 0)->data);
}

static bool reduce_max_backward(sb_node *node)
{
    const struct reduction *r = sb_node_options(node);
    const sb_tensor *x = node->in[0], *y = node->out[0];
    const struct reduce_kernels *k = kernel_row(&reduce_rows, x);
    return k && k->max_backward(r->shape, sb_node_fresh(node, 0), x->data, y->data,
                                sb_node_dy(node, 0)->data, sb_node_dx(node, 0)->data);
}

static const sb_operation sum = {"sum", "x", reduce_sum_backward, true, true};
static const sb_operation mean = {"mean", "x", reduce_sum_backward, true, true};
static const sb_operation max = {"max", "x", reduce_max_backward, true, true};
static const sb_operation argmax = {"argmax", "x", NULL, false, true};

/* Finds the shape as kernels read it, and the dimensions of y. */
static bool reduce_reduced_shape(const char *op, const sb_tensor *x, int axis, bool keep,
                                 struct reduce_shape *shape, int *rank, int64_t dim[SB_MAX_RANK])
{
    const bool all = axis == SB_ALL;
    const int first = all ? 0 : shape_axis(x->rank, axis), end = all ? x->rank : first + 1;
    if (first < 0)
        return sb_fail("%s: x is %s: it has no axis %d", op, tensor_shape(x).text, axis);
    *shape =
        (struct reduce_shape){shape_size(first, x->dim), shape_size(end - first, x->dim + first),
                              shape_size(x->rank - end, x->dim + end)};
    for (int i = 0; i < x->rank; i++) {
        const bool reduced = i >= first && i < end;
        if (!reduced || keep)
            dim[(*rank)++] = reduced ? 1 : x->dim[i];
    }
    return true;
}

/* A node with its output, which the caller fills. */
static sb_node *reduce_begin(const sb_operation *operation, sb_tensor *x, int axis, bool keep)
{
    const char *op = operation->name;
    struct reduction *r;
    sb_node *node =
        call_begin(operation, &reduce_rows, 1, &x, 1, &(struct reduction){.divisor = 1}, sizeof *r);
    int rank = 0;
    int64_t dim[SB_MAX_RANK];
    if (!node || !check_real(op, "x", x))
        return NULL;
    r = node->options;
    if (!reduce_reduced_shape(op, x, axis, keep, &r->shape, &rank, dim))
        return NULL;
    if (r->shape.n == 0 && operation != &sum)
        return sb_fail("%s: x is %s: the %s of no elements is undefined", op, tensor_shape(x).text,
                       op);
    if (operation == &mean)
        r->divisor = (double)r->shape.n;
    const sb_dtype dtype = operation == &argmax ? SB_I32 : node->in[0]->dtype;
    return sb_node_output(node, dtype, rank, dim) ? node : NULL;
}

static sb_tensor *run_sum(sb_node *node)
{
    const struct reduction *r = sb_node_options(node);
    const struct reduce_kernels *k = node ? kernel_row(&reduce_rows, node->in[0]) : NULL;
    if (!k)
        return NULL;
    const struct broadcast walk = reduce_plan(r->shape);
    sb_tensor *y = node->out[0];
    return call_end(node, k->sum(&walk, r->divisor, node->in[0]->data, y->data));
}

sb_tensor *sb_sum(sb_tensor *x, int axis, bool keep)
{
    return run_sum(reduce_begin(&sum, x, axis, keep));
}

sb_tensor *sb_mean(sb_tensor *x, int axis, bool keep)
{
    return run_sum(reduce_begin(&mean, x, axis, keep));
}

sb_tensor *sb_max(sb_tensor *x, int axis, bool keep)
{
    sb_node *node = reduce_begin(&max, x, axis, keep);
    const struct reduction *r = sb_node_options(node);
    const struct reduce_kernels *k = node ? kernel_row(&reduce_rows, node->in[0]) : NULL;
    return call_end(node, k && k->max(r->shape, node->in[0]->data, node->out[0]->data));
}

sb_tensor *sb_argmax(sb_tensor *x, int axis)
{
    sb_node *node = reduce_begin(&argmax, x, axis, false);
    const struct reduction *r = sb_node_options(node);
    if (node && r->shape.n > INT32_MAX)
        return sb_fail("argmax: x is %s: an i32 index cannot reach %lld", tensor_shape(x).text,
                       (long long)r->shape.n);
    const struct reduce_kernels *k = node ? kernel_row(&reduce_rows, node->in[0]) : NULL;
    return k && k->argmax(r->shape, node->in[0]->data, node->out[0]->data) ? node->out[0] : NULL;
}

EXAMPLE(example_sum, sb_sum(x[0], -1, false))
EXAMPLE(example_sum_first, sb_sum(x[0], 0, true))
EXAMPLE(example_sum_all, sb_sum(x[0], SB_ALL, false))
EXAMPLE(example_mean, sb_mean(x[0], -1, true))
EXAMPLE(example_mean_second, sb_mean(x[0], 1, false))
EXAMPLE(example_mean_all, sb_mean(x[0], SB_ALL, false))
EXAMPLE(example_max, sb_max(x[0], -1, false))
EXAMPLE(example_max_first, sb_max(x[0], 0, true))
EXAMPLE(example_argmax, sb_argmax(x[0], -1))

OPERATION(reduce, {"sum", example_sum, {"1", "2", "7", "3x5", "2x3x4", "2x1x3x65", "64x1"}},
          {"sum", example_sum_first, {"7", "3x5", "65x2", "2x3x4", "1x3"}},
          {"sum", example_sum_all, {".", "7", "3x5", "2x3x1x4"}},
          {"mean", example_mean, {"1", "63", "3x5", "2x3x4", "2x1x3x2"}},
          {"mean", example_mean_second, {"3x5", "2x64", "2x3x4", "2x7x1x3"}},
          {"mean", example_mean_all, {".", "65", "2x3x4"}},
          {"max", example_max, {"1", "2", "7", "3x5", "2x3x65", "2x1x3x4"}},
          {"max", example_max_first, {"7", "3x5", "63x2", "2x3x2x2"}},
          {"argmax", example_argmax, {"=1", "=3x5", "=2x3x65"}});
