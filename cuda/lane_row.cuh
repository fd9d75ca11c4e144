/*
 * Rows in registers: a kernel reads a row once, and its passes use what its lanes hold. Lane l of a
 * group has the packs l, l + GROUP, ... of eight elements, which are 16 bytes or more, and which
 * dropout draws together. WHOLE: the row consists of aligned packs, which are loaded as such; in
 * other rows the same lanes load the same elements one by one, so the bits of sums are the same.
 * PACKS packs for each lane may be more than the row has: the elements beyond its end are zeros, or
 * what the kernel chooses, so that most passes need no comparisons.
 *
 *     const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
 *     auto x = load_row<real>(lane, row);
 *     lane.each([&](int n) { sum += x[n]; });      over the elements of this lane
 *
 * A longer row is processed in pieces, each a row in registers (each_piece).
 */
#ifndef SOFTBACK_CUDA_LANE_ROW_CUH
#define SOFTBACK_CUDA_LANE_ROW_CUH

#include "cuda/dropout_bits.cuh"
#include "cuda/pack.cuh"
#include "cuda/row_group.cuh"
#include <string.h>
#include <tensor_core.cuh>
#include <type_traits>

enum { ROW_PACK = DROPOUT_GROUP, LANE_PACKS = 4, PIECE_PACKS = 2 };
enum { LONGEST_IN_REGISTERS = ROW_THREADS * LANE_PACKS * ROW_PACK };

/* The elements of a row that belong to one lane. */
template <int GROUP, int PACKS, bool WHOLE> struct lane_row {
    enum { STEP = GROUP * ROW_PACK, WIDTH = PACKS * STEP, VALUES = PACKS * ROW_PACK };
    int first; /* the column of the lane's first element */
    int left;  /* the number of columns from there on, within the group's registers */

    __device__ lane_row(const row_group<GROUP> &group, int64_t C)
        : first(group.lane * ROW_PACK), left((C < WIDTH ? (int)C : (int)WIDTH) - first)
    {
    }
    __device__ int column(int n) const
    {
        return first + n / ROW_PACK * STEP + n % ROW_PACK;
    }
    __device__ bool has_pack(int p) const
    {
        return p * STEP < left;
    }
    __device__ bool has(int n) const
    {
        return n / ROW_PACK * STEP + (WHOLE ? 0 : n % ROW_PACK) < left;
    }

    /* Calls f(n) for each of the lane's elements, and those beyond the end; n is a constant. */
    template <class F> __device__ void each(F f) const
    {
#pragma unroll
        for (int n = 0; n < VALUES; n++)
            f(n);
    }
    /* Only those that the row has. */
    template <class F> __device__ void each_inside(F f) const
    {
#pragma unroll
        for (int p = 0; p < PACKS; p++)
            if (has_pack(p))
#pragma unroll
                for (int e = 0; e < ROW_PACK; e++)
                    if (has(p * ROW_PACK + e))
                        f(p * ROW_PACK + e);
    }
};

