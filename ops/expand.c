#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "ops/shape.h"

KERNEL_ROWS(expand);

static struct broadcast expand_plan(const sb_node *node)
{
    return broadcast_plan(2, (const sb_tensor *[]){node->out[0], node->in[0]});
}

static bool expand_backward(sb_node *node)
{
    const sb_tensor *dy = sb_node_dy(node, 0);
    const struct expand_kernels *k = kernel_row(&expand_rows, dy);
    const struct broadcast walk = expand_plan(node);
    return k && k->backward(sb_node_fresh(node, 0), &walk, dy->data, sb_node_dx(node, 0)->data);
}

static const sb_operation expand = {"expand", "x", expand_backward, true, true};

sb_tensor *sb_expand(sb_tensor *x, int rank, const int64_t *dim)
{
    sb_node *node = call_begin(&expand, &expand_rows, 1, &x, 1, NULL, 0);
    if (!node || !shape_check("expand", rank, dim))
        return NULL;
    int common;
    int64_t to[SB_MAX_RANK];
    if (!shape_broadcast(x->rank, x->dim, rank, dim, &common, to) ||
        !shape_equal(common, to, rank, dim))
        return sb_fail("expand: x is %s: it does not broadcast to %s", tensor_shape(x).text,
                       shape_text(rank, dim).text);
    x = node->in[0];
    const struct expand_kernels *k = kernel_row(&expand_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, rank, dim) : NULL;
    if (!y)
        return NULL;
    const struct broadcast walk = expand_plan(node);
    return call_end(node, k->forward(sb_dtype_bytes(x->dtype), &walk, x->data, y->data));
}

EXAMPLE(example_expand, sb_expand(x[0], SB_SHAPE(2, 3, 1, 5)))
EXAMPLE(example_long, sb_expand(x[0], SB_SHAPE(7, 65)))

OPERATION(expand,
          {"expand",
           example_expand,
           {".", "1", "5", "1x5", "1x1", "3x1x5", "3x1x1", "2x1x1x1", "2x1x1x5", "2x3x1x5"}},
          {"expand", example_long, {".", "65", "7x1", "1x65"}});
