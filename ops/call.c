#include "ops/call.h"
#include "autograd/dual_tape.h"
#include "ops/ops.h"
#include "ops/shape.h"
#include "tensor/memory.h"
#include <string.h>

static bool call_needs_f32(struct kernel_rows *rows, const sb_tensor *x)
{
    return x && x->dtype == SB_BF16 && !(rows && kernel_row_if_any(rows, x->device, SB_BF16));
}

sb_tensor *call_widened(const char *who, sb_tensor *x)
{
    if (!x || !sb_dtype_is_real(x->dtype))
        return x;
    if (!tape_need(who) || !tensor_readable(who, x))
        return NULL;
    if (x->dtype != SB_BF16)
        return sb_fail("%s: an operand is of %s, another of bf16: dtypes differ", who,
                       sb_dtype_name(x->dtype));
    sb_tensor *wide = sb_cast(x, SB_F32);
    if (wide && wide->device == sb_device_cpu())
        wide->rounded = sb_tensor_retain(x);
    return wide;
}

/* Until backward reads it, a tensor is stored in bf16 alone. A view is left as it is. */
static void call_store_rounded(sb_tensor *wide)
{
    if (wide && wide->rounded && !wide->base && atomic_load(&wide->holders) == 1 &&
        tape_open()->mode == SB_RECORD)
        tensor_free_data(wide);
}

void call_store(int n, sb_tensor *const in[])
{
    for (int i = 0; i < n; i++)
        call_store_rounded(in[i]);
}

bool call_widen(const char *who, struct kernel_rows *rows, int n, sb_tensor *in[])
{
    for (int i = 0; i < n; i++)
        in[i] = twin_of(who, in[i]);
    if (!call_needs_f32(rows, in[0]))
        return false;
    for (int i = 0; i < n; i++)
        in[i] = call_widened(who, in[i]);
    return true;
}

sb_tensor *call_round(bool widened, sb_tensor *y)
{
    sb_tensor *rounded = widened && y ? sb_cast(y, SB_BF16) : NULL;
    if (!rounded)
        return widened ? NULL : y;
    rounded->origin = y->origin;
    if (y->device == sb_device_cpu() && !y->rounded) {
        y->rounded = sb_tensor_retain(rounded);
        call_store_rounded(y);
    }
    return rounded;
}

sb_node *call_begin(const sb_operation *operation, struct kernel_rows *rows, int inputs,
                    sb_tensor *const in[], int outputs, const void *options, size_t options_bytes)
{
    if (!call_needs_f32(rows, in[0]))
        return sb_node_new(operation, inputs, in, outputs, options, options_bytes);
    sb_tensor **wide = memory_new((size_t)inputs * sizeof *wide);
    if (!wide)
        return sb_fail("%s: out of memory", operation->name);
    memcpy(wide, in, (size_t)inputs * sizeof *wide);
    call_widen(operation->name, rows, inputs, wide);
    sb_node *node = sb_node_new(operation, inputs, wide, outputs, options, options_bytes);
    memory_free(wide);
    if (node)
        node->widened = true;
    return node;
}

sb_tensor *call_output(const sb_node *node, int i)
{
    if (node->widened)
        call_store(node->inputs, node->in);
    return call_round(node->widened, node->out[i]);
}

sb_tensor *call_end(const sb_node *node, bool ok)
{
    return ok ? call_output(node, 0) : NULL;
}

sb_tensor *call_zeros(const char *who, const sb_tensor *like, int rank, const int64_t *dim)
{
    sb_tensor *t = tensor_new(who, like->device, like->dtype, rank, dim);
    if (t)
        tensor_zero(t);
    return t ? sb_tape_own(t) : NULL;
}

sb_tensor *call_sums(const char *who, sb_tensor *t)
{
    const sb_dtype sums = dtype_of_sums(t->dtype);
    return sums == t->dtype ? sb_tensor_retain(t)
                            : tensor_new(who, t->device, sums, t->rank, t->dim);
}

bool call_add_gradient(const sb_node *node, const sb_tensor *gradient)
{
    sb_tensor *dx = sb_node_dx(node, 0);
    const struct slice_kernels *k = kernel_row(&slice_rows, dx);
    const struct runs all = {1, tensor_size(dx), 0, 0};
    if (!k)
        return false;
    return sb_node_fresh(node, 0)
               ? k->copy(sb_dtype_bytes(dx->dtype), all, gradient->data, dx->data)
               : k->add(all, gradient->data, dx->data);
}