/* A number for each element of a lane_row, in registers. */
template <class T, int VALUES> struct lane_values {
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

/* The same, as they are stored. */
template <class T, int VALUES> struct stored_values {
    T of[VALUES];

    __device__ T operator[](int n) const
    {
        return of[n];
    }
};

/* Two bf16 in each register, converted whenever they are read: one instruction, and without
   forget_parts the compiler would hold what it converted before. */
template <int VALUES> struct stored_values<bf16, VALUES> {
    uint32_t pair[VALUES / 2];

    __device__ float operator[](int n) const
    {
        uint32_t word = pair[n / 2];
        forget_parts(word);
        return __uint_as_float(n % 2 ? word & 0xffff0000u : word << 16);
    }
};

/* The lane's elements of the row x as they are stored; `beyond` after its end. All loads are queued
   before a value is used. */
template <int GROUP, int PACKS, bool WHOLE, class Stored>
__device__ stored_values<Stored, PACKS * ROW_PACK>
load_stored(const lane_row<GROUP, PACKS, WHOLE> &lane, const Stored *x, Stored beyond = Stored())
{
    typedef std::conditional_t<WHOLE, uint4, Stored> word;
    enum { TOGETHER = sizeof(word) / sizeof(Stored), WORDS = PACKS * ROW_PACK / TOGETHER };
    const auto fill = pack<Stored, TOGETHER>::all(beyond);
    word words[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        memcpy(&words[w], &fill, sizeof(word));
        if (lane.has(w * TOGETHER))
            words[w] = *reinterpret_cast<const word *>(x + lane.column(w * TOGETHER));
    }
    stored_values<Stored, PACKS * ROW_PACK> values;
    memcpy(&values, words, sizeof(words));
    return values;
}

/* The same, converted to T. */
template <class T, int GROUP, int PACKS, bool WHOLE, class Stored>
__device__ lane_values<T, PACKS * ROW_PACK> load_row(const lane_row<GROUP, PACKS, WHOLE> &lane,
                                                     const Stored *x, T beyond = T())
{
    const auto stored = load_stored(lane, x, (Stored)beyond);
    lane_values<T, PACKS * ROW_PACK> values;
    lane.each([&](int n) { values[n] = (T)stored[n]; });
    return values;
}

template <class T, int GROUP, int PACKS, bool WHOLE, class Stored>
__device__ void store_row(const lane_row<GROUP, PACKS, WHOLE> &lane,
                          const lane_values<T, PACKS * ROW_PACK> &values, Stored *y)
{
    typedef pack<Stored, WHOLE ? (int)ROW_PACK : 1> stored;
    enum { TOGETHER = sizeof(stored) / sizeof(Stored) };
#pragma unroll
    for (int n = 0; n < PACKS * ROW_PACK; n += TOGETHER) {
        stored part;
#pragma unroll
        for (int e = 0; e < TOGETHER; e++)
            part.of[e] = (Stored)values[n + e];
        if (lane.has(n))
            *reinterpret_cast<stored *>(y + lane.column(n)) = part;
    }
}

/* dx += values, or dx = values if it is fresh. */
template <class T, int GROUP, int PACKS, bool WHOLE, class Stored>
__device__ void add_row(const lane_row<GROUP, PACKS, WHOLE> &lane,
                        lane_values<T, PACKS * ROW_PACK> values, bool fresh, Stored *dx)
{
    if (!fresh) {
        const auto old = load_stored(lane, dx);
        lane.each([&](int n) { values[n] += (T)old[n]; });
    }
    store_row(lane, values, dx);
}

/* Whether rows of C elements consist of aligned packs in all these tensors. */
template <class... X> __host__ __device__ bool whole_packs(int64_t C, const X *...x)
{
    return C % ROW_PACK == 0 && (((uintptr_t)x % 16 == 0) && ...);
}

/* Calls f(lane, c) for each piece of a row of any length; it begins at column c. `aligned`: so are
   all rows of the tensors, and only its end is loaded one by one. */
template <int GROUP, class F>
__device__ void each_piece(const row_group<GROUP> &group, int64_t C, bool aligned, F f)
{
    typedef lane_row<GROUP, PIECE_PACKS, true> piece;
    typedef lane_row<GROUP, PIECE_PACKS, false> end_piece;
    const int64_t whole = aligned ? C / ROW_PACK * ROW_PACK : 0;
    for (int64_t c = 0; c < whole; c += piece::WIDTH)
        f(piece(group, whole - c), c);
    for (int64_t c = whole; c < C; c += end_piece::WIDTH)
        f(end_piece(group, C - c), c);
}

/* A one bit for each of the lane's elements that dropout keeps; the row begins at element `start`
   of the tensor. Not unrolled: one copy of Philox. */
template <int GROUP, int PACKS, bool WHOLE>
__device__ uint32_t lane_stay(const lane_row<GROUP, PACKS, WHOLE> &lane, const dropout &call,
                              int64_t start)
{
    static_assert(PACKS * ROW_PACK <= 32, "a bit for each element");
    uint32_t stay = 0;
    if (call.threshold == 0)
        return ~stay;
#pragma unroll 1
    for (int p = 0; p < PACKS && lane.has_pack(p); p++)
        stay |= staying_here(call, start + lane.column(p * ROW_PACK), lane.left - p * lane.STEP)
                << p * ROW_PACK;
    return stay;
}

/* The threads of a block that keeps sums over rows in registers. */
template <int GROUP> constexpr int SLAB_THREADS = GROUP < ROW_THREADS ? 128 : ROW_THREADS;

/* How many such blocks a multiprocessor shall run, by the registers of a thread: for each value the
   sums and three loaded elements (x, dy and gain), and 32 words more; at least 104, with Philox. Of
   kernels without sums three: each warp loads one row or two, and 24 warps keep the memory busy. */
template <class T, class K> constexpr int slab_blocks(int sums)
{
    const int sum = sizeof(real_of<T>), element = K::WHOLE ? (int)sizeof(T) : sum;
    const int values = K::PACKS * ROW_PACK * (sums * sum + 3 * element) / 4;
    const int registers = values < 72 ? 104 : values + 8 * sum;
    const int blocks = 65536 / (SLAB_THREADS<K::GROUP> * registers);
    return blocks < 1 ? 1 : blocks < 8 ? blocks : 8;
}
template <class T, bool WHOLE>
constexpr int ROW_BLOCKS = sizeof(T) > sizeof(float) ? 1
                           : WHOLE                   ? 3
                                                     : 2;

/*
 * Sums over the groups of a block, in order: `to` (C) receives the sum of all groups' `values`. The
 * groups of a warp are added by shuffles, then the warps through shared memory. All threads of the
 * block must call it.
 */
template <class T, int GROUP, int PACKS, bool WHOLE>
__device__ void store_block_sum(const lane_row<GROUP, PACKS, WHOLE> &lane,
                                lane_values<T, PACKS * ROW_PACK> values, int C, T *to)
{
    if (GROUP == ROW_THREADS) {
        store_row(lane, values, to);
        return;
    }
    enum { THREADS = SLAB_THREADS<GROUP>, WARPS = THREADS / WARP };
    enum { COLUMNS = GROUP < ROW_THREADS ? (int)lane_row<GROUP, PACKS, WHOLE>::WIDTH : 1 };
    SHARED_ALIGNED(16, T, part, [WARPS][COLUMNS]);
    lane.each([&](int n) {
        for (int distance = GROUP; distance < WARP; distance *= 2)
            values[n] += __shfl_xor_sync(0xffffffffu, values[n], distance);
    });
    if (threadIdx.x % WARP < GROUP)
        store_row(lane, values, part[threadIdx.x / WARP]);
    __syncthreads();
    for (int c = threadIdx.x; c < C; c += THREADS) {
        T total = part[0][c];
        for (int warp = 1; warp < WARPS; warp++)
            total += part[warp][c];
        to[c] = total;
    }
    __syncthreads(); /* before `part` is written again */
}

/* Calls launch(lane_kind<...>()) with the smallest number of packs for each lane that holds the
   row; one kernel for all rows that are not whole. */
template <int G, int P, bool W> struct lane_kind {
    enum { GROUP = G, PACKS = P };
    static constexpr bool WHOLE = W;
};

template <int GROUP, int MOST, int PACKS = 1, class Launch>
void with_packs(int64_t C, bool whole, Launch launch)
{
    if (!whole)
        return launch(lane_kind<GROUP, MOST, false>());
    if constexpr (PACKS < MOST)
        if (C > GROUP * ROW_PACK * PACKS)
            return with_packs<GROUP, MOST, (GROUP > WARP ? 2 * PACKS : PACKS + 1)>(C, whole,
                                                                                   launch);
    launch(lane_kind<GROUP, PACKS, true>());
}

/* The same with the smallest group too, for rows of at most MOST packs for each thread of a block.
   `whole`: the rows consist of aligned packs (whole_packs). */
template <int MOST = LANE_PACKS, class Launch>
void with_row_group(int64_t C, bool whole, Launch launch)
{
    if (C <= QUARTER_WARP * ROW_PACK)
        with_packs<QUARTER_WARP, 1>(C, whole, launch);
    else if (C <= WARP * ROW_PACK * MOST)
        with_packs<WARP, MOST>(C, whole, launch);
    else
        with_packs<ROW_THREADS, MOST>(C, whole, launch);
}

/* Queues in_registers<T, GROUP, PACKS, WHOLE>(rows, C, ...), or, for rows that are too long,
   long_rows<T>(C, ...) with a block for each. */
#define LAUNCH_IN_REGISTERS(long_rows, in_registers, T, rows, C, whole, ...)                       \
    do {                                                                                           \
        if (rows > 0 && C > LONGEST_IN_REGISTERS)                                                  \
            LAUNCH((long_rows<T>), dim3((unsigned)(rows)), dim3(ROW_THREADS), 0, stream, C,        \
                   __VA_ARGS__);                                                                   \
        else if (rows > 0)                                                                         \
            with_row_group(C, whole, [&](auto kind) {                                              \
                using K = decltype(kind);                                                          \
                LAUNCH((in_registers<T, K::GROUP, K::PACKS, K::WHOLE>),                            \
                       dim3(row_blocks<K::GROUP>(rows)), dim3(ROW_THREADS), 0, stream, rows, C,    \
                       __VA_ARGS__);                                                               \
            });                                                                                    \
    } while (0)

/* The packs of the longest row of which a kernel keeps sums in registers too, and its length. */
template <class T> constexpr int SLAB_PACKS = LANE_PACKS / (sizeof(real_of<T>) / sizeof(float));
template <class T> constexpr int64_t LONGEST_IN_SLABS = ROW_THREADS *SLAB_PACKS<T> *ROW_PACK;

#endif
