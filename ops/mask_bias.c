/* Masks that come as numbers with -inf. */
#include "ops/check.h"
#include "ops/mask_terms.h"
#include "ops/ops.h"

/*
 * Of all numbers only -inf has relu(-b) = inf, whose inverse is 0; NaN stays NaN, which counts as
 * true. Inverses of 8, since 1 / b may be subnormal, and a device may take that for 0.
 */
static sb_tensor *mask_bias_allowed(sb_tensor *bias)
{
    sb_tensor *eight = tensor_new("mask_from_bias", sb_device_cpu(), bias->dtype, SB_SCALAR);
    if (eight)
        tensor_write_part(eight, 0, 1, &(double){8});
    eight = tensor_moved(eight, bias->device);
    if (!eight || !sb_tape_own(eight))
        return NULL;
    return sb_cast(sb_divide(eight, sb_relu(sb_negate(sb_detach(bias)))), SB_BOOL);
}

sb_mask *sb_mask_from_bias(sb_tensor *bias)
{
    const char *who = "mask_from_bias";
    if (!mask_may_be_made(who))
        return NULL;
    if (!bias)
        return fail_null(who, "bias");
    if (!tensor_readable(who, bias) || !check_real(who, "bias", bias))
        return NULL;
    sb_tensor *allowed = mask_bias_allowed(bias);
    return allowed ? sb_mask_allow(allowed) : NULL;
}
