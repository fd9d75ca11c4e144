/* Rows of bf16, which kernels compute in f32 and round once. */
#ifndef SOFTBACK_OPS_CPU_BF16_H
#define SOFTBACK_OPS_CPU_BF16_H

#include "ops/cpu/real.h"
#include "tensor/dtype.h"

static inline void bf16_widen(int64_t n, const uint16_t *restrict x, real *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = sb_bf16_widen(x[i]);
}

static inline void bf16_round(int64_t n, const real *restrict x, uint16_t *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = sb_bf16_round((float)x[i]);
}

/* A gradient: x, rounded, or what y holds plus x. */
static inline void bf16_add(int64_t n, const real *restrict x, bool fresh, uint16_t *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = sb_bf16_round(fresh ? (float)x[i] : sb_bf16_widen(y[i]) + (float)x[i]);
}

#endif
