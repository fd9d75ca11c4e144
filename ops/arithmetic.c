#include "ops/arithmetic.h"
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"

KERNEL_ROWS(arithmetic);

/* The plan's operands, in the order of the kernels: y, a, b and the condition. */
static struct broadcast arithmetic_plan(const sb_node *node)
{
    const sb_tensor *operand[] = {node->out[0], node->in[0], node->in[1],
                                  node->inputs > 2 ? node->in[2] : NULL};
    return broadcast_plan(node->inputs + 1, operand);
}

static bool arithmetic_backward(sb_node *node)
{
    const struct arithmetic_kernels *k = kernel_row(&arithmetic_rows, node->out[0]);
    const enum arithmetic kind = *(const enum arithmetic *)sb_node_options(node);
    const struct broadcast walk = arithmetic_plan(node);
    const void *dy = sb_node_dy(node, 0)->data, *a = node->in[0]->data, *b = node->in[1]->data;
    const void *condition = node->inputs > 2 ? node->in[2]->data : NULL;
    bool ok = k != NULL;
    for (int i = 0; i < 2 && ok; i++) {
        sb_tensor *dx = sb_node_dx(node, i);
        if (dx)
            ok = k->backward(kind, i + 1, sb_node_fresh(node, i), &walk, dy, a, b, condition,
                             dx->data);
    }
    return ok;
}

static const sb_operation operations[ARITHMETIC_KINDS] = {
    [ARITHMETIC_ADD] = {"add", "a b", arithmetic_backward, true, true},
    [ARITHMETIC_SUBTRACT] = {"subtract", "a b", arithmetic_backward, true, true},
    [ARITHMETIC_MULTIPLY] = {"multiply", "a b", arithmetic_backward, true, true},
    [ARITHMETIC_DIVIDE] = {"divide", "a b", arithmetic_backward, true, true},
    [ARITHMETIC_WHERE] = {"where", "a b condition", arithmetic_backward, true, true},
    [ARITHMETIC_MAXIMUM] = {"maximum", "a b", arithmetic_backward, true, true},
    [ARITHMETIC_MINIMUM] = {"minimum", "a b", arithmetic_backward, true, true},
};

/* Makes y of this shape and fills it. */
static sb_tensor *run(sb_node *node, enum arithmetic kind, int rank, const int64_t *dim)
{
    const struct arithmetic_kernels *k = kernel_row(&arithmetic_rows, node->in[0]);
    sb_tensor *y = k ? sb_node_output(node, node->in[0]->dtype, rank, dim) : NULL;
    if (!y)
        return NULL;
    const struct broadcast walk = arithmetic_plan(node);
    const void *condition = node->inputs > 2 ? node->in[2]->data : NULL;
    return call_end(
        node, k->forward(kind, &walk, node->in[0]->data, node->in[1]->data, condition, y->data));
}

static sb_tensor *arithmetic_apply(enum arithmetic kind, sb_tensor *a, sb_tensor *b)
{
    const char *name = operations[kind].name;
    sb_node *node = call_begin(&operations[kind], &arithmetic_rows, 2, (sb_tensor *[]){a, b}, 1,
                               &kind, sizeof kind);
    if (!node || !check_real(name, "a", a) || !check_real(name, "b", b))
        return NULL;
    int rank;
    int64_t dim[SB_MAX_RANK];
    if (!shape_broadcast(a->rank, a->dim, b->rank, b->dim, &rank, dim))
        return sb_fail("%s: a is %s, b is %s: they do not broadcast", name, tensor_shape(a).text,
                       tensor_shape(b).text);
    return run(node, kind, rank, dim);
}

/* sb_NAME of two tensors, and its example. */
#define FUNCTION(NAME, name)                                                                       \
    sb_tensor *sb_##name(sb_tensor *a, sb_tensor *b)                                               \
    {                                                                                              \
        return arithmetic_apply(ARITHMETIC_##NAME, a, b);                                          \
    }                                                                                              \
    EXAMPLE(example_##name, sb_##name(x[0], x[1]))

FUNCTION(ADD, add)
FUNCTION(SUBTRACT, subtract)
FUNCTION(MULTIPLY, multiply)
FUNCTION(DIVIDE, divide)
FUNCTION(MAXIMUM, maximum)
FUNCTION(MINIMUM, minimum)

sb_tensor *sb_where(sb_tensor *condition, sb_tensor *a, sb_tensor *b)
{
    const enum arithmetic kind = ARITHMETIC_WHERE;
    sb_node *node = call_begin(&operations[kind], &arithmetic_rows, 3,
                               (sb_tensor *[]){a, b, condition}, 1, &kind, sizeof kind);
    if (!node || !check_real("where", "a", a) || !check_real("where", "b", b))
        return NULL;
    if (condition->dtype != SB_BOOL)
        return sb_fail("where: condition is of %s; it must be bool",
                       sb_dtype_name(condition->dtype));
    int rank_ab, rank;
    int64_t dim_ab[SB_MAX_RANK], dim[SB_MAX_RANK];
    if (!shape_broadcast(a->rank, a->dim, b->rank, b->dim, &rank_ab, dim_ab) ||
        !shape_broadcast(rank_ab, dim_ab, condition->rank, condition->dim, &rank, dim))
        return sb_fail("where: condition is %s, a is %s, b is %s: they do not broadcast",
                       tensor_shape(condition).text, tensor_shape(a).text, tensor_shape(b).text);
    return run(node, kind, rank, dim);
}

EXAMPLE(example_where, sb_where(x[0], x[1], x[2]))

OPERATION(
    arithmetic,
    {"add", example_add, {". .", "7 7", "3x65 65", "3x1 1x4", "=2x3 3", "2x1x3x2 5x1x2"}},
    {"subtract", example_subtract, {". 2", "63 63", "3x5 5", "2x3x4 2x1x4", "4 =3x4", "0x3 3"}},
    {"multiply",
     example_multiply,
     {"1 1", "64 64", "3x5 .", ". 3x5", "2x65 65", "2x1x4x3 3x1x1", "2x1x3x2 1x4x1x2",
      "1x3x1 2x1x65", "=3x5 5", "3x5 =1x5"}},
    {"divide",
     example_divide,
     {"7 +7", "3x5 +.", ". +3x5", "2x65 +65", "3x4 +3x1", "2x3x1x2 +3x4x1", "=5 +2x5", "2x5 =+5"}},
    {"maximum", example_maximum, {". .", "7 7", "3x65 65", "3x1 1x4", "=2x3 3"}},
    {"minimum", example_minimum, {". .", "7 7", "3x65 65", "2x1x3 4x1", "3 =2x3"}},
    {"where",
     example_where,
     {"b:7 7 7", "b:3x65 3x65 65", "b:3x1 . 4", "b:2x1x3 4x1 1", "b:. 3 2x1", "b:5 =5 3x5"}});
