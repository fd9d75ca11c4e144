/* What the products by rows share, on CUDA cores (gemm_tile.cuh) and on tensor cores (gemm_mma.cu):
   their arguments, and the tiles of C. */
#ifndef SOFTBACK_CUDA_GEMM_BY_ROW_CUH
#define SOFTBACK_CUDA_GEMM_BY_ROW_CUH

#include "cuda/gemm.cuh"

template <class T, class C> struct by_row_arguments {
    gemm_shape s;
    gemm_batch batch;
    const T *a, *b;
    real_of<T> beta;
    C *c;
};

/* The fewest tiles that occupy a device; few in the emulator, so that tests reach all tiles. */
#ifdef SOFTBACK_EMULATOR
enum { ENOUGH_TILES = 4 };
#else
enum { ENOUGH_TILES = 128 };
#endif

template <class Tile> __host__ __device__ int64_t row_tiles(const gemm_shape &s)
{
    return (s.m + Tile::ROWS - 1) / Tile::ROWS;
}

template <class Tile> __host__ __device__ int64_t column_tiles(const gemm_shape &s)
{
    return (s.n + Tile::COLUMNS - 1) / Tile::COLUMNS;
}

template <class Tile> int64_t tiles_of(const gemm_shape &s, const gemm_batch &batch)
{
    return batch.count * row_tiles<Tile>(s) * column_tiles<Tile>(s);
}

template <class Tile> unsigned tile_blocks(const gemm_shape &s, const gemm_batch &batch)
{
    return blocks_for(tiles_of<Tile>(s, batch), 1);
}

/* The row and the column of tile number t. Blocks that run at the same time compute a few rows of
   tiles together, column by column, so that they find their operands in the cache. */
struct tile_place {
    int64_t row, column;

    __device__ tile_place(int64_t t, int64_t rows, int64_t columns)
    {
        enum { BAND = 8 };
        const int64_t first = t / (BAND * columns) * BAND, rest = t - first * columns;
        const int64_t height = rows - first < BAND ? rows - first : (int64_t)BAND;
        row = first + rest % height;
        column = rest / height;
    }
};

/* Calls multiply(a, b, c, row, column) for each tile of the block, with the matrices of its product
   and the place of the tile in C. */
template <class Tile, class T, class C, class Multiply>
__device__ void for_each_tile(const by_row_arguments<T, C> &f, Multiply multiply)
{
    const int64_t rows = row_tiles<Tile>(f.s), columns = column_tiles<Tile>(f.s);
    for (int64_t tile = blockIdx.x; tile < f.batch.count * rows * columns; tile += gridDim.x) {
        const int64_t product = tile / (rows * columns);
        const tile_place at(tile - product * rows * columns, rows, columns);
        multiply(f.a + product * f.batch.a, f.b + product * f.batch.b, f.c + product * f.batch.c,
                 at.row * Tile::ROWS, at.column * Tile::COLUMNS);
    }
}

/* C = op(A) op(B) + beta C of bf16, on tensor cores; C is not empty. */
template <class C>
bool gemm_on_tensor_cores(const char *operation, const by_row_arguments<bf16, C> &f);

/* Large tiles for many rows of float, with the bits of gemm_tile.cuh (gemm_float.cu). */
bool gemm_float_takes(const by_row_arguments<float, float> &f);
bool gemm_float(const char *operation, const by_row_arguments<float, float> &f);

/* The strips of gemm_tile.cuh for operands that can be read 16 bytes at a time along k, with the
   same bits (gemv.cu). */
bool gemv_takes(const by_row_arguments<float, float> &f);
bool gemv(const char *operation, const by_row_arguments<float, float> &f);

#endif
