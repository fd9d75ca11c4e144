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

/* sb_NAME, a row of the table without a factor, and its example. */
#define FUNCTION(NAME, name)                                                                       \
    sb_tensor *sb_##name(sb_tensor *x)                                                             \
    {                                                                                              \
        return elementwise_apply(ELEMENTWISE_##NAME, x, 0);                                        \
    }                                                                                              \
    EXAMPLE(example_##name, sb_##name(x[0]))

FUNCTION(NEGATE, negate)
FUNCTION(SQRT, sqrt)
FUNCTION(EXP, exp)
FUNCTION(LOG, log)
FUNCTION(TANH, tanh)
FUNCTION(SIGMOID, sigmoid)
FUNCTION(RELU, relu)
FUNCTION(GELU, gelu)
FUNCTION(GELU_TANH, gelu_tanh)
FUNCTION(SILU, silu)
FUNCTION(ABS, abs)
FUNCTION(SIN, sin)
FUNCTION(COS, cos)
FUNCTION(EXPM1, expm1)
FUNCTION(LOG1P, log1p)
FUNCTION(ERF, erf)

sb_tensor *sb_scale(sb_tensor *x, double factor)
{
    return elementwise_apply(ELEMENTWISE_SCALE, x, factor);
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

EXAMPLE(example_scale, sb_scale(x[0], -1.5))
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
