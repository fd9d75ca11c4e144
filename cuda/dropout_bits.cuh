/*
 * The random bits of dropout, as in ops/cpu/dropout_bits.h: 16 for each element, eight elements
 * from each Philox counter. Element e of a call has the bits of counter (e / 8, position): word (e
 * % 8) / 2, the low half first. cuRAND's counters and keys are the library's (tensor/random.h).
 */
#ifndef SOFTBACK_CUDA_DROPOUT_BITS_CUH
#define SOFTBACK_CUDA_DROPOUT_BITS_CUH

#include "cuda/device.cuh"
#include "ops/dropout.h"
#include <curand_philox4x32_x.h>

enum { DROPOUT_GROUP = 8 }; /* the elements of a counter */

/* The bits of the elements 8 group .. 8 group + 7 of a call. */
struct dropout_group {
    uint4 word;

    __device__ dropout_group(const dropout &call, uint64_t group)
    {
        const uint2 key = {(uint32_t)call.seed, (uint32_t)(call.seed >> 32)};
        const uint64_t position = call.position + (call.offset ? *call.offset : 0);
        const uint4 counter = {(uint32_t)group, (uint32_t)(group >> 32), (uint32_t)position,
                               (uint32_t)(position >> 32)};
        word = curand_Philox4x32_10(counter, key);
    }

    /* Those of element e = 0..7 of them. Choosing, not indexing, keeps the words in registers. */
    __device__ uint32_t of(int e) const
    {
        const uint32_t low = e & 2 ? word.y : word.x, high = e & 2 ? word.w : word.z;
        return (e & 4 ? high : low) >> (e & 1 ? 16 : 0) & 0xffff;
    }
};

#endif
