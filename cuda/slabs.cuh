/*
 * Sums over rows, in the slabs of ops/rows.h: one kernel computes a partial sum for each slab and
 * column, a second one adds them. A block has SLAB_COLUMNS adjacent columns, so that a warp reads a
 * cache line, and up to SLAB_LANES threads for each, whose sums are added in order at the end. The
 * shape alone determines the order of additions.
 */
#ifndef SOFTBACK_CUDA_SLABS_CUH
#define SOFTBACK_CUDA_SLABS_CUH

#include "cuda/device.cuh"
#include "ops/kernel.h"
#include "ops/rows.h"

enum { SLAB_COLUMNS = 32, SLAB_LANES = 8 };

/* A block of columns, with no more threads than there are `terms`. */
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

/* The sum over the threads of a column; the first thread gets it. All threads of the block must
   call it. */
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

/* The target of a sum over rows: written if fresh, else added to. NULL: not needed. */
template <class T> struct slab_sum {
    T *to;
    bool fresh;
};

/* SUMS sums of C columns each, in `partial` (slabs, SUMS, C). */
template <class T, int SUMS> struct slab_sums {
    slab_sum<T> sum[SUMS];
};

/* In sequence, since two of them may have the same target. */
template <class T, int SUMS>
__global__ void add_slab_columns(int64_t slabs, int64_t C, RESTRICTED(const real_of<T>) partial,
                                 slab_sums<T, SUMS> sums)
{
    for (int64_t block = blockIdx.x; block < column_blocks(C); block += gridDim.x) {
        const int64_t c = block * SLAB_COLUMNS + threadIdx.x;
        for (int i = 0; i < SUMS; i++) {
            const slab_sum<T> sum = sums.sum[i];
            if (!sum.to)
                continue;
            real_of<T> total = 0;
            for (int64_t slab = threadIdx.y; c < C && slab < slabs; slab += blockDim.y)
                total += partial[(slab * SUMS + i) * C + c];
            total = column_sum(total);
            if (c < C && threadIdx.y == 0)
                sum.to[c] = before(sum.fresh, sum.to[c]) + total;
        }
    }
}

/* Queues the addition of partial sums; without slabs, a fresh sum is zero. */
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
