/*
 * Tiled attention on tensor cores, of bf16, and of float as 3xTF32 (cuda/attention_tf32.cuh): the
 * code that its kernels share.
 *
 * A block owns some queries, or some keys, and visits tiles of the other operand: while it computes
 * one tile, cp.async loads the next. Products use mma with sums in float. A warp owns 16 M
 * rows, and their scores with the columns of a tile stay in registers, in the layout of sums
 * (tensor_core.cuh): for lane = 4 group + part, element e of fragment (m, n) is row 16 m +
 * group + 8 (e / 2), column 8 n + 2 part + e % 2. Rounded to bf16, two such fragments are one
 * fragment a of the next product, without shuffles.
 *
 * Heads of up to 256 numbers are padded with zeros to 16, 32, 64, 96, 128 or 256, those of float up
 * to 128 to 32, 64 or 128. Every sum has a
 * fixed order, and no two blocks add to the same number, so the bits are reproducible.
 */
#ifndef SOFTBACK_CUDA_ATTENTION_MMA_CUH
#define SOFTBACK_CUDA_ATTENTION_MMA_CUH

#include "cuda/attention_tiles.cuh"
#include "cuda/fragments.cuh"
#include "cuda/pack.cuh"
#include <type_traits>

/* Of bf16, and of float, which needs twice the shared memory. */
enum { LARGEST_HEAD = 256, LARGEST_TF32_HEAD = 128 };

/* The largest shared memory of a block at compute capability 8.0; at 9.0 it is 227 KiB. Devices
   with less (8.6, 8.9) compute large heads without tensor cores. */
enum { MOST_SHARED = 163 << 10 };

/*
 * The shape of a block. Each warp has M fragments of 16 rows: with two, each operand that is read
 * from shared memory is used twice. The remaining registers and shared memory limit the width of
 * streamed tiles.
 */
template <int HEAD, int WARPS_OF_BLOCK, int FRAGMENTS, int STREAMED, class T = bf16,
          int BLOCKS_TOGETHER = 8 / WARPS_OF_BLOCK>
struct mma_shape {
    typedef T number; /* of the operands */
    enum {
        D = HEAD,
        WARPS = WARPS_OF_BLOCK,
        THREADS = WARP * WARPS,
        BLOCKS = BLOCKS_TOGETHER, /* per multiprocessor: 8 warps can use all 255 registers */
        M = FRAGMENTS,
        WARP_ROWS = 16 * M,
        ROWS = WARPS * WARP_ROWS, /* owned by the block */
        COLUMNS = STREAMED        /* of a tile */
    };
};

/* What registers allow on compute capability 8, and from 9 on: blocks of small heads together on a
   multiprocessor, and whether a product's loads may begin before the product before it. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
enum { SMALL_BLOCKS = 3, LOADS_OVERLAP = 0 };
#else
enum { SMALL_BLOCKS = 4, LOADS_OVERLAP = 1 };
#endif

/* Bits of masks take registers too, unless all pairs of a tile are kept. */
__device__ __forceinline__ void after_product(bool all)
{
    if (!LOADS_OVERLAP || !all)
        __syncwarp();
}

/* Whether cp.async can read rows of this length. */
template <class T> bool rows_aligned(const void *data, attention_strides s, int64_t length)
{
    enum { N = CHUNK<T> };
    return (uintptr_t)data % 16 == 0 && s.batch % N == 0 && s.row % N == 0 && s.head % N == 0 &&
           length % N == 0;
}

/* The chunks that a thread loads: one column of chunks, each STEP-th row. A head of 96 bf16 leaves
   the last 4 of 16 threads without work. */
template <int D, int THREADS, class T> struct chunks {
    enum { ACROSS = D == 96 ? 16 : D / CHUNK<T>, STEP = THREADS / ACROSS };
    const int row, column;

    __device__ chunks() : row(threadIdx.x / ACROSS), column(threadIdx.x % ACROSS * CHUNK<T>)
    {
    }
};

/* Starts loading ROWS rows, with zeros beyond their number and their length. The address advances
   from row to row: one addition for each chunk. */
template <int D, int ROWS, int THREADS, class T>
__device__ void load_aligned_rows(T *to, rows<const T> x, int64_t count, int64_t length)
{
    typedef chunks<D, THREADS, T> own_chunks;
    const own_chunks own;
    const int left = (int)smaller(count, ROWS) - own.row;
    const bool inside = own.column < length;
    const T *from = x.at + own.row * x.step + own.column;
    T *const place = to + own.row * PITCH<D, T> + own.column;
    if (D == 96 && own.column >= D)
        return;
#pragma unroll
    for (int r = 0; r < ROWS; r += own_chunks::STEP) {
        if (ROWS % own_chunks::STEP == 0 || own.row + r < ROWS)
            cp_async_if<16>(inside && r < left, place + r * PITCH<D, T>, from);
        from += own_chunks::STEP * x.step;
    }
}

