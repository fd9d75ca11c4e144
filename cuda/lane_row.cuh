/*
 * Rows in registers: a kernel reads a row once, and its passes use what its lanes hold. Lane l of a
 * group has the packs l, l + GROUP, ... of eight elements, which are 16 bytes or more, and which
 * dropout draws together.
 *
 *     const lane_row<GROUP> lane(group, C);
 *     auto x = load_row<real>(lane, row);
 *     lane.each([&](int n) { sum += x[n]; });      over the elements of this lane
 */
#ifndef SOFTBACK_CUDA_LANE_ROW_CUH
#define SOFTBACK_CUDA_LANE_ROW_CUH

#include "cuda/dropout_bits.cuh"
#include "cuda/pack.cuh"
#include "cuda/row_group.cuh"
#include <type_traits>

enum { ROW_PACK = DROPOUT_GROUP, LANE_PACKS = 4 };
enum { LONGEST_IN_REGISTERS = ROW_THREADS * LANE_PACKS * ROW_PACK };

/* Eight elements, in the type for arithmetic. */
template <class T> using row_pack = pack<real_of<T>, ROW_PACK>;

/* The elements of a row that belong to one lane. */
template <int GROUP, int PACKS = LANE_PACKS> struct lane_row {
    enum { STEP = GROUP * ROW_PACK, VALUES = PACKS * ROW_PACK };
    int first; /* the column of the lane's first element */
    int left;  /* the number of columns from there on */

    __device__ lane_row(const row_group<GROUP> &group, int64_t C)
        : first(group.lane * ROW_PACK), left((int)C - first)
    {
    }

    __device__ int column(int n) const
    {
        return first + n / ROW_PACK * STEP + n % ROW_PACK;
    }

    /* Calls f(n) for each of the lane's elements that the row has; n is a constant. */
    template <class F> __device__ void each(F f) const
    {
#pragma unroll
        for (int p = 0; p < PACKS; p++)
            if (p * STEP < left)
#pragma unroll
                for (int e = 0; e < ROW_PACK; e++)
                    if (p * STEP + e < left)
                        f(p * ROW_PACK + e);
    }
};

/* A number for each element of a lane_row, in registers. */
template <class T, int VALUES = LANE_PACKS *ROW_PACK> struct lane_values {
    T of[VALUES];

    __device__ T &operator[](int n)
    {
        return of[n];
    }
    __device__ const T &operator[](int n) const
    {
        return of[n];
    }
};

/* The lane's elements of the row x, converted to T; zeros beyond its end. */
template <class T, int GROUP, int PACKS, class Stored>
__device__ lane_values<T, PACKS * ROW_PACK> load_row(const lane_row<GROUP, PACKS> &lane,
                                                     const Stored *x)
{
    enum { STEP = lane_row<GROUP, PACKS>::STEP };
    lane_values<T, PACKS * ROW_PACK> values;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        typedef pack<T, ROW_PACK> loaded;
        const auto part = loaded::load(x + lane.first + p * STEP, lane.left - p * STEP);
#pragma unroll
        for (int e = 0; e < ROW_PACK; e++)
            values[p * ROW_PACK + e] = part.of[e];
    }
    return values;
}

/* dx += values, or dx = values if it is fresh. */
template <class T, int GROUP, int PACKS, class Stored>
__device__ void add_row(const lane_row<GROUP, PACKS> &lane,
                        const lane_values<T, PACKS * ROW_PACK> &values, bool fresh, Stored *dx)
{
    enum { STEP = lane_row<GROUP, PACKS>::STEP };
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        pack<T, ROW_PACK> part;
#pragma unroll
        for (int e = 0; e < ROW_PACK; e++)
            part.of[e] = values[p * ROW_PACK + e];
        part.add_to(dx + lane.first + p * STEP, fresh, lane.left - p * STEP);
    }
}

template <class T, int GROUP, int PACKS, class Stored>
__device__ void store_row(const lane_row<GROUP, PACKS> &lane,
                          const lane_values<T, PACKS * ROW_PACK> &values, Stored *y)
{
    add_row(lane, values, true, y);
}

/* A one bit for each of the lane's elements that dropout keeps; the row begins at element `start`
   of the tensor. Not unrolled: one copy of Philox. */
