#include "autograd/node.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "tensor/dual.h"

/* An operation without a backward gives a y that requires no gradient. */
static const sb_operation detach = {"detach", "x", NULL, false, true};

/* Tangents stop where gradients do, so dual numbers are copied, with tangent 0. */
static sb_tensor *detach_tangents(sb_node *node)
{
    const sb_tensor *x = node->in[0];
    sb_tensor *y = sb_node_output(node, SB_DUAL, x->rank, x->dim);
    for (int64_t i = 0; y && i < tensor_size(y); i++)
        ((sb_dual *)y->data)[i] = sb_dual_value(((const sb_dual *)x->data)[i]);
    return y;
}

sb_tensor *sb_detach(sb_tensor *x)
{
    sb_node *node = sb_node_new(&detach, 1, &x, 1, NULL, 0);
    if (node && node->in[0]->dtype == SB_DUAL)
        return detach_tangents(node);
    return node ? node_view(node, 0, x->rank, x->dim) : NULL;
}

EXAMPLE(example, sb_detach(x[0]))

OPERATION_WITHOUT_KERNELS(detach, {"detach", example, {"=.", "=3x5", "i5:2x3", "b:7"}});
