#include "ops/cpu/gemm.h"
#include "ops/cpu/gemm_builtin.h"

/* Chains of multiply-adds on numbers that stay in registers: as many as a tile of C has sums. */
double CPU(gemm_peak)(int64_t rounds)
{
    enum { CHAINS = TILE_SUMS };
    volatile real start = (real)0.5, factor = (real)0.999;
    vector sum[CHAINS], x = vector_zero() + factor, y = vector_zero() + (1 - factor);
#pragma GCC unroll 24
    for (int i = 0; i < CHAINS; i++)
        sum[i] = vector_zero() + start;
    for (int64_t n = 0; n < rounds; n++)
#pragma GCC unroll 24
        for (int i = 0; i < CHAINS; i++)
            sum[i] = sum[i] * x + y;
#pragma GCC unroll 24
    for (int i = 1; i < CHAINS; i++)
        sum[0] += sum[i];
    start = vector_sum(sum[0]);
    return 2.0 * CHAINS * LANES * (double)rounds;
}
