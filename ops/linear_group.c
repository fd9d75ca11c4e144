/*
 * Linears of one x as one node: queries, keys and values on a device whose small products leave
 * most of it idle, and where each is a launch. The device computes them as one product wherever
 * they lie at equal distances: the weights and biases as nn/flat.c and cast_all place them, the
 * results and their gradients in a block each. Otherwise it computes them one after the other.
 *
 * dx is always their sum in order, from the last to the first as on a tape of single linears: one
 * product could not add to it three times.
 */
#include "ops/call.h"
#include "ops/check.h"
#include "ops/linear.h"

/* The node's inputs are x, the weights, and the biases if it has any. */
struct group {
    const struct linear_kernels *kernels;
    struct linear_shape each; /* a single linear's */
    int n;
    bool biased;
    sb_node *node;
};

bool linear_groups(const sb_tensor *x)
{
    if (!sb_dtype_is_real(x->dtype))
        return false;
    const struct linear_kernels *k = kernel_row_if_any(&linear_rows, x->device, x->dtype);
    return k && k->groups;
}

static struct group group_of(sb_node *node)
{
    const sb_tensor *x = node->in[0], *weight = node->in[1];
    return (struct group){.kernels = kernel_row(&linear_rows, x),
                          .each = linear_shape_of(x, weight, SB_ACTIVATION_IDENTITY),
                          .n = node->outputs,
                          .biased = node->inputs > 1 + node->outputs,
                          .node = node};
}

/* Whether n tensors (NULL: one is missing) lie in one buffer at equal distances; stores the
   distance in elements. */
static bool group_is_even(int n, sb_tensor *const t[], int64_t *distance)
{
    for (int i = 0; i < n; i++)
        if (!t[i] || !t[i]->base || t[i]->base != t[0]->base)
            return false;
    const char *const first = t[0]->data;
    const int64_t bytes = (const char *)t[1]->data - first;
    *distance = bytes / (int64_t)sb_dtype_bytes(t[0]->dtype);
    for (int i = 1; i < n; i++)
        if ((const char *)t[i]->data != first + i * bytes)
            return false;
    return *distance >= tensor_size(t[0]);
}

static bool group_forward(const struct group *g, sb_tensor *const y[])
{
    sb_tensor *const *weight = g->node->in + 1, *const *bias = weight + g->n;
    const void *x = g->node->in[0]->data;
    struct linear_shape all = g->each;
    all.group.count = g->n;
    if (g->kernels->groups && group_is_even(g->n, weight, &all.group.weight) &&
        (!g->biased || group_is_even(g->n, bias, &all.group.bias)) &&
        group_is_even(g->n, y, &all.group.y))
        return g->kernels->forward(&all, x, weight[0]->data, g->biased ? bias[0]->data : NULL, NULL,
                                   y[0]->data);
    bool ok = true;
    for (int i = 0; ok && i < g->n; i++)
        ok = g->kernels->forward(&g->each, x, weight[i]->data, g->biased ? bias[i]->data : NULL,
                                 NULL, y[i]->data);
    return ok;
}

/* The gradients of the weights or of the biases, whose first is input `first`; NULL: not needed. An
   output without a gradient gives its parameters none. */
static void group_targets(const struct group *g, int first, sb_tensor *target[])
{
    for (int i = 0; i < g->n; i++) {
        target[i] = sb_node_dx(g->node, first + i);
        if (target[i] && !sb_node_dy(g->node, i)) {
            if (sb_node_fresh(g->node, first + i))
                tensor_drop_grad(node_target(g->node, first + i));
            target[i] = NULL;
        }
    }
}

/* Whether one product computes all of these; completes its shape. */
static bool group_backward_fits(const struct group *g, int first, sb_tensor *const target[],
                                sb_tensor *const dy[], struct linear_shape *all, int64_t *distance)
{
    for (int i = 1; i < g->n; i++)
        if (sb_node_fresh(g->node, first + i) != sb_node_fresh(g->node, first))
            return false;
    *all = g->each;
    all->group.count = g->n;
    return g->kernels->groups && group_is_even(g->n, dy, &all->group.y) &&
           group_is_even(g->n, target, distance);
}

/* y = x W' + b: dW = dy' x, or with scratch memory for it db, the sum of dy's rows. */
static bool group_gradient(const struct group *g, const struct linear_shape *s, int input,
                           const sb_tensor *dy, void *partial, sb_tensor *to)
{
    const struct linear_shape shape = linear_shape_to(s, dy, to);
    const bool fresh = sb_node_fresh(g->node, input);
    return partial ? g->kernels->backward_bias(&shape, dy->data, partial, fresh, to->data)
                   : g->kernels->backward_weight(&shape, dy->data, g->node->in[0]->data, fresh,
                                                 to->data);
}

