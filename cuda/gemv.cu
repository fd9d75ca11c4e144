/*
 * The product by rows for few rows, C = A B' + beta C in float: reading B takes most of the time. A
 * block computes 8 rows of 32 columns. Each warp sums one part of SUM_DEPTH terms at a time, with a
 * column for each lane, and starts all its loads of B before it multiplies; then the parts of an
 * element are added in order. Parts and order are those of cuda/gemm_tile.cuh, and so are the bits.
 */
#include "cuda/gemm_tile.cuh"
#include "cuda/pack.cuh"
#include "cuda/row_group.cuh"

namespace
{

enum { ROWS = strip_tile::ROWS, COLUMNS = strip_tile::COLUMNS, WARPS = TILE_THREADS / WARP };
static_assert(COLUMNS == (int)WARP && ROWS == (int)WARPS, "a thread has one element of the sums");

typedef pack<float> four;

/* The terms of a pass over k: of the part of each warp, the numbers of each row. */
typedef float row_terms[WARPS][ROWS][SUM_DEPTH];

__device__ four load_four(const float *x)
{
    return *reinterpret_cast<const four *>(x);
}

/* Loads the terms of all warps, with zeros beyond the last row and the last term. */
__device__ void load_terms(row_terms &terms, const float *a, int64_t lda, int64_t rows,
                           int64_t left)
{
    enum { ACROSS = WARPS * SUM_DEPTH / 4 };
#pragma unroll
    for (int i = 0; i < ROWS * ACROSS / TILE_THREADS; i++) {
        const int e = threadIdx.x + i * TILE_THREADS;
        const int row = e / ACROSS, p = e % ACROSS * 4;
        four *const to = reinterpret_cast<four *>(&terms[p / SUM_DEPTH][row][p % SUM_DEPTH]);
        *to = row < rows && p < left ? load_four(a + row * lda + p) : four::all(0);
    }
}

/* The terms of a part in one column, of which `left` exist; zeros for the others add nothing. */
struct column_terms {
    four of[SUM_DEPTH / 4];

    __device__ column_terms(const float *b, int64_t left)
    {
#pragma unroll
        for (int p = 0; p < SUM_DEPTH; p += 4)
            of[p / 4] = p < left ? load_four(b + p) : four::all(0);
    }
    __device__ void multiply(const float (&terms)[ROWS][SUM_DEPTH], float (&part)[ROWS]) const
    {
#pragma unroll
        for (int p = 0; p < SUM_DEPTH; p += 4)
#pragma unroll
            for (int row = 0; row < ROWS; row++) {
                const four x = load_four(&terms[row][p]);
                for (int e = 0; e < 4; e++)
                    part[row] += x.of[e] * of[p / 4].of[e];
            }
    }
};

/* The tile of C from (row, column) on. */
__device__ void multiply_strip(const by_row_arguments<float, float> &f, const float *a,
                               const float *b, float *c, int64_t row, int64_t column)
{
    SHARED_ALIGNED(16, float, terms, [WARPS][ROWS][SUM_DEPTH]);
    SHARED(float, parts, [WARPS][ROWS][COLUMNS]);
    const gemm_shape &s = f.s;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float sum = 0; /* of row `warp` and column `lane` */
    a += row * s.lda;
    b += (column + lane) * s.ldb;
    for (int64_t first = 0; first < s.k; first += WARPS * SUM_DEPTH) {
        const int64_t left = s.k - first, begin = warp * SUM_DEPTH;
        const column_terms own(b + first + begin, column + lane < s.n ? left - begin : 0);
        float part[ROWS] = {};
        load_terms(terms, a + first, s.lda, s.m - row, left);
        __syncthreads(); /* behind all loads of B */
        own.multiply(terms[warp], part);
        for (int r = 0; r < ROWS; r++)
            parts[warp][r][lane] = part[r];
        __syncthreads();
        for (int p = 0; p < WARPS && p * SUM_DEPTH < left; p++)
            sum += parts[p][warp][lane];
    }
    float *const to = c + (row + warp) * s.ldc + column + lane;
    if (row + warp < s.m && column + lane < s.n)
        *to = f.beta == 0 ? sum : f.beta * *to + sum;
}

__global__ void __launch_bounds__(TILE_THREADS) multiply_strips(by_row_arguments<float, float> f)
{
    for_each_tile<strip_tile>(f, [&](const float *a, const float *b, float *c, int64_t row,
                                     int64_t column) { multiply_strip(f, a, b, c, row, column); });
}

} // namespace

bool gemv_takes(const by_row_arguments<float, float> &f)
{
    const gemm_shape &s = f.s;
    const int64_t strides = s.k | s.lda | s.ldb | f.batch.a | f.batch.b;
    return !s.transpose_a && s.transpose_b && strides % 4 == 0 &&
           ((uintptr_t)f.a | (uintptr_t)f.b) % alignof(four) == 0;
}

bool gemv(const char *operation, const by_row_arguments<float, float> &f)
{
    LAUNCH(multiply_strips, dim3(tile_blocks<strip_tile>(f.s, f.batch)), dim3(TILE_THREADS), 0,
           stream, f);
    return launched(operation);
}
