#include "cuda/broadcast.cuh"
#include "ops/shape.h"

namespace
{

/*
 * As on the CPU: if x and y have the same last axis, contiguous runs are copied. Otherwise tiles of
 * the two last axes are read in rows of x and written in rows of y, through shared memory.
 */
enum { TILE = 32, TILE_ROWS = 8 };

/* y[i][j] = x[j][i] for i < rows, j < columns, for each index tuple of the outer axes. */
struct turned {
    axes outer;
    int64_t rows, columns, x_stride, y_stride;
    divisor row_tiles, column_tiles;
};

template <class Word> __global__ void turn_tiles(turned t, bool add, const Word *x, Word *y)
{
    SHARED(Word, tile, [TILE][TILE + 1]); /* + 1: columns without bank conflicts */
    for (int64_t unit = blockIdx.x; unit < t.outer.size * t.row_tiles.d * t.column_tiles.d;
         unit += gridDim.x) {
        const int64_t above = t.column_tiles.quotient(unit), block = t.row_tiles.quotient(above);
        const int64_t j0 = (unit - above * t.column_tiles.d) * TILE;
        const int64_t i0 = (above - block * t.row_tiles.d) * TILE;
        const offsets at = t.outer.locate({}, block);
        for (int64_t j = j0 + threadIdx.y; j < j0 + TILE && j < t.columns; j += TILE_ROWS)
            if (i0 + threadIdx.x < t.rows)
                tile[j - j0][threadIdx.x] = x[at.of[1] + j * t.x_stride + i0 + threadIdx.x];
        __syncthreads();
        for (int64_t i = i0 + threadIdx.y; i < i0 + TILE && i < t.rows; i += TILE_ROWS)
            if (j0 + threadIdx.x < t.columns) {
                Word &to = y[at.of[0] + i * t.y_stride + j0 + threadIdx.x];
                to = before(!add, to) + (real_of<Word>)tile[threadIdx.x][i - i0];
            }
        __syncthreads(); /* before the tile is filled again */
    }
}

template <class Word> void permute_tiles(bool add, const broadcast &plan, const Word *x, Word *y)
{
    const int last = plan.rank - 1;
    turned t;
    int axis_turned = 0; /* the axis of y that is x's last */
    for (int axis = 0; axis < last; axis++) {
        if (plan.stride[1][axis] == 1)
            axis_turned = axis;
        else
            t.outer.add(plan, axis);
    }
    t.rows = plan.dim[axis_turned];
    t.columns = plan.dim[last];
    t.x_stride = plan.stride[1][last];
    t.y_stride = plan.stride[0][axis_turned];
    t.row_tiles = divisor(pack_count(t.rows, TILE));
    t.column_tiles = divisor(pack_count(t.columns, TILE));
    const int64_t tiles = t.outer.size * t.row_tiles.d * t.column_tiles.d;
    if (tiles > 0)
        LAUNCH((turn_tiles<Word>), dim3(blocks_for(tiles, 1)), dim3(TILE, TILE_ROWS), 0, stream, t,
               add, x, y);
}

/* y = x, or y += x, elements of type Word */
template <class Word> bool move(bool add, const broadcast &plan, const void *x, void *y)
{
    if (plan.stride[1][plan.rank - 1] == 1)
        return broadcast_copy<Word>("permute", plan, x, add, y);
    permute_tiles(add, plan, (const Word *)x, (Word *)y);
    return launched("permute");
}

template <class T> bool copy(size_t width, const broadcast *plan, const void *x, void *y)
{
    return with_word(width, [&](auto word) { return move<decltype(word)>(false, *plan, x, y); });
}

template <class T> bool add_permuted(const broadcast *plan, const void *x, void *y)
{
    return move<T>(true, *plan, x, y);
}

} // namespace

KERNELS_AND_BF16(permute, copy<T>, add_permuted<T>);