template <int GROUP, int PACKS>
__device__ uint32_t lane_stay(const lane_row<GROUP, PACKS> &lane, const dropout &call,
                              int64_t start)
{
    static_assert(PACKS * ROW_PACK <= 32, "a bit for each element");
    enum { STEP = lane_row<GROUP, PACKS>::STEP };
    uint32_t stay = 0;
    if (call.threshold == 0)
        return ~stay;
#pragma unroll 1
    for (int p = 0; p < PACKS && p * STEP < lane.left; p++)
        stay |= staying_here(call, start + lane.first + p * STEP, lane.left - p * STEP)
                << p * ROW_PACK;
    return stay;
}

/*
 * Sums over the groups of a block, in order: `to` (C) receives the sum of all groups' `values`. The
 * groups of a warp are added by shuffles, then the warps through shared memory. All threads of the
 * block must call it.
 */
template <class T, int GROUP, int PACKS>
__device__ void store_block_sum(const lane_row<GROUP, PACKS> &lane,
                                lane_values<T, PACKS * ROW_PACK> values, int C, T *to)
{
    if (GROUP == ROW_THREADS) {
        store_row(lane, values, to);
        return;
    }
    enum { VALUES = PACKS * ROW_PACK, WARPS = ROW_THREADS / WARP, STEP = GROUP * ROW_PACK };
    SHARED(T, total, [VALUES * (GROUP < WARP ? (int)GROUP : (int)WARP)]);
    const int thread = threadIdx.x % WARP;
#pragma unroll
    for (int n = 0; n < VALUES; n++)
        for (int distance = GROUP; distance < WARP; distance *= 2)
            values[n] += __shfl_xor_sync(0xffffffffu, values[n], distance);
    for (int warp = 0; warp < WARPS; warp++) {
        if ((int)threadIdx.x / WARP == warp && thread < GROUP)
#pragma unroll
            for (int n = 0; n < VALUES; n++)
                total[n * GROUP + thread] = (warp ? total[n * GROUP + thread] : 0) + values[n];
        __syncthreads();
    }
    for (int c = threadIdx.x; c < C; c += ROW_THREADS) {
        const int n = c / STEP * ROW_PACK + c % ROW_PACK;
        to[c] = total[n * GROUP + c % STEP / ROW_PACK];
    }
    __syncthreads(); /* before `total` is written again */
}

/* Calls launch(group, blocks) with the number of blocks and the smallest group that holds a row in
   registers, or that of a block for longer rows. No call without rows, since an empty grid is an
   error. */
template <class Launch> void with_row_group(int64_t rows, int64_t C, Launch launch)
{
    enum { VALUES = LANE_PACKS * ROW_PACK };
    if (rows > 0 && C <= QUARTER_WARP * VALUES)
        launch(std::integral_constant<int, QUARTER_WARP>(), dim3(row_blocks<QUARTER_WARP>(rows)));
    else if (rows > 0 && C <= WARP * VALUES)
        launch(std::integral_constant<int, WARP>(), dim3(row_blocks<WARP>(rows)));
    else if (rows > 0)
        launch(std::integral_constant<int, ROW_THREADS>(), dim3(row_blocks<ROW_THREADS>(rows)));
}

/* The longest row of which a kernel for slabs of rows keeps sums in registers too. */
template <class T>
constexpr int64_t LONGEST_IN_SLABS = LONGEST_IN_REGISTERS / (sizeof(real_of<T>) / sizeof(float));

/* Calls launch(group, packs) with the smallest group and number of packs that hold such a row. */
template <class T, class Launch> void with_slab_group(int64_t C, Launch launch)
{
    constexpr bool most = LONGEST_IN_SLABS<T> == LONGEST_IN_REGISTERS;
    const std::integral_constant<int, 1> one;
    const std::integral_constant<int, 2> two;
    const std::integral_constant<int, most ? LANE_PACKS : 2> four;
    const std::integral_constant<int, QUARTER_WARP> quarter;
    const std::integral_constant<int, WARP> warp;
    const std::integral_constant<int, ROW_THREADS> block;
    if (C <= QUARTER_WARP * ROW_PACK)
        launch(quarter, one);
    else if (C <= WARP * ROW_PACK)
        launch(warp, one);
    else if (C <= WARP * ROW_PACK * 2)
        launch(warp, two);
    else if (most && C <= WARP * ROW_PACK * LANE_PACKS)
        launch(warp, four);
    else if (C <= ROW_THREADS * ROW_PACK * 2)
        launch(block, two);
    else
        launch(block, four);
}

#endif
