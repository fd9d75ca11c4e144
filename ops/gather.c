#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/indexing.h"
#include "ops/ops.h"

KERNEL_ROWS_PLAIN(gather); /* a loop of single reads has nothing to gain from vectors */

/* Backward checks again: the caller may have changed the ids since forward. */
static bool gather_ids_fit(const struct gather_kernels *k, int64_t C, const sb_tensor *ids)
{
    return check_ids_fit("gather", ids, k->first_bad(tensor_size(ids), C, ids->data), C);
}

static bool gather_backward(sb_node *node)
{
    const sb_tensor *x = node->in[0], *ids = node->in[1], *dy = sb_node_dy(node, 0);
    sb_tensor *dx = sb_node_dx(node, 0);
    const struct gather_kernels *k = kernel_row(&gather_rows, x);
    int64_t C = x->dim[x->rank - 1];
    return k && gather_ids_fit(k, C, ids) &&
           k->backward(tensor_size(ids), C, ids->data, dy->data, dx->data);
}

static const sb_operation gather = {"gather", "x ids", gather_backward, false, true};

sb_tensor *sb_gather(sb_tensor *x, sb_tensor *ids)
{
    sb_node *node = call_begin(&gather, &gather_rows, 2, (sb_tensor *[]){x, ids}, 1, NULL, 0);
    if (!node || !check_rows("gather", x) || !check_ids("gather", "ids", ids))
        return NULL;
    if (!shape_equal(x->rank - 1, x->dim, ids->rank, ids->dim))
        return sb_fail("gather: x is %s, ids are %s, not %s: one id for each row of x",
                       tensor_shape(x).text, tensor_shape(ids).text,
                       shape_text(x->rank - 1, x->dim).text);
    x = node->in[0];
    const struct gather_kernels *k = kernel_row(&gather_rows, x);
    int64_t C = x->dim[x->rank - 1];
    if (!k || !gather_ids_fit(k, C, ids))
        return NULL;
    sb_tensor *y = sb_node_output(node, x->dtype, ids->rank, ids->dim);
    return call_end(node, y && k->forward(tensor_size(ids), C, x->data, ids->data, y->data));
}

EXAMPLE(example_gather, sb_gather(x[0], x[1]))

OPERATION(gather,
          {"gather",
           example_gather,
           {"1 i1:.", "7 i7:.", "3x2 i2:3", "2x3x5 i5:2x3", "1x2x1x65 i65:1x2x1", "7x1 i1:7"}});
