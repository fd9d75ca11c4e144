#include "ops/elementwise.h"
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"

KERNEL_ROWS(elementwise);

struct function {
    enum elementwise kind;
    double factor;
};

static bool elementwise_backward(sb_node *node)
{
    const struct function *f = sb_node_options(node);
    const sb_tensor *x = node->in[0], *y = node->out[0];
    sb_tensor *dx = sb_node_dx(node, 0);
    const struct elementwise_kernels *k = kernel_row(&elementwise_rows, x);
    return k && k->backward(f->kind, f->factor, sb_node_fresh(node, 0), tensor_size(x), x->data,
                            y->data, sb_node_dy(node, 0)->data, dx->data);
}

static const sb_operation operations[ELEMENTWISE_KINDS] = {
#define OPERATION_OF(NAME, name, y, dx)                                                            \
    [ELEMENTWISE_##NAME] = {#name, "x", elementwise_backward, true, true},
    ELEMENTWISE_TABLE(OPERATION_OF)
#undef OPERATION_OF
};

static sb_tensor *elementwise_apply(enum elementwise kind, sb_tensor *x, double factor)
{
    const struct function f = {kind, factor};
    sb_node *node = call_begin(&operations[kind], &elementwise_rows, 1, &x, 1, &f, sizeof f);
    if (!node || !check_real(operations[kind].name, "x", x))
        return NULL;
    x = node->in[0];
    const struct elementwise_kernels *k = kernel_row(&elementwise_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    return call_end(node, y && k->forward(kind, factor, tensor_size(x), x->data, y->data));
}

sb_tensor *sb_negate(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_NEGATE, x, 0);
}

sb_tensor *sb_scale(sb_tensor *x, double factor)
{
    return elementwise_apply(ELEMENTWISE_SCALE, x, factor);
}

sb_tensor *sb_sqrt(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_SQRT, x, 0);
}

sb_tensor *sb_exp(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_EXP, x, 0);
}

sb_tensor *sb_log(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_LOG, x, 0);
}

sb_tensor *sb_tanh(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_TANH, x, 0);
}

sb_tensor *sb_sigmoid(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_SIGMOID, x, 0);
}

sb_tensor *sb_relu(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_RELU, x, 0);
}

sb_tensor *sb_gelu(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_GELU, x, 0);
}

sb_tensor *sb_gelu_tanh(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_GELU_TANH, x, 0);
}

sb_tensor *sb_silu(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_SILU, x, 0);
}

sb_tensor *sb_abs(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_ABS, x, 0);
}

sb_tensor *sb_sin(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_SIN, x, 0);
}

sb_tensor *sb_cos(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_COS, x, 0);
}

sb_tensor *sb_expm1(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_EXPM1, x, 0);
}

sb_tensor *sb_log1p(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_LOG1P, x, 0);
}

sb_tensor *sb_erf(sb_tensor *x)
{
    return elementwise_apply(ELEMENTWISE_ERF, x, 0);
}

sb_tensor *sb_pow(sb_tensor *x, double exponent)
{
    return elementwise_apply(ELEMENTWISE_POW, x, exponent);
}

sb_tensor *sb_clamp(sb_tensor *x, double low, double high)
{
    if (!x)
        return fail_null("clamp", "x");
    if (!check_real("clamp", "x", x))
        return NULL;
    if (!(low <= high))
        return sb_fail("clamp: low is %g, high is %g; low must not be above high", low, high);
    return elementwise_apply(ELEMENTWISE_CLAMP_HIGH,
                             elementwise_apply(ELEMENTWISE_CLAMP_LOW, x, low), high);
}

EXAMPLE(example_negate, sb_negate(x[0]))
EXAMPLE(example_scale, sb_scale(x[0], -1.5))
EXAMPLE(example_sqrt, sb_sqrt(x[0]))
EXAMPLE(example_exp, sb_exp(x[0]))
EXAMPLE(example_log, sb_log(x[0]))
EXAMPLE(example_tanh, sb_tanh(x[0]))
EXAMPLE(example_sigmoid, sb_sigmoid(x[0]))
EXAMPLE(example_relu, sb_relu(x[0]))
EXAMPLE(example_gelu, sb_gelu(x[0]))
EXAMPLE(example_gelu_tanh, sb_gelu_tanh(x[0]))
EXAMPLE(example_silu, sb_silu(x[0]))
EXAMPLE(example_abs, sb_abs(x[0]))
EXAMPLE(example_sin, sb_sin(x[0]))
EXAMPLE(example_cos, sb_cos(x[0]))
EXAMPLE(example_expm1, sb_expm1(x[0]))
EXAMPLE(example_log1p, sb_log1p(x[0]))
EXAMPLE(example_erf, sb_erf(x[0]))
EXAMPLE(example_pow, sb_pow(x[0], 2.5))
EXAMPLE(example_cube, sb_pow(x[0], 3))
EXAMPLE(example_clamp, sb_clamp(x[0], -0.75, 1.25))

OPERATION(elementwise, {"negate", example_negate, {".", "1", "2", "3x5", "2x3x7", "1x2x1x63"}},
          {"scale", example_scale, {".", "1", "2", "3x5", "2x3x7", "1x2x1x63"}},
          {"sqrt", example_sqrt, {"+.", "+1", "+2", "+3x5", "+2x3x7", "+1x2x1x63"}},
          {"exp", example_exp, {".", "1", "2", "3x5", "2x3x7", "2x1x3x65"}},
          {"log", example_log, {"+.", "+1", "+2", "+3x5", "+2x3x7", "+1x2x1x63"}},
          {"tanh", example_tanh, {".", "1", "2", "3x5", "2x3x7", "2x1x3x65"}},
          {"sigmoid", example_sigmoid, {".", "1", "2", "3x5", "2x3x7", "1x2x1x63"}},
          {"relu", example_relu, {".", "1", "2", "3x5", "2x3x7", "1x2x1x63"}},
          {"gelu", example_gelu, {".", "1", "2", "3x5", "2x3x7", "2x1x3x65"}},
          {"gelu_tanh", example_gelu_tanh, {".", "1", "2", "3x5", "2x3x7", "1x2x1x63"}},
          {"silu", example_silu, {".", "1", "2", "3x5", "2x3x7", "1x2x1x63"}},
          {"abs", example_abs, {".", "1", "2", "3x5", "2x3x7", "1x2x1x63"}},
          {"sin", example_sin, {".", "1", "2", "3x5", "2x3x7", "1x2x1x63"}},
          {"cos", example_cos, {".", "1", "2", "3x5", "2x3x7", "2x1x3x65"}},
          {"expm1", example_expm1, {".", "1", "2", "3x5", "2x3x7", "1x2x1x63"}},
          {"log1p", example_log1p, {"+.", "+1", "+2", "+3x5", "+2x3x7", "+1x2x1x63"}},
          {"erf", example_erf, {".", "1", "2", "3x5", "2x3x7", "2x1x3x65"}},
          {"pow", example_pow, {"+.", "+1", "+2", "+3x5", "+2x3x7", "+1x2x1x63"}},
          {"pow", example_cube, {".", "3x5", "2x3x7"}},
          {"clamp", example_clamp, {".", "1", "2", "3x5", "2x3x7", "1x2x1x63"}});