/* The gradients of the weights, or with scratch memory of the biases. */
static bool group_gradients(const struct group *g, sb_tensor *const dy[], void *partial)
{
    const int first = partial ? 1 + g->n : 1;
    sb_tensor *target[LINEAR_GROUP];
    struct linear_shape all;
    int64_t distance;
    group_targets(g, first, target);
    if (group_backward_fits(g, first, target, dy, &all, &distance)) {
        *(partial ? &all.group.bias : &all.group.weight) = distance;
        return group_gradient(g, &all, first, dy[0], partial, target[0]);
    }
    bool ok = true;
    for (int i = 0; ok && i < g->n; i++)
        ok = !target[i] || group_gradient(g, &g->each, first + i, dy[i], partial, target[i]);
    return ok;
}

static bool group_backward_biases(const struct group *g, sb_tensor *const dy[])
{
    const sb_tensor *x = g->node->in[0];
    if (!g->biased)
        return true;
    sb_tensor *partial = tensor_new("linear", x->device, dtype_of_sums(x->dtype),
                                    SB_SHAPE(slab_count(g->each.rows), LINEAR_GROUP, g->each.out));
    const bool ok = partial && group_gradients(g, dy, partial->data);
    sb_tensor_release(partial);
    return ok;
}

/* y = x W' + b: dx = dy W, of the last linear first */
static bool group_backward_x(const struct group *g, sb_tensor *const dy[])
{
    sb_tensor *const *weight = g->node->in + 1, *dx = sb_node_dx(g->node, 0);
    bool fresh = sb_node_fresh(g->node, 0), ok = true;
    for (int i = g->n - 1; dx && ok && i >= 0; i--) {
        if (!dy[i])
            continue;
        ok = g->kernels->backward_x(&g->each, dy[i]->data, weight[i]->data, fresh, dx->data);
        fresh = false;
    }
    return ok;
}

static bool group_backward(sb_node *node)
{
    const struct group g = group_of(node);
    sb_tensor *dy[LINEAR_GROUP];
    for (int i = 0; i < g.n; i++)
        dy[i] = sb_node_dy(node, i);
    if (!g.kernels)
        return false;
    return (group_backward_biases(&g, dy) && group_backward_x(&g, dy) &&
            group_gradients(&g, dy, NULL)) ||
           sb_fail("linear: out of memory");
}

static const sb_operation linear_of_group = {"linear", "x parameter[]", group_backward, true, true};

/* The outputs (..., heads, out / heads), in one block. */
static bool group_outputs(const struct group *g, int64_t heads)
{
    const sb_tensor *x = g->node->in[0];
    const int64_t room = node_block_room(g->each.rows * g->each.out), size = g->n * room;
    int64_t dim[SB_MAX_RANK];
    for (int axis = 0; axis < x->rank - 1; axis++)
        dim[axis] = x->dim[axis];
    dim[x->rank - 1] = heads;
    dim[x->rank] = g->each.out / heads;
    sb_tensor *block = tensor_new("linear", x->device, x->dtype, 1, &size);
    bool ok = block != NULL;
    for (int i = 0; ok && i < g->n; i++)
        ok = node_block_output(g->node, block, i * room, x->rank + 1, dim) != NULL;
    node_block_close(block);
    return ok;
}

/* Checks what the node's inputs must have in common. */
static bool group_check(const sb_node *node, int64_t heads)
{
    const sb_tensor *x = node->in[0], *weight = node->in[1];
    const int n = node->outputs;
    const bool biased = node->inputs > 1 + n;
    for (int i = 1; i <= n; i++) {
        if (!linear_check("linear", x, node->in[i], biased ? node->in[n + i] : NULL))
            return false;
        if (node->in[i]->dim[0] != weight->dim[0])
            return sb_fail("linear: weights of a group are %s and %s; they must have one shape",
                           tensor_shape(weight).text, tensor_shape(node->in[i]).text);
    }
    if (heads < 1 || weight->dim[0] % heads != 0 || x->rank == SB_MAX_RANK)
        return sb_fail("linear: x is %s, weight is %s: the result cannot be split into %lld heads",
                       tensor_shape(x).text, tensor_shape(weight).text, (long long)heads);
    return true;
}

bool linear_group(sb_tensor *x, int n, sb_tensor *const weight[], sb_tensor *const bias[],
                  int64_t heads, sb_tensor *y[])
{
    sb_tensor *in[1 + 2 * LINEAR_GROUP] = {x};
    if (n < 2 || n > LINEAR_GROUP)
        return sb_fail("linear: a group of %d; it must have 2 to %d", n, LINEAR_GROUP);
    for (int i = 0; i < n; i++) {
        in[1 + i] = weight[i];
        in[1 + n + i] = bias ? bias[i] : NULL;
    }
    sb_node *node =
        call_begin(&linear_of_group, &linear_rows, bias ? 1 + 2 * n : 1 + n, in, n, NULL, 0);
    if (!node || !group_check(node, heads))
        return false;
    node_writes_f32(node, 1);
    const struct group g = group_of(node);
    if (!g.kernels || !group_outputs(&g, heads))
        return false;
    if (!group_forward(&g, node->out))
        return sb_fail("linear: out of memory");
    for (int i = 0; i < n; i++)
        y[i] = call_output(node, i);
    return y[n - 1] != NULL;
}
