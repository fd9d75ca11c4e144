/* Philox4x32-10 (tensor/random.h): four words of 32 random bits for each counter and key. */
#ifndef SOFTBACK_TENSOR_PHILOX_H
#define SOFTBACK_TENSOR_PHILOX_H

#include <stdint.h>

/* The four words at counter (index, position) under key seed. */
struct philox {
    uint32_t word[4];
};
static inline struct philox philox(uint64_t seed, uint64_t position, uint64_t index)
{
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)position, c3 = (uint32_t)(position >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c0 = n0;
        c1 = (uint32_t)p1;
        c2 = n2;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (struct philox){{c0, c1, c2, c3}};
}

#endif
