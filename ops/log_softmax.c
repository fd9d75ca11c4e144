#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "ops/softmax.h"

KERNEL_ROWS(log_softmax);

static bool log_softmax_backward(sb_node *node)
{
    const sb_tensor *y = node->out[0], *dy = sb_node_dy(node, 0);
    sb_tensor *dx = sb_node_dx(node, 0);
    const struct log_softmax_kernels *k = kernel_row(&log_softmax_rows, y);
    int64_t C = y->dim[y->rank - 1], rows = C ? row_count(y) : 0;
    return k && k->backward(rows, C, y->data, dy->data, sb_node_fresh(node, 0), dx->data);
}

static const sb_operation log_softmax = {"log_softmax", "x", log_softmax_backward, true, true};

sb_tensor *sb_log_softmax(sb_tensor *x)
{
    sb_node *node = call_begin(&log_softmax, &log_softmax_rows, 1, &x, 1, NULL, 0);
    if (!node || !check_rows("log_softmax", x))
        return NULL;
    x = node->in[0];
    const struct log_softmax_kernels *k = kernel_row(&log_softmax_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    int64_t C = x->dim[x->rank - 1], rows = C ? row_count(x) : 0;
    return call_end(node, y && k->forward(rows, C, x->data, y->data));
}

bool log_softmax_best(const sb_tensor *x, const sb_tensor *bias, int32_t *index, double *value)
{
    const struct log_softmax_kernels *k = kernel_row_if_any(&log_softmax_rows, x->device, x->dtype);
    return k && k->best && k->best(x->dim[0], x->dim[1], x->data, bias->data, index, value);
}

EXAMPLE(example_log_softmax, sb_log_softmax(x[0]))

OPERATION(log_softmax, {"log_softmax",
                        example_log_softmax,
                        {"2", "7", "3x5", "c2:2x4", "2x3x4", "2x1x3x65", "2x63", "64"}});
