/*
 * Sums over rows, in slabs as ops/rows.h has them: one kernel leaves a partial sum for each slab
 * and column, a second one adds them up. A block has SLAB_COLUMNS columns, side by side so that a
 * warp reads a line of memory, and up to SLAB_LANES threads for each, whose sums are added in order
 * at the end. The shape alone decides who adds what.
 */
#ifndef SOFTBACK_CUDA_SLABS_CUH
#define SOFTBACK_CUDA_SLABS_CUH

#include "cuda/device.cuh"
#include "ops/kernel.h"
#include "ops/rows.h"

enum { SLAB_COLUMNS = 32, SLAB_LANES = 8 };

/* A block of columns, with no more threads than `terms` to add need. */
inline dim3 column_block(int64_t terms)
{
    return dim3(SLAB_COLUMNS, terms < 1            ? 1
                              : terms < SLAB_LANES ? (unsigned)terms
                                                   : (unsigned)SLAB_LANES);
}

KERNEL_INLINE int64_t column_blocks(int64_t C)
{
    return (C + SLAB_COLUMNS - 1) / SLAB_COLUMNS;
}

__device__ inline int64_t slab_end(int64_t slab, int64_t rows)
{
    return (slab + 1) * SLAB_ROWS < rows ? (slab + 1) * SLAB_ROWS : rows;
}

/* The sum over the threads of a column; its first thread gets it. All of the block must call it. */
template <class T> __device__ T column_sum(T value)
{
    SHARED(T, part, [SLAB_LANES][SLAB_COLUMNS]);
    part[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    for (unsigned lane = 1; threadIdx.y == 0 && lane < blockDim.y; lane++)
        value += part[lane][threadIdx.x];
    __syncthreads(); /* before `part` is written again */
    return value;
}

/* Where a sum over rows goes: added to it, or written while it is fresh. NULL: it is not wanted. */
template <class T> struct slab_sum {
    T *to;
    bool fresh;
};

/* SUMS sums of C columns each, side by side in `partial` (slabs, SUMS, C). */
template <class T, int SUMS> struct slab_sums {
    slab_sum<T> sum[SUMS];
};

/* One after the other, since two of them may go to the same place. */
template <class T, int SUMS>
__global__ void add_slab_columns(int64_t slabs, int64_t C, const real_of<T> *__restrict__ partial,
                                 slab_sums<T, SUMS> sums)
{
    for (int64_t block = blockIdx.x; block < column_blocks(C); block += gridDim.x) {
        const int64_t c = block * SLAB_COLUMNS + threadIdx.x;
        for (int i = 0; i < SUMS; i++) {
            const slab_sum<T> sum = sums.sum[i];
            real_of<T> total = 0;
            for (int64_t slab = threadIdx.y; c < C && slab < slabs; slab += blockDim.y)
                total += partial[(slab * SUMS + i) * C + c];
            total = column_sum(total);
            if (sum.to && c < C && threadIdx.y == 0)
                sum.to[c] = before(sum.fresh, sum.to[c]) + total;
        }
    }
}

/* Queues the adding up; without slabs, a fresh sum is zero. */
template <class T, int SUMS>
void add_slabs(int64_t slabs, int64_t C, const real_of<T> *partial, slab_sums<T, SUMS> sums)
{
    bool wanted = false;
    for (const slab_sum<T> &sum : sums.sum)
        wanted |= sum.to != nullptr;
    if (wanted && C > 0)
        LAUNCH((add_slab_columns<T, SUMS>), dim3(blocks_for(column_blocks(C), 1)),
               column_block(slabs), 0, stream, slabs, C, partial, sums);
}

#endif
