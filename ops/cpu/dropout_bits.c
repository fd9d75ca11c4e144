/* Philox for several counters at a time, ten rounds in vector registers. */
#include "ops/cpu/dropout_bits.h"
#ifdef __SSE2__
#include <immintrin.h>
#endif

/* A register holds one counter word in the low half of each 64-bit lane. */
enum { COUNTERS = VECTOR_BYTES / 8 };

typedef uint64_t counters __attribute__((vector_size(VECTOR_BYTES), aligned(2), may_alias));

/* Interleaves the elements of two registers. */
#if VECTOR_BYTES == 64
#define FIRST_HALVES 0, 8, 1, 9, 2, 10, 3, 11
#define SECOND_HALVES 4, 12, 5, 13, 6, 14, 7, 15
#elif VECTOR_BYTES == 32
#define FIRST_HALVES 0, 4, 1, 5
#define SECOND_HALVES 2, 6, 3, 7
#else
#define FIRST_HALVES 0, 2
#define SECOND_HALVES 1, 3
#endif

/* The 64-bit products of the low halves. */
static inline counters bits_half_products(counters a, uint32_t b)
{
    const counters factor = (counters){0} + b;
#if VECTOR_BYTES == 64
    return (counters)_mm512_mul_epu32((__m512i)a, (__m512i)factor);
#elif VECTOR_BYTES == 32
    return (counters)_mm256_mul_epu32((__m256i)a, (__m256i)factor);
#elif defined(__SSE2__)
    return (counters)_mm_mul_epu32((__m128i)a, (__m128i)factor);
#else
    return (a & 0xffffffff) * factor;
#endif
}

/* tensor/random.h's philox, for several counters at a time. */
static inline void bits_philox_rounds(uint64_t key, counters c[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const counters p0 = bits_half_products(c[0], 0xD2511F53u),
                       p1 = bits_half_products(c[2], 0xCD9E8D57u);
        c[0] = (p1 >> 32) ^ c[1] ^ k0;
        c[1] = p1;
        c[2] = (p0 >> 32) ^ c[3] ^ k1;
        c[3] = p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

void CPU(dropout_bits)(const struct dropout *dropout, uint64_t group, int64_t groups, uint16_t *of)
{
    const counters zero = {0};
    for (int64_t g = 0; g < groups; g += COUNTERS) {
        counters index;
        for (int i = 0; i < COUNTERS; i++)
            index[i] = group + (uint64_t)(g + i);
        counters c[4] = {index, index >> 32, zero + dropout->position,
                         zero + (dropout->position >> 32)};
        bits_philox_rounds(dropout->seed, c);
        counters front = (c[0] & 0xffffffff) | c[1] << 32, back = (c[2] & 0xffffffff) | c[3] << 32;
        counters *to = (counters *)(void *)(of + 8 * g);
        to[0] = __builtin_shufflevector(front, back, FIRST_HALVES);
        to[1] = __builtin_shufflevector(front, back, SECOND_HALVES);
    }
}
