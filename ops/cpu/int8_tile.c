/*
 * The sums are exact, so all ways of adding give the same. This file is compiled once more for
 * AVX512-VNNI, which multiplies and adds a group of four in one instruction; SSE2 and what follows
 * it add pairs of 16-bit products.
 */
#include "ops/cpu/int8_tile.h"

#if REAL_IS_FLOAT
#if defined(__SSE2__)
#include <immintrin.h>
#endif

typedef int32_t sums __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef uint32_t groups __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

UNROLLED int32_t group_at(const int8_t *x)
{
    int32_t group;
    memcpy(&group, x, sizeof group);
    return group;
}

#ifdef __AVX512VNNI__
#define INT8_TILE INT8(int8_tile_native)

typedef groups factors;

UNROLLED factors factors_of_x(int32_t group)
{
    return (groups){0} + (uint32_t)group;
}

UNROLLED factors factors_of_weights(groups w)
{
    return w;
}

UNROLLED sums multiply_add(sums sum, factors w, factors x)
{
    return (sums)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
}
#else
#define INT8_TILE INT8(int8_tile)

#ifdef __SSE2__
/* The first and third of a group, and the second and fourth, each a pair of 16-bit numbers. */
typedef int16_t shorts __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef struct {
    shorts even, odd;
} factors;

UNROLLED factors factors_of_x(int32_t group)
{
    const shorts x = (shorts)((sums){0} + group);
    return (factors){x << 8 >> 8, x >> 8};
}

UNROLLED factors factors_of_weights(groups w)
{
    return (factors){(shorts)(w & 0x00ff00ffu), (shorts)(w >> 8 & 0x00ff00ffu)};
}

UNROLLED sums multiply_pairs(shorts w, shorts x)
{
#if VECTOR_BYTES == 64
    return (sums)_mm512_madd_epi16((__m512i)w, (__m512i)x);
#elif VECTOR_BYTES == 32
    return (sums)_mm256_madd_epi16((__m256i)w, (__m256i)x);
#else
    return (sums)_mm_madd_epi16((__m128i)w, (__m128i)x);
#endif
}

UNROLLED sums multiply_add(sums sum, factors w, factors x)
{
    return sum + multiply_pairs(w.even, x.even) + multiply_pairs(w.odd, x.odd);
}
#else
typedef struct {
    sums number[INT8_GROUP];
} factors;

UNROLLED factors factors_of_x(int32_t group)
{
    factors x;
#pragma GCC unroll 4
    for (int i = 0; i < INT8_GROUP; i++)
        x.number[i] = (sums){0} + (int8_t)((uint32_t)group >> 8 * i);
    return x;
}

UNROLLED factors factors_of_weights(groups w)
{
    factors y;
#pragma GCC unroll 4
    for (int i = 0; i < INT8_GROUP; i++)
        y.number[i] = (sums)(w >> 8 * i & 0xffu);
    return y;
}

UNROLLED sums multiply_add(sums sum, factors w, factors x)
{
#pragma GCC unroll 4
    for (int i = 0; i < INT8_GROUP; i++)
        sum += w.number[i] * x.number[i];
    return sum;
}
#endif
#endif

UNROLLED void tile(int rows, int vectors, const struct int8_tile *t)
{
    sums sum[INT8_ROWS][INT8_VECTORS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (sums){0};
    const uint8_t *weights = t->weights;
    for (int64_t g = 0; g < t->groups; g++, weights += vectors * VECTOR_BYTES) {
        factors w[INT8_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            w[v] = factors_of_weights(*(const groups *)(weights + v * VECTOR_BYTES));
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const factors x = factors_of_x(group_at(t->x + r * t->row_step + g * INT8_GROUP));
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[r][v] = multiply_add(sum[r][v], w[v], x);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            *(sums *)(t->sums + r * INT8_COLUMNS + v * INT8_LANES) = sum[r][v];
}

UNROLLED void tile_of(int vectors, const struct int8_tile *t, int64_t rows)
{
    switch (rows) {
    case 1:
        tile(1, vectors, t);
        break;
    case 2:
        tile(2, vectors, t);
        break;
    case 3:
        tile(3, vectors, t);
        break;
    case 4:
        tile(4, vectors, t);
        break;
    }
}

void INT8_TILE(const struct int8_tile *t, int64_t rows)
{
    switch (t->vectors) {
    case 1:
        tile_of(1, t, rows);
        break;
    case 2:
        tile_of(2, t, rows);
        break;
#if INT8_VECTORS == 4
    case 3:
        tile_of(3, t, rows);
        break;
    case 4:
        tile_of(4, t, rows);
        break;
#endif
    }
}
#endif
