/*
 * A group of threads that shares a column of a matrix, whose terms are not contiguous. A block has
 * ROW_THREADS / LANES adjacent columns, so that a warp reads whole cache lines. It has the
 * interface of row_group, so that one kernel serves both.
 */
#ifndef SOFTBACK_CUDA_COLUMN_GROUP_CUH
#define SOFTBACK_CUDA_COLUMN_GROUP_CUH

#include "cuda/row_group.cuh"

template <int THREADS_OF_COLUMN> struct column_group {
    enum { LANES = THREADS_OF_COLUMN, COLUMNS = ROW_THREADS / LANES };
    int64_t row; /* of this group, from the grid: the column */
    int lane;    /* of this thread in its group */

    __device__ column_group()
        : row(blockIdx.x * (int64_t)COLUMNS + threadIdx.x % COLUMNS), lane(threadIdx.x / COLUMNS)
    {
    }

    /* A reduction over the group, by halves; every thread of the group gets the result. All threads
       of the block must call it. */
    template <class T, class Combine> __device__ T reduce(T value, Combine combine) const
    {
        if (LANES == 1)
            return value;
        SHARED(T, part, [ROW_THREADS]);
        part[threadIdx.x] = value;
        __syncthreads();
        for (int half = LANES / 2; half > 0; half /= 2) {
            if (lane < half)
                part[threadIdx.x] = combine(part[threadIdx.x], part[threadIdx.x + half * COLUMNS]);
            __syncthreads();
        }
        value = part[threadIdx.x % COLUMNS];
        __syncthreads(); /* before `part` is written again */
        return value;
    }
    template <class T> __device__ T sum(T value) const
    {
        return reduce(value, add());
    }
};

template <class Group> struct group_kind {
    typedef Group type;
};

/* Calls run(group_kind<...>()) with the kind of group for `rows` results of `count` terms each.
   `along`: the terms of a result are contiguous; otherwise adjacent results are. */
template <class Run> void with_group(int64_t rows, int64_t count, bool along, Run run)
{
    const int64_t FEW = 32, PLENTY = 1 << 18; /* enough rows to occupy the device */
    if (along && count > SHORT_ROW)
        run(group_kind<row_group<ROW_THREADS>>());
    else if (along && count >= FEW / 2)
        run(group_kind<row_group<WARP>>());
    else if (along || count < FEW || rows >= PLENTY)
        run(group_kind<column_group<1>>());
    else if (rows >= FEW / 2)
        run(group_kind<column_group<8>>());
    else
        run(group_kind<column_group<64>>());
}

template <class Group> dim3 group_blocks(int64_t rows)
{
    const int64_t in_block = ROW_THREADS / Group::LANES;
    return dim3((unsigned)((rows + in_block - 1) / in_block));
}

/* Queues kernel<T, kind of group>(...) so. */
#define LAUNCH_GROUPS(kernel, T, rows, count, along, ...)                                          \
    with_group(rows, count, along, [&](auto kind) {                                                \
        using Group = typename decltype(kind)::type;                                               \
        LAUNCH((kernel<T, Group>), group_blocks<Group>(rows), dim3(ROW_THREADS), 0, stream,        \
               __VA_ARGS__);                                                                       \
    })

#endif
