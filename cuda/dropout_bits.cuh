/*
 * The random bits of dropout, as in ops/cpu/dropout_bits.h: 16 for each element, eight elements
 * from each Philox counter. Element e of the unsharded tensor has the bits of counter (e / 8,
 * position): word (e % 8) / 2, the low half first. Counters and keys are the same as in cuRAND
 * (tensor/random.h).
 */
#ifndef SOFTBACK_CUDA_DROPOUT_BITS_CUH
#define SOFTBACK_CUDA_DROPOUT_BITS_CUH

#include "cuda/device.cuh"
#include "ops/dropout.h"
#include <curand_philox4x32_x.h>

enum { DROPOUT_GROUP = 8 }; /* the elements of a counter */

/* The bits of the unsharded elements 8 group .. 8 group + 7. */
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

    /* The bits of element e = 0..7 of the group. Selecting instead of indexing keeps the words in
       registers. */
    __device__ uint32_t of(int e) const
    {
        const uint32_t low = e & 2 ? word.y : word.x, high = e & 2 ? word.w : word.z;
        return (e & 4 ? high : low) >> (e & 1 ? 16 : 0) & 0xffff;
    }

    /* A one bit for each element that is kept. */
    __device__ uint32_t staying(const dropout &call) const
    {
        uint32_t stay = 0;
        for (int e = 0; e < DROPOUT_GROUP; e++)
            stay |= (of(e) >= call.threshold ? 1u : 0u) << e;
        return stay;
    }
};

/* A one bit for each kept element of the n unsharded elements from `first` on; n <= 8. */
__device__ inline uint32_t staying_from(const dropout &call, int64_t first, int64_t n)
{
    const int skip = (int)(first % DROPOUT_GROUP);
    uint32_t stay = dropout_group(call, (uint64_t)(first / DROPOUT_GROUP)).staying(call);
    if (skip + n > DROPOUT_GROUP)
        stay |= dropout_group(call, (uint64_t)(first / DROPOUT_GROUP + 1)).staying(call)
                << DROPOUT_GROUP;
    return stay >> skip & ((1u << n) - 1);
}

/* The same for up to eight elements of a row from j on, a multiple of 8; `start` is the position of
   the row within the unsharded tensor. */
__device__ inline uint32_t staying_in_row(const dropout &call, int64_t start, int64_t j)
{
    if (call.place.flat)
        return dropout_group(call, (uint64_t)(start + j) / DROPOUT_GROUP).staying(call);
    uint32_t stay = 0;
    const int64_t left = call.place.axis[3].here - j;
    const int64_t end = left < DROPOUT_GROUP ? left : (int64_t)DROPOUT_GROUP;
#pragma unroll 1
    for (int64_t e = 0, n; e < end; e += n) {
        n = end - e;
        const int64_t first = start + place_in_row(&call.place, j + e, &n);
        stay |= staying_from(call, first, n) << e;
    }
    return stay;
}

/* The same for up to eight of this rank's elements from e on; `left` elements remain. */
__device__ inline uint32_t staying_here(const dropout &call, int64_t e, int64_t left)
{
    uint32_t stay = 0;
    const int64_t end = left < DROPOUT_GROUP ? left : (int64_t)DROPOUT_GROUP;
    for (int64_t at = 0, n; at < end; at += n) {
        n = end - at;
        const int64_t first = place_of_element(&call.place, e + at, &n);
        stay |= staying_from(call, first, n) << at;
    }
    return stay;
}

#endif