/* The same number by number, for other rows. */
template <int D, int ROWS, int THREADS, class T>
__device__ void load_any_rows(T *to, rows<const T> x, int64_t count, int64_t length)
{
#pragma unroll 1
    for (int n = threadIdx.x; n < ROWS * D; n += THREADS) {
        const int r = n / D, c = n % D;
        to[r * PITCH<D, T> + c] = r < count && c < length ? x.at[r * x.step + c] : T(0.0f);
    }
}

template <int D, int ROWS, int THREADS, class T>
__device__ void load_rows(T *to, rows<const T> x, int64_t count, int64_t length, bool aligned)
{
    if (aligned)
        load_aligned_rows<D, ROWS, THREADS>(to, x, count, length);
    else
        load_any_rows<D, ROWS, THREADS>(to, x, count, length);
}

__device__ inline uint32_t bf16_pair(float low, float high)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

/* s = x y': a warp's rows of x, whose fragments load(a, chunk) gives, with 8 N rows of y. */
template <int D, int M, int N, class Load>
__device__ __forceinline__ void pair_products(Load load, const bf16 *y, int column,
                                              float (&s)[M][N][4])
{
#pragma unroll
    for (int n = 0; n < M * N * 4; n++)
        s[n / 4 / N][n / 4 % N][n % 4] = 0;
#pragma unroll 8
    for (int chunk = 0; chunk < D / 8; chunk += 2) {
        uint32_t a[M][4];
        load(a, chunk);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            uint32_t b[4];
            load_b<D>(b, y, column + 8 * n, chunk);
#pragma unroll
            for (int m = 0; m < M; m++)
                multiply_add(s[m][n], s[m][n + 1], a[m], b);
        }
    }
}

/* The same for rows of x in shared memory, from `row` on. */
template <int D, int M, int N>
__device__ void pair_products(const bf16 *x, int row, const bf16 *y, int column,
                              float (&s)[M][N][4])
{
    pair_products<D, M, N>(
        [&](uint32_t(&a)[M][4], int chunk) {
#pragma unroll
            for (int m = 0; m < M; m++)
                load_a<D>(a[m], x, row + 16 * m, chunk);
        },
        y, column, s);
}

/* A warp's 16 rows in registers; none unless it HOLDS them. */
template <int D, bool HOLDS> struct held_rows {
    __device__ void load(const bf16 *, int)
    {
    }
};
template <int D> struct held_rows<D, true> {
    uint32_t of[D / 16][4];

    __device__ void load(const bf16 *x, int row)
    {
#pragma unroll
        for (int n = 0; n < D / 16; n++)
            load_a<D>(of[n], x, row, 2 * n);
    }
    __device__ void operator()(uint32_t (&a)[1][4], int chunk) const
    {
        for (int e = 0; e < 4; e++)
            a[0][e] = of[chunk / 2][e];
    }
};

/* Two numbers; non-finite ones are replaced by 0. */
__device__ inline uint32_t finite_pair(uint32_t pair)
{
    return ((pair & 0x7f80u) == 0x7f80u ? 0 : pair & 0xffffu) |
           ((pair & 0x7f800000u) == 0x7f800000u ? 0 : pair & 0xffff0000u);
}

/* z += p y: a warp's pairs, rounded to bf16, times 8 N rows of y from `row` on. With `careful`,
   non-finite numbers in y are replaced by 0 (cuda/attention_mma_nonfinite.cuh). The branch for it
   is in the inner loop, which limits how many operands are in registers; a constant removes it. */
template <int D, int M, int N>
__device__ __forceinline__ void add_products(const float (&p)[M][N][4], const bf16 *y, int row,
                                             bool careful, float (&z)[M][D / 8][4])
{
#pragma unroll
    for (int n = 0; n < N; n += 2) {
        uint32_t a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
            for (int e = 0; e < 4; e++)
                a[m][e] = bf16_pair(p[m][n + e / 2][e % 2 * 2], p[m][n + e / 2][e % 2 * 2 + 1]);
#pragma unroll
        for (int d = 0; d < D / 8; d += 2) {
            uint32_t b[4];
            load_b_across<D>(b, y, row + 8 * n, d);
            for (int e = 0; careful && e < 4; e++)
                b[e] = finite_pair(b[e]);
#pragma unroll
            for (int m = 0; m < M; m++)
                multiply_add(z[m][d], z[m][d + 1], a[m], b);
        }
    }
}

