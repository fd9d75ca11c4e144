/* Vectors of the width that a set of kernels is compiled for. */
#ifndef SOFTBACK_OPS_CPU_VECTOR_H
#define SOFTBACK_OPS_CPU_VECTOR_H

#include "ops/cpu/real.h"

#define UNROLLED static inline __attribute__((always_inline))

/* Unrolls a loop whose count is a constant once its function is inlined. clang does so unasked; a
   pragma makes it unroll before that, when the count is unknown, and sums stay in memory. */
#ifdef __clang__
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { LANES = VECTOR_BYTES / (int)sizeof(real) };

typedef real vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

#if REAL_IS_FLOAT
typedef int32_t real_bits;
#else
typedef int64_t real_bits;
#endif
typedef real_bits vector_bits __attribute__((vector_size(VECTOR_BYTES)));

static inline vector vector_load(const real *from)
{
    return *(const vector *)from;
}

static inline void vector_store(real *to, vector x)
{
    *(vector *)to = x;
}

static inline vector vector_zero(void)
{
    return (vector){0};
}

/* The sum of all lanes, halves first, in the same order everywhere. */
static inline real vector_sum(vector x)
{
    real lane[LANES];
    vector_store(lane, x);
#pragma GCC unroll 8
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

#endif
