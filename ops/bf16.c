#include "ops/bf16.h"
#include "autograd/node.h"
#include "ops/ops.h"

bool bf16_needs_f32(struct kernel_rows *rows, const sb_tensor *x)
{
    return x && x->dtype == SB_BF16 && !kernel_row_if_any(rows, x->device, SB_BF16);
}

sb_tensor *bf16_widened(const char *who, sb_tensor *x)
{
    if (!x || !sb_dtype_is_real(x->dtype))
        return x;
    if (!tape_need(who) || !tensor_readable(who, x))
        return NULL;
    if (x->dtype != SB_BF16)
        return sb_fail("%s: an operand is of %s, another of bf16: dtypes differ", who,
                       sb_dtype_name(x->dtype));
    return sb_cast(x, SB_F32);
}

sb_tensor *bf16_rounded(sb_tensor *y)
{
    return y ? sb_cast(y, SB_BF16) : NULL;
}
