#include "autograd/node.h"
#include "ops/example.h"
#include "ops/ops.h"

/* An operation without a backward gives a y that requires no gradient. */
static const sb_operation detach = {"detach", "x", NULL, false};

sb_tensor *sb_detach(sb_tensor *x)
{
    sb_node *node = sb_node_new(&detach, 1, &x, 1, NULL, 0);
    return node ? node_view(node, 0, x->rank, x->dim) : NULL;
}

EXAMPLE(example, sb_detach(x[0]))

OPERATION_WITHOUT_KERNELS(detach, {"detach", example, {"=.", "=3x5", "i5:2x3", "b:7"}});