template <int D, int M> __device__ void clear(float (&z)[M][D / 8][4])
{
#pragma unroll
    for (int n = 0; n < M * D / 2; n++)
        z[n / (D / 2)][n / 4 % (D / 8)][n % 4] = 0;
}

/* Stores a warp's rows times a factor: writes them if fresh, else adds them. `count` rows and
   `columns` columns exist. */
template <int D, int M, class T>
__device__ void store_rows(const float (&z)[M][D / 8][4], rows<T> to, int64_t count,
                           int64_t columns, bool fresh, float factor)
{
    typedef pack<float, 2> two;
    const int left = (int)columns - 2 * lane_part();
#pragma unroll
    for (int r = 0; r < 2 * M; r++) {
        const int row = 8 * r + lane_group();
        T *const line = to.at + row * to.step + 2 * lane_part();
        if (row >= count)
            continue;
#pragma unroll
        for (int d = 0; d < D / 8; d++) {
            two x = {{factor * z[r / 2][d][r % 2 * 2], factor * z[r / 2][d][r % 2 * 2 + 1]}};
            if (8 * d < left)
                x.add_to(line + 8 * d, fresh, left - 8 * d);
        }
    }
}

/* A row's sum, from the parts of its four lanes. */
__device__ inline float row_total(float sum)
{
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    return sum + __shfl_xor_sync(0xffffffffu, sum, 2);
}

/* Loads a warp's rows; zeros beyond their number and their length. */
template <int D, int M>
__device__ void load_sums(float (&z)[M][D / 8][4], rows<const float> from, int64_t count,
                          int64_t columns)
{
#pragma unroll
    for (int n = 0; n < 2 * M; n++)
#pragma unroll
        for (int d = 0; d < D / 8; d++) {
            const int row = 8 * n + lane_group(), c = 8 * d + 2 * lane_part();
            typedef pack<float, 2> two;
            const int64_t left = row < count ? columns - c : 0;
            const two x = two::load(from.at + row * from.step + c, left);
            z[n / 2][d][n % 2 * 2] = x.of[0];
            z[n / 2][d][n % 2 * 2 + 1] = x.of[1];
        }
}

/* Calls f(std::integral_constant<int, D>()) with the padded head size. */
template <class F> auto with_head_size(const attention &a, F f)
{
    const int64_t size = a.D > a.Dv ? a.D : a.Dv;
    if (size <= 16)
        return f(std::integral_constant<int, 16>());
    if (size <= 32)
        return f(std::integral_constant<int, 32>());
    if (size <= 64)
        return f(std::integral_constant<int, 64>());
    if (size <= 96)
        return f(std::integral_constant<int, 96>());
    if (size <= 128)
        return f(std::integral_constant<int, 128>());
    return f(std::integral_constant<int, LARGEST_HEAD>());
}

enum { LARGEST_SPLIT = 64 }; /* larger heads leave no registers for separate code */

/* Calls f(head size, general): only kernels for smaller heads have code of their own for calls
   without dropout and without `bias`. */
template <class F> auto with_shape(const attention &a, const void *bias, F f)
{
    return with_head_size(a, [&](auto D) {
        if constexpr (D() <= LARGEST_SPLIT)
            if (a.dropout.threshold == 0 && !bias)
                return f(D, std::false_type());
        return f(D, std::true_type());
    });
}

/* The same for float, with fewer sizes: f(head size). */
template <class F> auto with_tf32_size(const attention &a, F f)
{
    const int64_t size = a.D > a.Dv ? a.D : a.Dv;
    if (size <= 32)
        return f(std::integral_constant<int, 32>());
    if (size <= 64)
        return f(std::integral_constant<int, 64>());
    return f(std::integral_constant<int, LARGEST_TF32_HEAD>());
}

/* Whether a block of this kernel can have its memory on the device. Asked once: a process has one
   GPU. */
template <class Memory, class Kernel> bool set_memory(Kernel *kernel)
{
    static_assert(sizeof(Memory) <= MOST_SHARED, "too much shared memory");
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)sizeof(Memory)) == cudaSuccess)
        return true;
    cudaGetLastError(); /* not an error: other kernels need less */
    return false;
}

template <class Memory, auto kernel> bool block_fits()
{
    static const bool fits = set_memory<Memory>(kernel);
    return fits;
}

#endif
