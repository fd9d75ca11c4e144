#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include <math.h>

KERNEL_ROWS_AND_BF16(layer_norm);

struct norm_gradient norm_gradient(const sb_node *node, int i)
{
    sb_tensor *dx = sb_node_dx(node, i);
    return (struct norm_gradient){dx ? dx->data : NULL, sb_node_fresh(node, i),
                                  dx && dx->dtype != sb_node_input(node, i)->dtype};
}

/* Scratch, and zeros for dy when only the sum has a gradient; the caller frees both. */
static bool run_backward(struct layer_norm_backward *b, const sb_tensor *x, const sb_tensor *dy)
{
    const struct layer_norm_kernels *k = kernel_row(&layer_norm_rows, x);
    int64_t slabs[] = {norm_slab_count(x->device == sb_device_cpu(), b->rows), 2, b->C};
    sb_tensor *partial = tensor_new("layer_norm", x->device, dtype_of_sums(x->dtype), 3, slabs);
    sb_tensor *zero = NULL;
    bool ok = k && partial;
    if (ok && !dy) {
        dy = zero = tensor_new("layer_norm", x->device, x->dtype, x->rank, x->dim);
        ok = zero && tensor_zero(zero);
    }
    if (ok) {
        b->partial = partial->data;
        b->dy = dy->data;
        ok = k->backward(b);
    }
    sb_tensor_release(partial);
    sb_tensor_release(zero);
    return ok;
}

static bool layer_norm_backward(sb_node *node)
{
    bool residual = node->outputs == 2;
    int gain = residual ? 2 : 1;
    const sb_tensor *x = residual ? node->out[1] : node->in[0];
    const sb_tensor *dsum = residual ? sb_node_dy(node, 1) : NULL;
    struct layer_norm_backward b = {
        .rows = row_count(x),
        .C = x->dim[x->rank - 1],
        .x = x->data,
        .gain = node->in[gain]->data,
        .mean = sb_node_saved(node, 0)->data,
        .scale = sb_node_saved(node, 1)->data,
        .dsum = dsum ? dsum->data : NULL,
        .dx = norm_gradient(node, 0),
        .dgain = norm_gradient(node, gain),
    };
    if (residual) {
        b.dbranch = norm_gradient(node, 1);
        b.dropout = *(const struct dropout *)sb_node_options(node);
    }
    if (node->inputs > gain + 1)
        b.dbias = norm_gradient(node, gain + 1);
    return run_backward(&b, x, sb_node_dy(node, 0));
}

static const sb_operation layer_norm = {"layer_norm", "x gain bias", layer_norm_backward, true,
                                        true};
static const sb_operation residual_layer_norm = {"residual_layer_norm", "x branch gain bias",
                                                 layer_norm_backward, true, true};

static bool layer_norm_check(const char *op, const sb_tensor *x, const sb_tensor *gain,
                             const sb_tensor *bias, double epsilon)
{
    return check_rows(op, x) && check_vector(op, "gain", gain, x) &&
           (!bias || check_vector(op, "bias", bias, x)) &&
           check_not_negative(op, "epsilon", epsilon);
}

/* Makes the outputs and the saved tensors, and runs the kernel. Dropout with probability p applies
   to the branch, if there is one. */
