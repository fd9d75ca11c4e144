#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "ops/shape.h"

/* y = x: dx = dy */
static bool reshape_backward(sb_node *node)
{
    return node_forward_gradient(node) || call_add_gradient(node, sb_node_dy(node, 0));
}

static const sb_operation reshape = {"reshape", "x", reshape_backward, true, true};

/* Copies the dimensions to `to` and infers the one that is -1. */
static bool reshape_complete(const sb_tensor *x, int rank, const int64_t *dim,
                             int64_t to[SB_MAX_RANK])
{
    int unknown = -1;
    for (int i = 0; i < rank; i++) {
        to[i] = dim[i];
        if (dim[i] != -1)
            continue;
        if (unknown >= 0)
            return sb_fail("reshape: the new shape is %s: only one dimension may be -1",
                           shape_text(rank, dim).text);
        unknown = i;
        to[i] = 1;
    }
    if (!shape_check("reshape", rank, to))
        return false;
    const int64_t size = tensor_size(x), known = shape_size(rank, to);
    if (unknown >= 0 && known > 0)
        to[unknown] = size / known;
    if (unknown >= 0 && known == 0)
        return sb_fail("reshape: the new shape is %s: -1 cannot be inferred if another size is 0",
                       shape_text(rank, dim).text);
    return shape_size(rank, to) == size ||
           sb_fail("reshape: x is %s, the new shape %s: the number of elements differs",
                   tensor_shape(x).text, shape_text(rank, dim).text);
}

sb_tensor *sb_reshape(sb_tensor *x, int rank, const int64_t *dim)
{
    sb_node *node = call_begin(&reshape, &slice_rows, 1, &x, 1, NULL, 0);
    if (!node)
        return NULL;
    if (rank < 0 || rank > SB_MAX_RANK)
        return sb_fail("reshape: rank %d is not in 0..%d", rank, SB_MAX_RANK);
    if (rank > 0 && !dim)
        return fail_null("reshape", "dim");
    int64_t to[SB_MAX_RANK];
    return call_end(node, reshape_complete(x, rank, dim, to) && node_view(node, 0, rank, to));
}

EXAMPLE(example_flat, sb_reshape(x[0], SB_SHAPE(-1)))
EXAMPLE(example_tall, sb_reshape(x[0], SB_SHAPE(-1, 1, 2)))

OPERATION_WITHOUT_KERNELS(reshape,
                          {"reshape", example_flat, {".", "1", "7", "3x5", "2x3x4", "2x1x3x65"}},
                          {"reshape", example_tall, {"2", "3x4", "2x3x64", "2x1x3x2"}});
