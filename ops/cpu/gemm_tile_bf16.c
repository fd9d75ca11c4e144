/*
 * The micro-kernels of bf16: an element is a pair of numbers that are adjacent along k; their
 * products are added to an f32 sum, the first before the second. This file is compiled once more
 * for the AVX512-BF16 instruction, which treats subnormal numbers as zeros and rounds differently,
 * so the last bits of a sum may differ.
 */
#include "ops/cpu/gemm_builtin.h"

#if REAL_IS_FLOAT
#ifdef __AVX512BF16__
#include <immintrin.h>
#define TILES_BF16 CPU(gemm_tiles_bf16_native)

typedef __m512bh factor_type;

UNROLLED factor_type factor_of(real pair)
{
    int32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return (__m512bh)_mm512_set1_epi32(bits);
}

UNROLLED vector multiply_add(vector sum, factor_type x, vector y)
{
    return (vector)_mm512_dpbf16_ps((__m512)sum, x, (__m512bh)y);
}
#else
#define TILES_BF16 CPU(gemm_tiles_bf16)

typedef uint32_t pairs __attribute__((vector_size(VECTOR_BYTES)));
typedef struct {
    vector first, second;
} factor_type;

/* The first number is the lower half; a bf16 is the upper half of a float. */
UNROLLED factor_type widened(pairs x)
{
    return (factor_type){(vector)(x << 16), (vector)(x & 0xffff0000u)};
}

UNROLLED factor_type factor_of(real pair)
{
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return widened((pairs){0} + bits);
}

UNROLLED vector multiply_add(vector sum, factor_type x, vector y)
{
    const factor_type b = widened((pairs)y);
    sum += x.first * b.first;
    return sum + x.second * b.second;
}
#endif

#include "ops/cpu/gemm_tile.h"

void TILES_BF16(const struct tile *t, int64_t rows)
{
    tiles_of(t, rows);
}
#endif
