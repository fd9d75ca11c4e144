/*
 * The product by rows of float for many rows, on CUDA cores. A block computes SIDE rows of SIDE
 * columns of C, a thread EACH by EACH of these elements: it reads 16 numbers of shared memory for
 * 64 multiply-adds. While it multiplies DEPTH terms of each, cp.async loads the next ones.
 *
 * Parts and order of a sum are those of cuda/gemm_tile.cuh, and so are the bits.
 */
#include "cuda/gemm_tile.cuh"
#include "cuda/pack.cuh"
#include "cuda/row_group.cuh"
#include <tensor_core.cuh>

namespace
{

enum { SIDE = 128, DEPTH = 16, EACH = 8, ACROSS = SIDE / EACH };
static_assert(ACROSS * ACROSS == TILE_THREADS, "a thread has EACH by EACH elements of the tile");
static_assert(SUM_DEPTH % DEPTH == 0, "a part ends with a panel");

struct square_tile {
    enum { ROWS = SIDE, COLUMNS = SIDE };
};

typedef pack<float> four;

/* Rows of op(A) or columns of op(B), DEPTH terms of each. They are an odd multiple of 16 bytes
   apart, so that eight of them can be read together without bank conflicts. */
typedef float panel[SIDE][DEPTH + 4];

/*
 * Fills a panel, with the next DEPTH terms at each call and zeros beyond the last line and the last
 * term. cp.async copies four terms at a time if these are adjacent and aligned, and otherwise one.
 */
class loader
{
    const int64_t step, depth_step; /* to the next line, to the next term */
    const bool whole;
    const int lines; /* that exist */
    int64_t left;    /* terms */
    const float *from;

    __device__ void load_fours(panel &to) const
    {
        enum { FOURS = DEPTH / 4, LINES = TILE_THREADS / FOURS };
        const int line = threadIdx.x / FOURS, p = threadIdx.x % FOURS * 4;
#pragma unroll
        for (int first = 0; first < SIDE; first += LINES) {
            const int i = first + line;
            cp_async_if<16>(i < lines && p < left, &to[i][p], from + i * step + p);
        }
    }
    /* Adjacent threads read adjacent numbers. */
    __device__ void load_ones(panel &to) const
    {
        const bool across = step == 1;
#pragma unroll
        for (int first = 0; first < SIDE * DEPTH; first += TILE_THREADS) {
            const int e = first + threadIdx.x;
            const int i = across ? e % SIDE : e / DEPTH, p = across ? e / SIDE : e % DEPTH;
            cp_async_if<4>(i < lines && p < left, &to[i][p], from + i * step + p * depth_step);
        }
    }

  public:
    /* From line `first` of `count` on; x has k terms in each. `along`: lines are adjacent in x,
       instead of terms. */
    __device__ loader(const float *x, int64_t first, int64_t count, int64_t k, int64_t ld,
                      bool along)
        : step(along ? 1 : ld), depth_step(along ? ld : 1),
          whole(!along && (k | ld) % 4 == 0 && (uintptr_t)x % alignof(four) == 0),
          lines(count - first < SIDE ? (int)(count - first) : (int)SIDE), left(k),
          from(x + first * step)
    {
    }
    __device__ void load(panel &to)
    {
        if (whole)
            load_fours(to);
        else
            load_ones(to);
        from += DEPTH * depth_step;
        left -= DEPTH;
    }
};

/* A thread's elements of a tile, ACROSS rows and columns apart: a warp reads 4 adjacent rows and 8
   adjacent columns at a time. */
struct thread_sums {
    const int row, column; /* of the first one */
    float sum[EACH][EACH] = {}, part[EACH][EACH] = {};

    __device__ thread_sums()
        : row(threadIdx.x / (2 * WARP) * 4 + threadIdx.x % WARP / 8),
          column(threadIdx.x / WARP % 2 * 8 + threadIdx.x % 8)
    {
    }
    __device__ void add_terms(const panel &a, const panel &b)
    {
#pragma unroll
        for (int p = 0; p < DEPTH; p += 4) {
            four x[EACH];
            for (int i = 0; i < EACH; i++)
                x[i] = *reinterpret_cast<const four *>(&a[row + i * ACROSS][p]);
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                const four y = *reinterpret_cast<const four *>(&b[column + j * ACROSS][p]);
                for (int e = 0; e < 4; e++)
                    for (int i = 0; i < EACH; i++)
                        part[i][j] += x[i].of[e] * y.of[e];
            }
        }
    }
    __device__ void add_parts()
    {
#pragma unroll
        for (int e = 0; e < EACH * EACH; e++) {
            sum[e / EACH][e % EACH] += part[e / EACH][e % EACH];
            part[e / EACH][e % EACH] = 0;
        }
    }
    /* c, of which `rows` rows and `columns` columns exist, becomes the sums + beta c. */
    __device__ void store(int64_t rows, int64_t columns, float beta, float *c, int64_t ldc) const
    {
#pragma unroll
        for (int e = 0; e < EACH * EACH; e++) {
            const int64_t r = row + e / EACH * ACROSS, q = column + e % EACH * ACROSS;
            float *const to = c + r * ldc + q;
            if (r < rows && q < columns)
                *to = beta == 0 ? sum[e / EACH][e % EACH] : beta * *to + sum[e / EACH][e % EACH];
        }
    }
};

/* The tile of C from (row, column) on. */
__device__ void multiply_square(const by_row_arguments<float, float> &f, const float *a,
                                const float *b, float *c, int64_t row, int64_t column)
{
    SHARED_ALIGNED(16, panel, buffer, [2][2]);
    const gemm_shape &s = f.s;
    loader rows(a, row, s.m, s.k, s.lda, s.transpose_a);
    loader columns(b, column, s.n, s.k, s.ldb, !s.transpose_b);
    thread_sums sums;
    const auto load = [&](int to) {
        rows.load(buffer[to][0]);
        columns.load(buffer[to][1]);
        cp_async_commit();
    };
    __syncthreads(); /* the products of the block's last tile are done */
    load(0);
    int at = 0;
    for (int64_t p = 0; p < s.k; p += DEPTH) {
        cp_async_wait<0>();
        __syncthreads(); /* behind the products of the other buffer too */
        if (p + DEPTH < s.k)
            load(1 - at);
        sums.add_terms(buffer[at][0], buffer[at][1]);
        if ((p + DEPTH) % SUM_DEPTH == 0)
            sums.add_parts();
        at = 1 - at;
    }
    sums.add_parts();
    sums.store(s.m - row, s.n - column, f.beta, c + row * s.ldc + column, s.ldc);
}

__global__ void __launch_bounds__(TILE_THREADS) multiply_squares(by_row_arguments<float, float> f)
{
    for_each_tile<square_tile>(f,
                               [&](const float *a, const float *b, float *c, int64_t row,
                                   int64_t column) { multiply_square(f, a, b, c, row, column); });
}

} // namespace

bool gemm_float_takes(const by_row_arguments<float, float> &f)
{
    return f.s.m > SIDE / 2 && tiles_of<square_tile>(f.s, f.batch) >= ENOUGH_TILES;
}

bool gemm_float(const char *operation, const by_row_arguments<float, float> &f)
{
    LAUNCH(multiply_squares, dim3(tile_blocks<square_tile>(f.s, f.batch)), dim3(TILE_THREADS), 0,
           stream, f);
    return launched(operation);
}
