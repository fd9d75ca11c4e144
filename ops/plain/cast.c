#include "ops/cast.h"
#include "ops/plain/real.h"

/* Element i of x, exactly: a double holds all that the others do. */
static double element(sb_dtype from, const void *x, int64_t i)
{
    switch (from) {
    case SB_F32:
        return (double)((const float *)x)[i];
    case SB_F64:
        return ((const double *)x)[i];
    case SB_DUAL: /* its value */
        return ((const double *)x)[2 * i];
    case SB_BF16:
        return (double)sb_bf16_widen(((const uint16_t *)x)[i]);
    case SB_I32:
        return ((const int32_t *)x)[i];
    case SB_BOOL:
    default:
        return ((const uint8_t *)x)[i];
    }
}

/* y = x in another dtype; backward is the same, dx = dy cast back */
static bool cast_to_real(sb_dtype from, bool fresh, int64_t n, const void *x,
                         void *y_)
{
    real *y = y_;
    for (int64_t i = 0; i < n; i++) {
        const real added = from == SB_DUAL
                               ? ((const real *)x)[i] /* y is dual too */
                               : (real)element(from, x, i);
        y[i] = fresh ? added : y[i] + added; /* -0 stays */
    }
    return true;
}

/* A sum is rounded once. */
static bool cast_to_bf16(sb_dtype from, bool fresh, int64_t n, const void *x,
                         void *y_)
{
    uint16_t *y = y_;
    for (int64_t i = 0; i < n; i++) {
        const double added = element(from, x, i);
        y[i] = sb_bf16_round_double(
            fresh ? added : (double)sb_bf16_widen(y[i]) + added);
    }
    return true;
}

/* Cut towards zero; what lies outside becomes the nearest that an i32 holds,
   NaN becomes 0. */
static int32_t whole(double x)
{
    if (isnan(x))
        return 0;
    return x >= INT32_MAX ? INT32_MAX : x <= INT32_MIN ? INT32_MIN : (int32_t)x;
}

/* y = x in an integer, or whether x is not 0 */
static bool cast_to_whole(sb_dtype from, sb_dtype to, int64_t n, const void *x,
                          void *y)
{
    for (int64_t i = 0; i < n; i++)
        if (to == SB_I32)
            ((int32_t *)y)[i] = whole(element(from, x, i));
        else
            ((uint8_t *)y)[i] = element(from, x, i) != 0;
    return true;
}

KERNELS(cast) = {cast_to_real, cast_to_bf16, cast_to_whole, NULL};