static bool run_forward(sb_node *node, double epsilon, double p, sb_sequence along)
{
    const char *op = node->operation->name;
    const bool residual = node->outputs == 2;
    const int gain = residual ? 2 : 1;
    node_writes_f32(node, gain);
    const sb_tensor *x = node->in[0], *bias = sb_node_input(node, gain + 1);
    const struct layer_norm_kernels *k = kernel_row(&layer_norm_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    sb_tensor *sum = y && residual ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    struct place place;
    if (!y || (residual && (!sum || !place_of_units(op, x, along, &place))))
        return false;
    const sb_dtype sums = dtype_of_sums(x->dtype);
    const int64_t rows = row_count(x);
    sb_tensor *mean = sb_node_save(node, tensor_new(op, x->device, sums, 1, &rows));
    sb_tensor *scale = mean ? sb_node_save(node, tensor_new(op, x->device, sums, 1, &rows)) : NULL;
    if (!scale)
        return false;
    struct layer_norm_forward f = {.rows = rows,
                                   .C = x->dim[x->rank - 1],
                                   .epsilon = sb_option(epsilon, 1e-5),
                                   .x = x->data,
                                   .branch = residual ? node->in[1]->data : NULL,
                                   .gain = node->in[gain]->data,
                                   .bias = bias ? bias->data : NULL,
                                   .sum = sum ? sum->data : NULL,
                                   .y = y->data,
                                   .mean = mean->data,
                                   .scale = scale->data};
    if (residual && !dropout_next("residual_layer_norm", p, &place, &f.dropout))
        return false;
    if (residual)
        *(struct dropout *)node->options = f.dropout;
    return k->forward(&f);
}

sb_tensor *sb_layer_norm(sb_tensor *x, sb_tensor *gain, sb_tensor *bias, double epsilon)
{
    sb_node *node = call_begin(&layer_norm, &layer_norm_rows, bias ? 3 : 2,
                               (sb_tensor *[]){x, gain, bias}, 1, NULL, 0);
    return call_end(node, node && layer_norm_check("layer_norm", x, gain, bias, epsilon) &&
                              run_forward(node, epsilon, 0, SB_SEQUENCE_NONE));
}

sb_tensor *residual_layer_norm_along(sb_tensor *x, sb_tensor *branch, double p, sb_sequence along,
                                     sb_tensor *gain, sb_tensor *bias, double epsilon,
                                     sb_tensor **sum)
{
    const char *op = residual_layer_norm.name;
    if (!sum)
        return fail_null(op, "sum");
    *sum = NULL;
    struct dropout none = {0};
    sb_node *node = call_begin(&residual_layer_norm, &layer_norm_rows, bias ? 4 : 3,
                               (sb_tensor *[]){x, branch, gain, bias}, 2, &none, sizeof none);
    if (!node || !layer_norm_check(op, x, gain, bias, epsilon) ||
        !check_real(op, "branch", branch) || !dropout_check(op, p))
        return NULL;
    if (!shape_equal(x->rank, x->dim, branch->rank, branch->dim))
        return sb_fail("residual_layer_norm: x is %s, branch is %s: shapes differ",
                       tensor_shape(x).text, tensor_shape(branch).text);
    if (!run_forward(node, epsilon, p, along))
        return NULL;
    *sum = call_output(node, 1);
    return call_output(node, 0);
}

sb_tensor *sb_residual_layer_norm(sb_tensor *x, sb_tensor *branch, double p, sb_tensor *gain,
                                  sb_tensor *bias, double epsilon, sb_tensor **sum)
{
    return residual_layer_norm_along(x, branch, p, SB_SEQUENCE_SOURCE, gain, bias, epsilon, sum);
}

EXAMPLE(example_layer_norm, sb_layer_norm(x[0], x[1], x[2], 0))
EXAMPLE(example_without_bias, sb_layer_norm(x[0], x[1], NULL, 0.1))
EXAMPLE(example_without_epsilon, sb_layer_norm(x[0], x[1], x[2], SB_ZERO))

/* Examples use the gradient check's random stream if there is one. */
EXAMPLE(example_residual,
        sb_residual_layer_norm(x[0], x[1], 0, x[2], x[3], 1e-3, &(sb_tensor *){NULL}))
EXAMPLE(example_dropped,
        sb_residual_layer_norm(x[0], x[1], 0.4, x[2], x[3], 1e-3, &(sb_tensor *){NULL}))

static sb_tensor *example_residual_sum(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_tensor *sum, *y = sb_residual_layer_norm(x[0], x[1], 0.25, x[2], x[3], 1e-3, &sum);
    return sb_multiply(y, sum);
}

static sb_tensor *example_sum_alone(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_tensor *sum;
    return sb_residual_layer_norm(x[0], x[1], 0.4, x[2], x[3], 1e-3, &sum) ? sum : NULL;
}

OPERATION(layer_norm,
          {"layer_norm",
           example_layer_norm,
           {"1 1 1", "2 2 2", "7 7 7", "3x5 5 5", "2x3x4 4 4", "2x1x2x65 65 65", "=3x5 5 5",
            "3x5 =5 5", "130x2 2 2"}},
          {"layer_norm", example_without_bias, {"3x5 5", "c3:2x4 4", "=2x3x63 63", "2x64 =64"}},
          {"layer_norm", example_without_epsilon, {"3x5 5 5", "2x64 64 =64"}},
          {"residual_layer_norm", example_residual, {"7 7 7 7", "3x5 3x5 5 5", "2x3x4 =2x3x4 4 4"}},
          {"residual_layer_norm",
           example_dropped,
           {"3x5 3x5 5 5", "2x3x4 =2x3x4 4 4", "=5x63 5x63 63 63"}},
          {"residual_layer_norm",
           example_residual_sum,
           {"3x5 3x5 5 5", "3x32 3x32 32 32", "=2x65 2x65 65 65"}},
          {"residual_layer_norm", example_sum_alone, {"3x5 3x5 5 5"}});
