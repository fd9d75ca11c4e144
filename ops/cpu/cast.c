#include "ops/cast.h"
#include "ops/cpu/real.h"

enum { BLOCK = 1024 };

static void cast_block_to_real(sb_dtype from, int64_t n, const void *x, real *restrict y)
{
    const float *f32 = x;
    const double *f64 = x;
    const uint16_t *bf16 = x;
    const int32_t *i32 = x;
    const uint8_t *boolean = x;
    switch (from) {
    case SB_F32:
        for (int64_t i = 0; i < n; i++)
            y[i] = (real)f32[i];
        break;
    case SB_F64:
        for (int64_t i = 0; i < n; i++)
            y[i] = (real)f64[i];
        break;
    case SB_BF16:
        for (int64_t i = 0; i < n; i++)
            y[i] = (real)sb_bf16_widen(bf16[i]);
        break;
    case SB_I32:
        for (int64_t i = 0; i < n; i++)
            y[i] = (real)i32[i];
        break;
    case SB_BOOL:
        for (int64_t i = 0; i < n; i++)
            y[i] = (real)boolean[i];
        break;
    case SB_DUAL: /* has plain kernels alone */
        break;
    }
}

static bool cast_to_real(sb_dtype from, bool fresh, int64_t n, const void *x, void *y_)
{
    real *y = y_;
    const size_t width = sb_dtype_bytes(from);
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t length = n - at < BLOCK ? n - at : BLOCK;
        real part[BLOCK];
        cast_block_to_real(from, length, (const char *)x + (size_t)at * width,
                           fresh ? y + at : part);
        for (int64_t i = 0; !fresh && i < length; i++)
            y[at + i] += part[i];
    }
    return true;
}

/* The same to bf16, of what float would round too. */
static void cast_wide_to_bf16(sb_dtype from, bool fresh, int64_t n, const void *x, uint16_t *y)
{
    const double *f64 = x;
    const int32_t *i32 = x;
    for (int64_t i = 0; i < n; i++) {
        const double added = from == SB_F64 ? f64[i] : (double)i32[i];
        y[i] = sb_bf16_round_double(fresh ? added : (double)sb_bf16_widen(y[i]) + added);
    }
}

/* Sums are rounded once. */
static bool cast_to_bf16(sb_dtype from, bool fresh, int64_t n, const void *x, void *y_)
{
    uint16_t *y = y_;
    const size_t width = sb_dtype_bytes(from);
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t length = n - at < BLOCK ? n - at : BLOCK;
        real part[BLOCK];
        if (from == SB_F64 || from == SB_I32) {
            cast_wide_to_bf16(from, fresh, length, (const char *)x + (size_t)at * width, y + at);
            continue;
        }
        cast_block_to_real(from, length, (const char *)x + (size_t)at * width, part);
        bf16_add(length, part, fresh, y + at);
    }
    return true;
}

/* Truncates towards zero; numbers out of range become the nearest i32, NaN becomes 0. */
static inline int32_t cast_whole(real x)
{
    const real limit = (real)2147483648.0;
    if (x != x)
        return 0;
    return x >= limit ? INT32_MAX : x <= -limit ? INT32_MIN : (int32_t)x;
}

static void cast_block_to_i32(sb_dtype from, int64_t n, const void *x, int32_t *restrict y)
{
    const real *floating = x;
    const uint8_t *boolean = x;
    for (int64_t i = 0; i < n; i++)
        y[i] = from == SB_BOOL ? boolean[i] : cast_whole(floating[i]);
}

static void cast_block_to_bool(sb_dtype from, int64_t n, const void *x, uint8_t *restrict y)
{
    const real *floating = x;
    const int32_t *i32 = x;
    for (int64_t i = 0; i < n; i++)
        y[i] = from == SB_I32 ? i32[i] != 0 : floating[i] != 0;
}

static bool cast_to_whole(sb_dtype from, sb_dtype to, int64_t n, const void *x_, void *y)
{
    const size_t width = sb_dtype_bytes(from);
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t length = n - at < BLOCK ? n - at : BLOCK;
        const char *x = (const char *)x_ + (size_t)at * width;
        if (to == SB_I32)
            cast_block_to_i32(from, length, x, (int32_t *)y + at);
        else
            cast_block_to_bool(from, length, x, (uint8_t *)y + at);
    }
    return true;
}

KERNELS(cast) = {cast_to_real, cast_to_bf16, cast_to_whole, NULL};
