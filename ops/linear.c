#include "ops/linear.h"
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/linear_int8.h"
#include "ops/packed_weights.h"
#include "ops/runs.h"

KERNEL_ROWS_AND_BF16(linear);

struct linear_shape linear_shape_of(const sb_tensor *x, const sb_tensor *weight,
                                    sb_activation activation)
{
    return (struct linear_shape){.rows = row_count(x),
                                 .in = weight->dim[1],
                                 .out = weight->dim[0],
                                 .activation = activation,
                                 .by_row = context_by_row(x->device),
                                 .tf32 = tape_open()->tf32};
}

struct linear_shape linear_shape_to(const struct linear_shape *s, const sb_tensor *x,
                                    const sb_tensor *dx)
{
    struct linear_shape shape = *s;
    shape.wide = dx && dx->dtype != x->dtype;
    return shape;
}

/* Computes dbias, if needed. */
static bool linear_add_bias(const struct linear_kernels *k, const struct linear_shape *s,
                            sb_node *node, const sb_tensor *dz)
{
    sb_tensor *dbias = sb_node_dx(node, 2);
    if (!dbias)
        return true;
    const struct linear_shape shape = linear_shape_to(s, dz, dbias);
    sb_tensor *partial = tensor_new("linear", dz->device, dtype_of_sums(dz->dtype), 2,
                                    (int64_t[]){slab_count(s->rows), s->out});
    bool ok = partial && k->backward_bias(&shape, dz->data, partial->data, sb_node_fresh(node, 2),
                                          dbias->data);
    sb_tensor_release(partial);
    return ok;
}

/* z = x W' + b. The products may run out of memory, perhaps in a thread whose message is lost. */
static bool linear_add_gradients(const struct linear_kernels *k, const struct linear_shape *s,
                                 sb_node *node, const sb_tensor *dz)
{
    const sb_tensor *x = node->in[0], *weight = node->in[1];
    sb_tensor *dx = sb_node_dx(node, 0), *dweight = sb_node_dx(node, 1);
    const struct linear_shape of_weight = linear_shape_to(s, dz, dweight);
    bool ok = linear_add_bias(k, s, node, dz) &&
              (!dx || k->backward_x(s, dz->data, weight->data, sb_node_fresh(node, 0), dx->data)) &&
              (!dweight || k->backward_weight(&of_weight, dz->data, x->data, sb_node_fresh(node, 1),
                                              dweight->data));
    return ok || sb_fail("linear: out of memory");
}

static bool linear_backward(sb_node *node)
{
    const sb_activation activation = *(const sb_activation *)sb_node_options(node);
    const struct linear_shape s = linear_shape_of(node->in[0], node->in[1], activation);
    const struct linear_kernels *k = kernel_row(&linear_rows, node->in[0]);
    sb_tensor *y = node->out[0], *dy = sb_node_dy(node, 0), *z = sb_node_saved(node, 0);
    if (!k || activation == SB_ACTIVATION_IDENTITY)
        return k && linear_add_gradients(k, &s, node, dy);
    /* dz may overwrite z, which is not read again; y may be shared. */
    sb_tensor *dz =
        z ? sb_tensor_retain(z) : tensor_new("linear", y->device, y->dtype, y->rank, y->dim);
    bool ok = dz && k->backward_activation(&s, z ? z->data : y->data, dy->data, dz->data) &&
              linear_add_gradients(k, &s, node, dz);
    sb_tensor_release(dz);
    return ok;
}

static const sb_operation linear = {"linear", "x weight bias", linear_backward, true, true};

bool linear_check(const char *op, const sb_tensor *x, const sb_tensor *weight,
                  const sb_tensor *bias)
{
    if (!check_rows(op, x) || !check_real(op, "weight", weight) ||
        (bias && !check_real(op, "bias", bias)))
        return false;
    if (weight->rank != 2)
        return sb_fail("%s: weight is %s, not (out, in)", op, tensor_shape(weight).text);
    if (x->dim[x->rank - 1] != weight->dim[1])
        return sb_fail("%s: x is %s, weight is %s: inner sizes %lld and %lld differ", op,
                       tensor_shape(x).text, tensor_shape(weight).text,
                       (long long)x->dim[x->rank - 1], (long long)weight->dim[1]);
    if (bias && (bias->rank != 1 || bias->dim[0] != weight->dim[0]))
        return sb_fail("%s: weight is %s, bias is %s, not (%lld)", op, tensor_shape(weight).text,
                       tensor_shape(bias).text, (long long)weight->dim[0]);
    return true;
}

