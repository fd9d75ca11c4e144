/*
 * Sums over rows, in the slabs of ops/rows.h: one kernel computes a partial sum for each slab and
 * column, a second one adds them. A block has SLAB_COLUMNS adjacent columns, so that a warp reads a
 * cache line, and up to SLAB_LANES threads for each, whose sums are added in order at the end. The
 * shape alone determines the order of additions.
 */
#ifndef SOFTBACK_CUDA_SLABS_CUH
#define SOFTBACK_CUDA_SLABS_CUH

#include "cuda/column_group.cuh"
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

__device__ inline int64_t slab_end(int64_t slab, int64_t rows, int64_t in_slab = SLAB_ROWS)
{
    return (slab + 1) * in_slab < rows ? (slab + 1) * in_slab : rows;
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

/* A column for each group of threads. In sequence, since two sums may have the same target. */
template <class T, int SUMS, class Group>
__global__ void add_slab_columns(int64_t slabs, int64_t C, RESTRICTED(const real_of<T>) partial,
                                 slab_sums<T, SUMS> sums)
{
    const Group group;
    const int64_t c = group.row;
    for (int i = 0; i < SUMS; i++) {
        const slab_sum<T> sum = sums.sum[i];
        if (!sum.to)
            continue;
        real_of<T> total = 0;
#pragma unroll 8
        for (int64_t slab = group.lane; c < C && slab < slabs; slab += Group::LANES)
            total += partial[(slab * SUMS + i) * C + c];
        total = group.sum(total);
        if (c < C && group.lane == 0)
            sum.to[c] = before(sum.fresh, sum.to[c]) + total;
    }
}

/* Queues the addition of partial sums; without slabs, a fresh sum is zero. Many threads for a
   column, so that the few columns of a norm occupy the device; the shape determines how many. */
template <class T, int SUMS>
void add_slabs(int64_t slabs, int64_t C, const real_of<T> *partial, slab_sums<T, SUMS> sums)
{
    bool wanted = false;
    for (const slab_sum<T> &sum : sums.sum)
        wanted |= sum.to != nullptr;
    const auto launch = [&](auto kind) {
        using Group = typename decltype(kind)::type;
        LAUNCH((add_slab_columns<T, SUMS, Group>), group_blocks<Group>(C), dim3(ROW_THREADS), 0,
               stream, slabs, C, partial, sums);
    };
    if (wanted && C > 0 && slabs <= SLAB_LANES)
        launch(group_kind<column_group<1>>());
    else if (wanted && C > 0)
        launch(group_kind<column_group<32>>());
}

#endif
