/* Element types. Real types come first, because they index rows of kernels. */
#ifndef SOFTBACK_TENSOR_DTYPE_H
#define SOFTBACK_TENSOR_DTYPE_H

#include "error.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum {
    SB_F32,  /* float */
    SB_F64,  /* double */
    SB_BF16, /* bfloat16: the upper 16 bits of a float, with 8 bits of precision; for storage */
    SB_DUAL, /* sb_dual: a double and its tangent, for exact derivatives (derivative.h) */
    SB_I32,  /* int32_t, for ids */
    SB_BOOL, /* one byte, 0 or 1, for masks */
} sb_dtype;

enum { SB_DTYPES = 6, SB_REAL_DTYPES = 4 };

SB_API const char *sb_dtype_name(sb_dtype dtype); /* "f32", "f64", "bf16", "dual", "i32", "bool" */
SB_API size_t sb_dtype_bytes(sb_dtype dtype);     /* bytes of an element */
SB_API bool sb_dtype_is_real(sb_dtype dtype);     /* whether tensors of it can have a gradient */

/* Converts bf16, stored as uint16_t, to float (exact) and from float (round to nearest, ties to
   even; NaN stays NaN). */
static inline float sb_bf16_widen(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}
static inline uint16_t sb_bf16_round(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
/* The same from double, rounded once: the float between is cut towards zero, and its last bit set
   if anything was cut off (round to odd), so that it is on the same side of a tie. */
static inline uint16_t sb_bf16_round_double(double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    bits -= value > 0 ? narrow > value : narrow < value;
    bits |= narrow != value;
    memcpy(&narrow, &bits, sizeof narrow);
    return sb_bf16_round(narrow);
}

#endif