/* Computes y, and keeps z if backward needs it and an input requires a gradient. */
static bool run(sb_node *node, sb_activation activation)
{
    sb_tensor *x = node->in[0], *weight = node->in[1], *bias = sb_node_input(node, 2), *z = NULL;
    const struct linear_kernels *k = kernel_row(&linear_rows, x);
    struct linear_shape s = linear_shape_of(x, weight, activation);
    int64_t dim[SB_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++)
        dim[axis] = axis < x->rank - 1 ? x->dim[axis] : s.out;
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank, dim) : NULL;
    if (!y)
        return false;
    if (y->requires_grad && !linear_keeps_y(activation)) {
        z = sb_node_save(node, tensor_new("linear", x->device, x->dtype, x->rank, dim));
        if (!z)
            return false;
    }
    struct packed_weight packed;
    if (!packed_weights_find(s.by_row ? context_open()->packed : NULL, k, weight, &packed))
        return false;
    s.packed = packed.data != NULL;
    const void *b = bias ? bias->data : NULL;
    const bool ok = packed.int8 ? packed.int8->forward(&s, x->data, packed.data, b, y->data)
                                : k->forward(&s, x->data, s.packed ? packed.data : weight->data, b,
                                             z ? z->data : NULL, y->data);
    return ok || sb_fail("linear: out of memory");
}

sb_tensor *sb_linear_activation(sb_tensor *x, sb_tensor *weight, sb_tensor *bias,
                                sb_activation activation)
{
    sb_node *node = call_begin(&linear, &linear_rows, bias ? 3 : 2,
                               (sb_tensor *[]){x, weight, bias}, 1, &activation, sizeof activation);
    if (!node || !linear_check("linear", x, weight, bias))
        return NULL;
    if ((int)activation < SB_ACTIVATION_IDENTITY || (int)activation > SB_ACTIVATION_SIGMOID)
        return sb_fail("linear: %d is not an activation", (int)activation);
    node_writes_f32(node, 1);
    return call_end(node, run(node, activation));
}

sb_tensor *sb_linear(sb_tensor *x, sb_tensor *weight, sb_tensor *bias)
{
    return sb_linear_activation(x, weight, bias, SB_ACTIVATION_IDENTITY);
}

EXAMPLE(example_linear, sb_linear(x[0], x[1], x[2]))
EXAMPLE(example_without_bias, sb_linear(x[0], x[1], NULL))
EXAMPLE(example_relu, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_RELU))
EXAMPLE(example_gelu, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_GELU))
EXAMPLE(example_gelu_tanh, sb_linear_activation(x[0], x[1], NULL, SB_ACTIVATION_GELU_TANH))
EXAMPLE(example_silu, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_SILU))
EXAMPLE(example_tanh, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_TANH))
EXAMPLE(example_sigmoid, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_SIGMOID))

OPERATION(linear,
          {"linear",
           example_linear,
           {"1 1x1 1", "3 2x3 2", "5x3 4x3 4", "2x3x4 2x4 2", "2x1x2x3 65x3 65", "=5x3 4x3 4",
            "5x3 =4x3 4", "5x3 4x3 =4", "130x1 2x1 2", "2x65 2x65 2", "2x0 3x0 3", "0x2 3x2 3"}},
          {"linear", example_without_bias, {"7 1x7", "2x63 2x63", "2x3x4 5x4", "=3x2 5x2"}},
          {"linear_activation", example_relu, {"5x3 4x3 4", "=2x3x4 2x4 2", "70x1 3x1 3"}},
          {"linear_activation", example_gelu, {"5x3 4x3 4", "7 2x7 2", "3x2 65x2 65"}},
          {"linear_activation", example_gelu_tanh, {"5x3 4x3", "=2x7 2x7"}},
          {"linear_activation", example_silu, {"5x3 4x3 4", "2x3x4 =2x4 2"}},
          {"linear_activation", example_tanh, {"5x3 4x3 4", "7 2x7 2"}},
          {"linear_activation", example_sigmoid, {"5x3 4x3 4", "2x64 2x64 2"}});
