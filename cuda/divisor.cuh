/* Fast division of indices by a kernel argument: a multiplication and a shift. */
#ifndef SOFTBACK_CUDA_DIVISOR_CUH
#define SOFTBACK_CUDA_DIVISOR_CUH

#include "cuda/device.cuh"

/*
 * For n < 2^31 and d <= 2^31, n / d is n m >> 32 + s with 2^(s - 1) < d <= 2^s and m = ceil(2^(32 +
 * s) / d) (Granlund and Montgomery 1994, "Division by invariant integers using multiplication"): m
 * d exceeds 2^(32 + s) by less than d, and so n m / 2^(32 + s) exceeds n / d by less than 1 / (2
 * d). Larger numbers use ordinary division.
 */
struct divisor {
    int64_t d;
    uint64_t m;
    int s;

    divisor(int64_t d = 1) : d(d), m(0), s(0)
    {
        while (s < 31 && (int64_t)1 << s < d)
            s++;
        if (0 < d && d <= (int64_t)1 << 31)
            m = (((uint64_t)1 << (32 + s)) + (uint64_t)d - 1) / (uint64_t)d;
    }
    __device__ int64_t quotient(int64_t n) const
    {
        return m && n < (int64_t)1 << 31 ? (int64_t)((uint64_t)n * m >> (32 + s)) : n / d;
    }
};

#endif
