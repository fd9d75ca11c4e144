/*
 * A group of threads that shares a row: part of a warp, a warp or a block, by the length of the
 * row. Sums use a tree of fixed shape, so that their bits depend only on that length.
 */
#ifndef SOFTBACK_CUDA_ROW_GROUP_CUH
#define SOFTBACK_CUDA_ROW_GROUP_CUH

#include "cuda/device.cuh"
#include <type_traits>

enum { QUARTER_WARP = 8, WARP = 32, ROW_THREADS = 256, SHORT_ROW = 1024 };

struct add {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
};
struct greater {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return real_max(a, b);
    }
};

/* A reduction over each LANES adjacent lanes of a warp; every lane gets the result. */
template <int LANES = WARP, class T, class Combine>
__device__ T warp_reduce(T value, Combine combine)
{
    const unsigned lanes = 0xffffffffu >> (WARP - LANES) << threadIdx.x % WARP / LANES * LANES;
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value = combine(value, __shfl_xor_sync(lanes, value, distance));
    return value;
}

/* GROUP is QUARTER_WARP, WARP or ROW_THREADS; a block has ROW_THREADS threads. */
template <int GROUP> struct row_group {
    enum { LANES = GROUP };
    int64_t row; /* of this group, from the grid */
    int lane;    /* of this thread in its group */

    __device__ row_group()
        : row_group(blockIdx.x * (int64_t)(ROW_THREADS / GROUP) + threadIdx.x / GROUP)
    {
    }
    explicit __device__ row_group(int64_t row) : row(row), lane(threadIdx.x % GROUP)
    {
    }

    /* A reduction over the group; every thread gets the result, and all must call it. */
    template <class T, class Combine> __device__ T reduce(T value, Combine combine) const
    {
        value = warp_reduce<(GROUP < WARP ? GROUP : WARP)>(value, combine);
        if (GROUP <= WARP)
            return value;
        SHARED(T, part, [ROW_THREADS / WARP]);
        if (lane % WARP == 0)
            part[lane / WARP] = value;
        __syncthreads();
        value = part[0];
        for (int warp = 1; warp < ROW_THREADS / WARP; warp++)
            value = combine(value, part[warp]);
        __syncthreads(); /* before `part` is written again */
        return value;
    }
    template <class T> __device__ T sum(T value) const
    {
        return reduce(value, add());
    }
    template <class T> __device__ T max(T value) const
    {
        return reduce(value, greater());
    }
};

/* The largest element of a row, ignoring NaN; -infinity for none. */
template <class T, int GROUP>
__device__ real_of<T> row_max(const row_group<GROUP> &group, int64_t C, const T *x)
{
    typedef real_of<T> real;
    real max = -(real)INFINITY;
    for (int64_t c = group.lane; c < C; c += GROUP)
        max = real_max(max, (real)x[c]);
    return group.max(max);
}

/* The sum of exp(x_c - shift). */
template <class T, int GROUP>
__device__ real_of<T> row_sum_exp(const row_group<GROUP> &group, int64_t C, const T *x,
                                  real_of<T> shift)
{
    real_of<T> sum = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        sum += real_exp((real_of<T>)x[c] - shift);
    return group.sum(sum);
}

template <int GROUP> unsigned row_blocks(int64_t rows)
{
    const int64_t in_block = ROW_THREADS / GROUP;
    return static_cast<unsigned>((rows + in_block - 1) / in_block);
}

/* Calls launch(group, blocks) with a warp for a short row, or a block for a longer one, and the
   number of blocks. No call without rows, since an empty grid is an error. */
template <class Launch> void with_warp_or_block(int64_t rows, int64_t C, Launch launch)
{
    if (rows > 0 && C <= SHORT_ROW)
        launch(std::integral_constant<int, WARP>(), dim3(row_blocks<WARP>(rows)));
    else if (rows > 0)
        launch(std::integral_constant<int, ROW_THREADS>(), dim3(row_blocks<ROW_THREADS>(rows)));
}

/* Queues kernel<T, threads of a row>(rows, C, ...) so. */
#define LAUNCH_ROWS(kernel, T, rows, C, ...)                                                       \
    with_warp_or_block(rows, C, [&](auto group, dim3 blocks) {                                     \
        LAUNCH((kernel<T, group()>), blocks, dim3(ROW_THREADS), 0, stream, rows, C, __VA_ARGS__);  \
    })

#endif
