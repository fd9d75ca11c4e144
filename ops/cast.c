#include "ops/cast.h"
#include "autograd/node.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"

KERNEL_ROWS(cast);

/* y = x in another real dtype: dx = dy in x's */
static bool backward(sb_node *node)
{
    const sb_tensor *dy = sb_node_dy(node, 0);
    sb_tensor *dx = sb_node_dx(node, 0);
    if (!dx)
        return true;
    const struct cast_kernels *k = kernel_row(&cast_rows, dx);
    return k && k->to_real(dy->dtype, sb_node_fresh(node, 0), tensor_size(dy), dy->data, dx->data);
}

static const sb_operation cast = {"cast", "x", backward, true};

static bool run(const sb_tensor *x, sb_tensor *y)
{
    const bool real = sb_dtype_is_real(y->dtype);
    const struct cast_kernels *k = kernel_row(&cast_rows, real ? y : x);
    if (!k)
        return false;
    return real ? k->to_real(x->dtype, true, tensor_size(x), x->data, y->data)
                : k->to_whole(x->dtype, y->dtype, tensor_size(x), x->data, y->data);
}

sb_tensor *sb_cast(sb_tensor *x, sb_dtype dtype)
{
    sb_node *node = sb_node_new(&cast, 1, &x, 1, NULL, 0);
    if (!node)
        return NULL;
    if (dtype == x->dtype)
        return node_view(node, 0, x->rank, x->dim);
    sb_tensor *y = sb_node_output(node, dtype, x->rank, x->dim);
    return y && run(x, y) ? y : NULL;
}

static sb_tensor *run_same(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_cast(x[0], sb_tensor_dtype(x[0]));
}

static sb_tensor *run_to_f64(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_cast(x[0], SB_F64);
}

static sb_tensor *run_of_ids(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_cast(sb_cast(x[0], SB_BOOL), SB_F64);
}

OPERATION(cast, {"cast", run_same, {".", "7", "3x5", "2x1x3x4"}},
          {"cast", run_to_f64, {"63", "i9:2x3", "b:4x4"}},
          {"cast", run_of_ids, {"i3:2x3x4", "b:7"}});
