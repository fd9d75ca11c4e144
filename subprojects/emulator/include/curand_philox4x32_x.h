/*
 * cuRAND's Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"):
 * curand_Philox4x32_10(counter, key) as in the real header of this name.
 */
#ifndef SOFTBACK_EMULATOR_CURAND_PHILOX4X32_X_H
#define SOFTBACK_EMULATOR_CURAND_PHILOX4X32_X_H

#include <cuda_runtime.h>

#define PHILOX_W32_0 (0x9E3779B9)
#define PHILOX_W32_1 (0xBB67AE85)
#define PHILOX_M4x32_0 (0xD2511F53)
#define PHILOX_M4x32_1 (0xCD9E8D57)

static inline uint4 _philox4x32round(uint4 counter, uint2 key)
{
    unsigned high0 = __umulhi(PHILOX_M4x32_0, counter.x), low0 = PHILOX_M4x32_0 * counter.x;
    unsigned high1 = __umulhi(PHILOX_M4x32_1, counter.z), low1 = PHILOX_M4x32_1 * counter.z;
    return {high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0};
}

static inline uint4 curand_Philox4x32_10(uint4 counter, uint2 key)
{
    for (int round = 0; round < 10; round++) {
        counter = _philox4x32round(counter, key);
        key.x += PHILOX_W32_0;
        key.y += PHILOX_W32_1;
    }
    return counter;
}

#endif
