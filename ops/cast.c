#include "ops/cast.h"
#include "autograd/node.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"

KERNEL_ROWS(cast);

bool cast_elements(bool fresh, int64_t n, const sb_tensor *x, sb_tensor *y)
{
    const bool bf16 = y->dtype == SB_BF16;
    const struct cast_kernels *k =
        kernel_row_if_any(&cast_rows, y->device, bf16 ? SB_F32 : y->dtype);
    return (bf16 ? k->to_bf16 : k->to_real)(x->dtype, fresh, n, x->data, y->data);
}

/* y = x in another real dtype: dx = dy in x's */
static bool cast_backward(sb_node *node)
{
    sb_tensor *dx = sb_node_dx(node, 0);
    return !dx || cast_elements(sb_node_fresh(node, 0), tensor_size(dx), sb_node_dy(node, 0), dx);
}

static const sb_operation cast = {"cast", "x", cast_backward, true, true};

static bool run(const sb_tensor *x, sb_tensor *y)
{
    if (sb_dtype_is_real(y->dtype))
        return cast_elements(true, tensor_size(x), x, y);
    const struct cast_kernels *k = kernel_row(&cast_rows, x);
    return k && k->to_whole(x->dtype, y->dtype, tensor_size(x), x->data, y->data);
}

sb_tensor *sb_cast(sb_tensor *x, sb_dtype dtype)
{
    if (x && x->dtype == SB_BF16 && !sb_dtype_is_real(dtype))
        x = sb_cast(x, SB_F32);
    sb_node *node = sb_node_new(&cast, 1, &x, 1, NULL, 0);
    if (!node)
        return NULL;
    x = node->in[0];
    if (dtype == SB_F64 ||
        dtype == SB_DUAL) /* the same on a dual tape, where others are constant */
        dtype = x->dtype == SB_DUAL ? SB_DUAL : tape_open()->twins ? SB_F64 : dtype;
    if (dtype == x->dtype)
        return node_view(node, 0, x->rank, x->dim);
    if (dtype == SB_DUAL || (x->dtype == SB_DUAL && sb_dtype_is_real(dtype)))
        return sb_fail("cast: x is %s, the result would be %s: derivatives are exact in f64 alone",
                       sb_dtype_name(x->dtype), sb_dtype_name(dtype));
    sb_tensor *y = sb_node_output(node, dtype, x->rank, x->dim);
    if (y && dtype == SB_BF16 && x->dtype == SB_F32 && x->tape == 0)
        y->rounds = x;
    return y && run(x, y) ? y : NULL;
}

/* Most outputs get no gradient: operations add to that of the input (node_writes_f32). */
static bool cast_all_backward(sb_node *node)
{
    bool ok = true;
    for (int i = 0; ok && i < node->inputs; i++) {
        const sb_tensor *dy = sb_node_dy(node, i);
        sb_tensor *dx = sb_node_dx(node, i);
        if (dx && dy)
            ok = cast_elements(sb_node_fresh(node, i), tensor_size(dx), dy, dx);
        else if (dx && sb_node_fresh(node, i))
            tensor_drop_grad(node->in[i]);
    }
    return ok;
}

static const sb_operation cast_of_all = {"cast", "x[]", cast_all_backward, true, false};

static bool cast_list_run(const sb_device *device, const struct cast_list *list)
{
    const struct cast_kernels *k = kernel_row_if_any(&cast_rows, device, SB_F32);
    bool ok = true;
    if (k->list)
        return list->count == 0 || k->list(list);
    for (int i = 0; ok && i < list->count; i++)
        ok = k->to_bf16(SB_F32, true, list->item[i].n, list->item[i].x, list->item[i].y);
    return ok;
}

bool cast_all(int n, sb_tensor *const x[], sb_tensor *y[])
{
    struct cast_list list = {0};
    sb_node *node = sb_node_new(&cast_of_all, n, x, n, NULL, 0);
    int64_t size = 0, at = 0;
    for (int i = 0; i < n; i++)
        size += node_block_room(tensor_size(x[i]));
    sb_tensor *block = node ? tensor_new("cast", x[0]->device, SB_BF16, 1, &size) : NULL;
    bool ok = block != NULL;
    for (int i = 0; ok && i < n; i++) {
        y[i] = node_block_output(node, block, at, x[i]->rank, x[i]->dim);
        ok = y[i] != NULL;
        if (ok) {
            y[i]->rounds = x[i]->tape == 0 ? x[i] : NULL;
            if (tensor_size(x[i]) > 0)
                list.item[list.count++] =
                    (struct cast_item){x[i]->data, y[i]->data, tensor_size(x[i])};
        }
        at += node_block_room(tensor_size(x[i]));
    }
    node_block_close(block);
    return ok && cast_list_run(x[0]->device, &list);
}

EXAMPLE(example_same, sb_cast(x[0], sb_tensor_dtype(x[0])))
EXAMPLE(example_to_f64, sb_cast(x[0], SB_F64))
EXAMPLE(example_of_ids, sb_cast(sb_cast(x[0], SB_BOOL), SB_F64))
EXAMPLE(example_through_bf16, sb_cast(sb_cast(x[0], SB_BF16), SB_I32))

OPERATION(cast, {"cast", example_same, {".", "7", "3x5", "2x1x3x4"}},
          {"cast", example_to_f64, {"63", "i9:2x3", "b:4x4"}},
          {"cast", example_of_ids, {"i3:2x3x4", "b:7"}},
          {"cast", example_through_bf16, {"=7", "=2x3", "i9:2x3"}});
