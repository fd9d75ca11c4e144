#include "tests/support/sample.h"

/* z += x y; y may be one number, or NULL for 1. Whole tensors are read, since a device is far away.
 */
static void add_product(sb_tensor *z, const sb_tensor *x, const sb_tensor *y)
{
    const int64_t n = sb_tensor_size(z);
    if (!z)
        return;
    double *sum = numbers_of(z), *a = numbers_of(x), *b = y ? numbers_of(y) : NULL;
    for (int64_t k = 0; k < n; k++)
        sum[k] += a[sb_tensor_size(x) == n ? k : 0] * (b ? b[k] : 1);
    sb_tensor_write(z, sum);
}

static bool times_backward(sb_node *node)
{
    for (int i = 0; i < 2; i++)
        add_product(sb_node_dx(node, i), sb_node_dy(node, 0), sb_node_input(node, 1 - i));
    return true;
}

static const sb_operation times_operation = {"times", "a b", times_backward, false, false};

sb_tensor *times(sb_tensor *a, sb_tensor *b)
{
    sb_node *node = sb_node_new(&times_operation, 2, (sb_tensor *[]){a, b}, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, a->dtype, a->rank, a->dim) : NULL;
    if (y && y->device->zero(y->data, tensor_bytes(y)))
        add_product(y, a, b);
    return y;
}

_Thread_local int64_t live_at[16];
_Thread_local int backwards;

static bool total_backward(sb_node *node)
{
    add_product(sb_node_dx(node, 0), sb_node_dy(node, 0), NULL);
    live_at[backwards++ % 16] = memory_in_use().live_bytes;
    return true;
}

static const sb_operation total_operation = {"total", "x", total_backward, false, false};

sb_tensor *total(sb_tensor *x)
{
    sb_node *node = sb_node_new(&total_operation, 1, &x, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, x->dtype, SB_SCALAR) : NULL;
    double sum = 0, *numbers = y ? numbers_of(x) : NULL;
    for (int64_t i = 0; y && i < sb_tensor_size(x); i++)
        sum += numbers[i];
    return y && sb_tensor_set(y, 0, sum) ? y : NULL;
}

static sb_tape left_open;

static bool pass_backward(sb_node *node)
{
    add_product(sb_node_dx(node, 0), sb_node_dy(node, 0), NULL);
    live_at[backwards++ % 16] = memory_in_use().live_bytes;
    switch (*(const enum fault *)sb_node_options(node)) {
    case NO_FAULT:
        return true;
    case RETURNS_FALSE:
        return false;
    case EXPLAINS:
        return sb_fail("pass: a planned failure");
    case FAILS_SILENTLY:
        sb_tensor_data(NULL);
        return true;
    case LEAVES_A_TAPE_OPEN:
        sb_tape_begin(&left_open, SB_RECORD);
        return true;
    }
    return true;
}

static const sb_operation pass_operation = {"pass", "x", pass_backward, false, false};

sb_tensor *pass(sb_tensor *x, enum fault fault)
{
    sb_node *node = sb_node_new(&pass_operation, 1, &x, 1, &fault, sizeof fault);
    sb_tensor *y = node ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    return y && x->device->copy(y->data, x->data, tensor_bytes(x)) ? y : NULL;
}

sb_tensor *leaf(double value)
{
    return sb_tensor_requires_grad(sb_tensor_full(SB_F64, SB_SHAPE(2), value));
}

bool every(const sb_tensor *t, double value)
{
    for (int64_t i = 0; i < sb_tensor_size(t); i++)
        if (sb_tensor_get(t, i) != value)
            return false;
    return t != NULL;
}
