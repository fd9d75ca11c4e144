#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "ops/softmax.h"

KERNEL_ROWS(logsumexp);

static bool logsumexp_backward(sb_node *node)
{
    const sb_tensor *x = node->in[0], *y = node->out[0], *dy = sb_node_dy(node, 0);
    sb_tensor *dx = sb_node_dx(node, 0);
    const struct logsumexp_kernels *k = kernel_row(&logsumexp_rows, x);
    return k && k->backward(row_count(x), x->dim[x->rank - 1], x->data, y->data, dy->data,
                            sb_node_fresh(node, 0), dx->data);
}

static const sb_operation logsumexp = {"logsumexp", "x", logsumexp_backward, true, true};

sb_tensor *sb_logsumexp(sb_tensor *x)
{
    sb_node *node = call_begin(&logsumexp, &logsumexp_rows, 1, &x, 1, NULL, 0);
    if (!node || !check_rows("logsumexp", x))
        return NULL;
    x = node->in[0];
    const struct logsumexp_kernels *k = kernel_row(&logsumexp_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank - 1, x->dim) : NULL;
    return call_end(node, y && k->forward(row_count(x), x->dim[x->rank - 1], x->data, y->data));
}

EXAMPLE(example_logsumexp, sb_logsumexp(x[0]))

OPERATION(logsumexp, {"logsumexp",
                      example_logsumexp,
                      {"1", "2", "7", "3x5", "c2:2x4", "2x3x4", "2x1x3x65", "2x63", "64"}});
