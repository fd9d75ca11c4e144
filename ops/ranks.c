/* The two operations of tensor parallelism. */
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "tensor/reduction.h"

struct ranks {
    sb_communicator *communicator;
};

/* t = the sum of all ranks' t, added in their order. */
static bool ranks_sum(const struct ranks *ranks, const sb_tensor *t)
{
    sb_communicator *c = ranks->communicator;
    const int64_t n = tensor_size(t), most = (int64_t)1 << 26; /* MPI counts are of type int */
    bool ok = true;
    for (int64_t at = 0, part; ok && sb_communicator_size(c) > 1 && at < n; at += part) {
        part = n - at < most ? n - at : most;
        struct reduction *r = reduction_new(c, t->device, t->dtype, part);
        ok = r && reduction_start(r, tensor_element(t, at)) && reduction_finish(r);
        reduction_free(r);
    }
    return ok;
}

static bool ranks_copy(const sb_tensor *from, const sb_tensor *to)
{
    return from->device->copy(to->data, from->data, tensor_bytes(from));
}

/* y = x on every rank: dx is the sum of their dy */
static bool ranks_backward_to(sb_node *node)
{
    const struct ranks *ranks = sb_node_options(node);
    const sb_tensor *dy = sb_node_dy(node, 0), *dx = sb_node_dx(node, 0);
    if (sb_node_fresh(node, 0))
        return ranks_copy(dy, dx) && ranks_sum(ranks, dx);
    sb_tensor *all = tensor_new("to_ranks", dy->device, dy->dtype, dy->rank, dy->dim);
    const bool ok =
        all && ranks_copy(dy, all) && ranks_sum(ranks, all) && call_add_gradient(node, all);
    sb_tensor_release(all);
    return ok;
}

/* y = the sum of the ranks' x: dx = dy */
static bool ranks_backward_from(sb_node *node)
{
    return node_forward_gradient(node) || call_add_gradient(node, sb_node_dy(node, 0));
}

static const sb_operation to_ranks = {"to_ranks", "x", ranks_backward_to, true, false};
static const sb_operation from_ranks = {"from_ranks", "x", ranks_backward_from, true, false};

sb_tensor *sb_to_ranks(sb_tensor *x, sb_communicator *ranks)
{
    const struct ranks options = {ranks};
    sb_node *node = call_begin(&to_ranks, NULL, 1, &x, 1, &options, sizeof options);
    return call_end(node,
                    node && check_real("to_ranks", "x", x) && node_view(node, 0, x->rank, x->dim));
}

sb_tensor *sb_from_ranks(sb_tensor *x, sb_communicator *ranks)
{
    const struct ranks options = {ranks};
    sb_node *node = call_begin(&from_ranks, NULL, 1, &x, 1, &options, sizeof options);
    if (!node || !check_real("from_ranks", "x", x))
        return NULL;
    x = node->in[0];
    sb_tensor *y = sb_node_output(node, x->dtype, x->rank, x->dim);
    return call_end(node, y && ranks_copy(x, y) && ranks_sum(&options, y));
}

/* Examples run on one rank. */
EXAMPLE(example_to, sb_to_ranks(x[0], NULL))
EXAMPLE(example_from, sb_from_ranks(x[0], NULL))

OPERATION_WITHOUT_KERNELS(ranks, {"to_ranks", example_to, {".", "=3x5", "2x1x7"}},
                          {"from_ranks", example_from, {".", "=3x5", "2x1x7"}});
