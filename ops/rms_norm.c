#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include <math.h>

KERNEL_ROWS(rms_norm);

static bool rms_norm_backward(sb_node *node)
{
    const sb_tensor *x = node->in[0], *gain = node->in[1], *dy = sb_node_dy(node, 0);
    const struct rms_norm_kernels *k = kernel_row(&rms_norm_rows, x);
    int64_t rows = row_count(x), C = x->dim[x->rank - 1];
    sb_tensor *partial =
        tensor_new("rms_norm", x->device, dtype_of_sums(x->dtype), 2,
                   (int64_t[]){norm_slab_count(x->device == sb_device_cpu(), rows), C});
    bool ok = k && partial &&
              k->backward(rows, C, x->data, gain->data, sb_node_saved(node, 0)->data, dy->data,
                          norm_gradient(node, 0), norm_gradient(node, 1), partial->data);
    sb_tensor_release(partial);
    return ok;
}

static const sb_operation rms_norm = {"rms_norm", "x gain", rms_norm_backward, true, true};

sb_tensor *sb_rms_norm(sb_tensor *x, sb_tensor *gain, double epsilon)
{
    sb_node *node = call_begin(&rms_norm, &rms_norm_rows, 2, (sb_tensor *[]){x, gain}, 1, NULL, 0);
    if (!node || !check_rows("rms_norm", x) || !check_vector("rms_norm", "gain", gain, x) ||
        !check_not_negative("rms_norm", "epsilon", epsilon))
        return NULL;
    node_writes_f32(node, 1);
    x = node->in[0];
    gain = node->in[1];
    const struct rms_norm_kernels *k = kernel_row(&rms_norm_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    int64_t rows = row_count(x), C = x->dim[x->rank - 1];
    const sb_dtype sums = dtype_of_sums(x->dtype);
    sb_tensor *scale =
        y ? sb_node_save(node, tensor_new("rms_norm", x->device, sums, 1, &rows)) : NULL;
    if (!scale)
        return NULL;
    epsilon = sb_option(epsilon, 1e-6);
    return call_end(node, k->forward(rows, C, epsilon, x->data, gain->data, y->data, scale->data));
}

EXAMPLE(example_rms_norm, sb_rms_norm(x[0], x[1], 0))
EXAMPLE(example_without_epsilon, sb_rms_norm(x[0], x[1], SB_ZERO))

OPERATION(rms_norm,
          {"rms_norm",
           example_rms_norm,
           {"+1 1", "2 2", "7 7", "3x5 5", "c3:2x4 4", "2x3x4 4", "2x1x2x65 65", "=3x5 5",
            "3x63 =63", "130x2 2"}},
          {"rms_norm", example_without_epsilon, {"3x5 5", "+1 1", "2x64 =64"}});
