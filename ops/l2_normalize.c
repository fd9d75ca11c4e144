#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/normalization.h"
#include "ops/ops.h"

KERNEL_ROWS(l2_normalize);

static bool l2_normalize_backward(sb_node *node)
{
    const sb_tensor *y = node->out[0], *dy = sb_node_dy(node, 0);
    sb_tensor *dx = sb_node_dx(node, 0);
    const struct l2_normalize_kernels *k = kernel_row(&l2_normalize_rows, y);
    return k &&
           k->backward(row_count(y), y->dim[y->rank - 1], y->data, sb_node_saved(node, 0)->data,
                       dy->data, sb_node_fresh(node, 0), dx->data);
}

static const sb_operation l2_normalize = {"l2_normalize", "x", l2_normalize_backward, true, true};

sb_tensor *sb_l2_normalize(sb_tensor *x)
{
    sb_node *node = call_begin(&l2_normalize, &l2_normalize_rows, 1, &x, 1, NULL, 0);
    if (!node || !check_rows("l2_normalize", x))
        return NULL;
    x = node->in[0];
    const struct l2_normalize_kernels *k = kernel_row(&l2_normalize_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    int64_t rows = row_count(x);
    const sb_dtype sums = dtype_of_sums(x->dtype);
    sb_tensor *length =
        y ? sb_node_save(node, tensor_new("l2_normalize", x->device, sums, 1, &rows)) : NULL;
    return call_end(
        node, length && k->forward(rows, x->dim[x->rank - 1], x->data, y->data, length->data));
}

EXAMPLE(example_l2_normalize, sb_l2_normalize(x[0]))

OPERATION(l2_normalize, {"l2_normalize",
                         example_l2_normalize,
                         {"+1", "+2", "7", "3x5", "c3:2x4", "2x3x4", "2x1x2x65", "2x63", "64"}});
