/*
 * The product by rows on CUDA cores: a block computes a tile of C. It loads DEPTH columns of op(A)
 * and rows of op(B) at a time into shared memory; each thread has some elements of the tile.
 *
 * An element is the sum of its k terms in order, in partial sums of SUM_DEPTH terms that start at
 * 0, since shorter sums round less. Tiles of all shapes give the same bits, so the shape can be
 * chosen by size.
 */
#ifndef SOFTBACK_CUDA_GEMM_TILE_CUH
#define SOFTBACK_CUDA_GEMM_TILE_CUH

#include "cuda/gemm_by_row.cuh"

enum { SUM_DEPTH = 64, TILE_THREADS = 256 };

/* A wide tile computes most for each number that it reads; a strip is for few rows, where reading B
   takes most of the time. */
struct wide_tile {
    enum { ROWS = 64, COLUMNS = 64, DEPTH = 16, THREAD_ROWS = 4, THREAD_COLUMNS = 4 };
};
struct strip_tile {
    enum { ROWS = 8, COLUMNS = 32, DEPTH = 64, THREAD_ROWS = 1, THREAD_COLUMNS = 1 };
};

/* to[p][i] = from[i step + p depth_step] for i < width, p < depth; adjacent threads read adjacent
   elements. Rows of `to` have odd length, so that writing a column has no bank conflicts. */
template <int DEPTH, int WIDTH, class T>
__device__ void load_block(real_of<T> (&to)[DEPTH][WIDTH + 1], const T *from, int64_t width,
                           int64_t depth, int64_t step, int64_t depth_step)
{
    for (int e = threadIdx.x; e < DEPTH * WIDTH; e += blockDim.x) {
        const int i = depth_step == 1 ? e / DEPTH : e % WIDTH;
        const int p = depth_step == 1 ? e % DEPTH : e / WIDTH;
        if (i < width && p < depth)
            to[p][i] = from[i * step + p * depth_step];
    }
}

/* A thread's elements of a tile: as far apart as the tile has threads in that direction. */
template <class real, class Tile> struct tile_sums {
    enum {
        ROWS = Tile::THREAD_ROWS,
        COLUMNS = Tile::THREAD_COLUMNS,
        ROW_STEP = Tile::ROWS / ROWS,
        COLUMN_STEP = Tile::COLUMNS / COLUMNS
    };
    const int row, column; /* of the first one */
    real sum[ROWS][COLUMNS] = {}, part[ROWS][COLUMNS] = {};

    __device__ tile_sums() : row(threadIdx.x / COLUMN_STEP), column(threadIdx.x % COLUMN_STEP)
    {
    }
    __device__ void add_terms(const real (&a)[Tile::DEPTH][Tile::ROWS + 1],
                              const real (&b)[Tile::DEPTH][Tile::COLUMNS + 1], int depth)
    {
        for (int p = 0; p < depth; p++)
            for (int i = 0; i < ROWS; i++)
                for (int j = 0; j < COLUMNS; j++)
                    part[i][j] += a[p][row + i * ROW_STEP] * b[p][column + j * COLUMN_STEP];
    }
    __device__ void add_parts()
    {
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) {
                sum[i][j] += part[i][j];
                part[i][j] = 0;
            }
    }
    /* Stores the tile at c; `rows` rows and `columns` columns of it are inside C. */
    template <class C>
    __device__ void store(int64_t rows, int64_t columns, real beta, C *c, int64_t ldc) const
    {
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) {
                const int64_t r = row + i * ROW_STEP, q = column + j * COLUMN_STEP;
                C *to = c + r * ldc + q;
                if (r < rows && q < columns)
                    *to = beta == 0 ? sum[i][j] : beta * (real)*to + sum[i][j];
            }
    }
};

/* The tile of C from (row, column) on. */
template <class T, class C, class Tile>
__device__ void multiply_tile(const by_row_arguments<T, C> &f, const T *a, const T *b, C *c,
                              int64_t row, int64_t column)
{
    SHARED(real_of<T>, block_a, [Tile::DEPTH][Tile::ROWS + 1]);
    SHARED(real_of<T>, block_b, [Tile::DEPTH][Tile::COLUMNS + 1]);
    const gemm_shape &s = f.s;
    const int64_t step_a = s.transpose_a ? 1 : s.lda, depth_a = s.transpose_a ? s.lda : 1;
    const int64_t step_b = s.transpose_b ? s.ldb : 1, depth_b = s.transpose_b ? 1 : s.ldb;
    tile_sums<real_of<T>, Tile> sums;
    for (int64_t p = 0; p < s.k; p += Tile::DEPTH) {
        const int depth = s.k - p < Tile::DEPTH ? (int)(s.k - p) : (int)Tile::DEPTH;
        load_block<Tile::DEPTH, Tile::ROWS, T>(block_a, a + row * step_a + p * depth_a, s.m - row,
                                               depth, step_a, depth_a);
        load_block<Tile::DEPTH, Tile::COLUMNS, T>(block_b, b + column * step_b + p * depth_b,
                                                  s.n - column, depth, step_b, depth_b);
        __syncthreads();
        sums.add_terms(block_a, block_b, depth);
        if ((p + Tile::DEPTH) % SUM_DEPTH == 0 || p + Tile::DEPTH >= s.k)
            sums.add_parts();
        __syncthreads();
    }
    sums.store(s.m - row, s.n - column, f.beta, c + row * s.ldc + column, s.ldc);
}

template <class T, class C, class Tile> __global__ void multiply_by_row(by_row_arguments<T, C> f)
{
    for_each_tile<Tile>(f, [&](const T *a, const T *b, C *c, int64_t row, int64_t column) {
        multiply_tile<T, C, Tile>(f, a, b, c, row, column);
    });
}

#endif
