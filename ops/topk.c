#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/indexing.h"
#include "ops/ops.h"
#include <string.h>

KERNEL_ROWS(topk);

static bool topk_backward(sb_node *node)
{
    const sb_tensor *x = node->in[0], *ids = sb_node_saved(node, 0), *dy = sb_node_dy(node, 0);
    const struct topk_kernels *kernels = kernel_row(&topk_rows, x);
    const int64_t C = x->dim[x->rank - 1], k = ids->dim[ids->rank - 1];
    return kernels &&
           kernels->backward(row_count(x), C, k, ids->data, dy->data, sb_node_dx(node, 0)->data);
}

static const sb_operation topk = {"topk", "x", topk_backward, false, true};

static bool topk_check(const sb_tensor *x, int64_t k)
{
    if (!check_rows("topk", x))
        return false;
    const int64_t C = x->dim[x->rank - 1];
    if (k < 1 || k > C)
        return sb_fail("topk: k is %lld, not in 1..%lld, the size of a row of x %s", (long long)k,
                       (long long)C, tensor_shape(x).text);
    return C <= INT32_MAX || sb_fail("topk: x is %s: an i32 index cannot reach %lld",
                                     tensor_shape(x).text, (long long)C);
}

sb_tensor *sb_topk(sb_tensor *x, int64_t k, sb_tensor **indices)
{
    sb_node *node = call_begin(&topk, &topk_rows, 1, &x, 1, NULL, 0);
    if (!node || !topk_check(node->in[0], k))
        return NULL;
    x = node->in[0];
    int64_t dim[SB_MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = k;
    const struct topk_kernels *kernels = kernel_row(&topk_rows, x);
    sb_tensor *y = kernels ? sb_node_output(node, x->dtype, x->rank, dim) : NULL;
    sb_tensor *ids = y ? tensor_new("topk", x->device, SB_I32, x->rank, dim) : NULL;
    if (!ids || !sb_node_save(node, ids) ||
        !kernels->forward(row_count(x), x->dim[x->rank - 1], k, x->data, y->data, ids->data))
        return NULL;
    if (indices && !(*indices = sb_tape_own(sb_tensor_retain(ids))))
        return NULL;
    return call_end(node, true);
}

EXAMPLE(example_topk, sb_topk(x[0], 2, NULL))
EXAMPLE(example_topk_one, sb_topk(x[0], 1, NULL))
EXAMPLE(example_topk_five, sb_topk(x[0], 5, NULL))

OPERATION(topk, {"topk", example_topk, {"2", "3x5", "2x3x65"}},
          {"topk", example_topk_one, {"1", "4x3", "2x1x7"}},
          {"topk", example_topk_five, {"5", "3x64", "2x2x6"}});
