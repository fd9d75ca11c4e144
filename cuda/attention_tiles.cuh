/*
 * Products of tiles, the building blocks of all attention kernels.
 *
 * Scores are divided into tiles of TILE x TILE pairs at fixed positions. A block of TILE_THREADS
 * threads computes one at a time: thread (ty, tx) of 8 x 8 has the rows 4 ty .. 4 ty + 3 and the
 * columns tx, tx + 8, ... A result of attention, (L, D), is divided into pieces of TILE rows and
 * COLUMNS columns. One block computes a piece and adds its terms in a fixed order, so the bits are
 * reproducible.
 *
 * Each row has a word with one bit for each pair that the mask keeps, and one for dropout.
 */
#ifndef SOFTBACK_CUDA_ATTENTION_TILES_CUH
#define SOFTBACK_CUDA_ATTENTION_TILES_CUH

#include "cuda/dropout_bits.cuh"
#include "cuda/masked_row.cuh"
#include "cuda/row_group.cuh"
#include "ops/attention.h"

enum { TILE = 32, TILE_THREADS = 64, DEPTH = 16, COLUMNS = 64 };
enum { PAIRS = TILE / 8, WIDTH = COLUMNS / 8 }; /* columns of a thread in a tile, and in a piece */

/* The first row of a head, and the distance between rows. */
template <class T> struct rows {
    T *at;
    int64_t step;
};

template <class T>
__device__ rows<const T> rows_of(const void *data, attention_strides s, int64_t b, int64_t h)
{
    return {(const T *)data + b * s.batch + h * s.head, s.row};
}

template <class T> __device__ rows<T> rows_in(void *data, attention_strides s, int64_t b, int64_t h)
{
    return {(T *)data + b * s.batch + h * s.head, s.row};
}

/* Calls store(rows) with the rows of a result, which are of the type of sums if they are wide. */
template <class T, class Store>
__device__ void with_rows(bool wide, const attention_gradient &result, attention_strides s,
                          int64_t b, int64_t h, Store store)
{
    if (sizeof(T) < sizeof(real_of<T>) && wide)
        store(rows_in<real_of<T>>(result.data, s, b, h));
    else
        store(rows_in<T>(result.data, s, b, h));
}

/* The shared memory of a block. T is the type of numbers here; for bf16 data in device memory it is
   float. */
template <class T> struct tile_memory {
    T x[TILE][DEPTH + 1], y[TILE][DEPTH + 1]; /* parts of the operands of scores */
    T p[TILE][TILE + 1];                      /* a tile of pairs */
    T wide[TILE][COLUMNS + 1];                /* the right operand of a tile of pairs */
    T norm[TILE];                             /* of keys */
    uint32_t keep[TILE];
    uint8_t stay[TILE][TILE / 8];
};

struct tile_place {
    int64_t b, h, i, j; /* the first query and the first key */
};

/* What a mask keeps of a tile: nothing if not `any`, everything if `whole`. */
struct tile_kept {
    bool any, whole;
};

__device__ inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

__device__ inline int tile_row(int r)
{
    return threadIdx.x / 8 * 4 + r;
}

__device__ inline int tile_column(int c)
{
    return threadIdx.x % 8 + 8 * c;
}

/* Sets the bits of the tile's kept pairs; pairs beyond Lq and Lk are not kept. */
template <class T>
__device__ tile_kept tile_keep(tile_memory<T> &m, const attention &a, tile_place t)
{
    const int lane = threadIdx.x % WARP;
    bool any = false, whole = true;
    for (int r = threadIdx.x / WARP; r < TILE; r += TILE_THREADS / WARP) {
        const int64_t i = t.i + r, j = t.j + lane;
        const bool valid = i < a.Lq && j < a.Lk;
        bool kept = valid;
        if (valid && a.mask.count > 0) {
            const key_range keys = mask_range(&a.mask, t.b, i, i, a.Lk);
            kept = keys.from <= j && j < keys.to && mask_keeps(a.mask, t.b, t.h, i, j);
        }
        const uint32_t word = __ballot_sync(0xffffffffu, kept);
        const uint32_t all = __ballot_sync(0xffffffffu, valid);
        if (lane == 0)
            m.keep[r] = word;
        any |= word != 0;
        whole &= word == all;
    }
    any = __syncthreads_or(any);
    whole = __syncthreads_and(whole);
    return {any, whole};
}

template <class T> __device__ bool tile_keeps(const tile_memory<T> &m, int row, int column)
{
    return m.keep[row] >> column & 1;
}

/* Whether the mask may keep a pair of the tile, before dense terms: the same in all threads. */
__device__ inline bool tile_in_range(const attention &a, tile_place t)
{
    const int64_t last = smaller(t.i + TILE, a.Lq) - 1;
    const key_range keys = mask_range(&a.mask, t.b, t.i, last, a.Lk);
    return keys.from < t.j + TILE && t.j < keys.to;
}

/* Sets the bits of the pairs that dropout keeps. */
template <class T> __device__ void tile_stay(tile_memory<T> &m, const attention &a, tile_place t)
{
    for (int n = threadIdx.x; n < TILE * (TILE / 8); n += TILE_THREADS) {
        const int r = n / (TILE / 8), g = n % (TILE / 8);
        const int64_t row = (t.b * a.H + t.h) * a.Lq + t.i + r;
        const int64_t start = place_of_row(&a.dropout.place, row);
        m.stay[r][g] = (uint8_t)staying_in_row(a.dropout, start, t.j + 8 * g);
    }
    __syncthreads();
}

template <class T>
__device__ T tile_drop(const tile_memory<T> &m, T scale, int row, int column, T p)
{
    return m.stay[row][column / 8] >> (column % 8) & 1 ? p * scale : 0;
}

/* Loads elements from d on of some rows, with zeros beyond their number and their length. */
template <class T, class real, int N>
__device__ void load_part(real (*to)[N], rows<const T> x, int64_t count, int64_t d, int64_t length)
{
    enum { SIZE = N - 1 };
    for (int n = threadIdx.x; n < TILE * SIZE; n += TILE_THREADS) {
        const int r = n / SIZE, e = n % SIZE;
        to[r][e] = r < count && d + e < length ? (real)x.at[r * x.step + d + e] : 0;
    }
}

/* s_rc = x_r . y_c for this thread's pairs of a tile. */
template <class T, class real>
__device__ void pair_products(tile_memory<real> &m, rows<const T> x, int64_t x_count,
                              rows<const T> y, int64_t y_count, int64_t depth, real (&s)[4][PAIRS])
{
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < PAIRS; c++)
            s[r][c] = 0;
    for (int64_t d = 0; d < depth; d += DEPTH) {
        load_part(m.x, x, x_count, d, depth);
        load_part(m.y, y, y_count, d, depth);
        __syncthreads();
        for (int e = 0; e < DEPTH; e++)
            for (int r = 0; r < 4; r++)
                for (int c = 0; c < PAIRS; c++)
                    s[r][c] += m.x[tile_row(r)][e] * m.y[tile_column(c)][e];
        __syncthreads();
    }
}

/* A piece of a result: this thread's 4 x WIDTH numbers. */
template <class real> struct piece {
    real at[4][WIDTH];

    __device__ piece()
    {
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < WIDTH; c++)
                at[r][c] = 0;
    }

    /* z_r += sum_n p_rn y_n, or TRANSPOSED z_r += sum_n p_nr y_n, over the `count` rows of y, from
       its column on. If y has non-finite numbers, adds kept pairs only, since 0 times such a number
       is NaN. */
    template <bool TRANSPOSED, class T>
    __device__ void add(tile_memory<real> &m, bool whole, rows<const T> y, int64_t count,
                        int64_t column, int64_t columns)
    {
        load_part(m.wide, y, count, column, columns);
        __syncthreads();
        bool finite = true;
        for (int n = threadIdx.x; n < TILE * COLUMNS; n += TILE_THREADS)
            finite &= 0 * m.wide[n / COLUMNS][n % COLUMNS] == 0;
        const bool careful = __syncthreads_or(!finite) && !whole;
        for (int n = 0; n < count; n++)
            for (int r = 0; r < 4; r++) {
                const int i = TRANSPOSED ? n : tile_row(r), j = TRANSPOSED ? tile_row(r) : n;
                if (!careful || tile_keeps(m, i, j))
                    for (int c = 0; c < WIDTH; c++)
                        at[r][c] += m.p[i][j] * m.wide[n][tile_column(c)];
            }
        __syncthreads();
    }

    template <class T>
    __device__ void load(rows<T> from, int64_t count, int64_t column, int64_t columns)
    {
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < WIDTH; c++) {
                const int64_t row = tile_row(r), e = column + tile_column(c);
                at[r][c] = row < count && e < columns ? (real)from.at[row * from.step + e] : 0;
            }
    }

    /* Stores the piece: writes it if fresh, else adds it. */
    template <class T>
    __device__ void store(rows<T> to, bool fresh, int64_t count, int64_t column,
                          int64_t columns) const
    {
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < WIDTH; c++) {
                const int64_t row = tile_row(r), e = column + tile_column(c);
                if (row >= count || e >= columns)
                    continue;
                T *z = to.at + row * to.step + e;
                *z = (T)(at[r][c] + (fresh ? 0 : (real)*z));
            }
    }
};

template <class T> __device__ rows<T> rows_from(rows<T> x, int64_t first)
{
    return {x.at + first * x.step, x.step};
}

__host__ __device__ inline int64_t tile_count(int64_t n)
{
    return (n + TILE - 1) / TILE;
}

inline unsigned piece_count(int64_t n)
{
    return (unsigned)((n + COLUMNS - 1) / COLUMNS);
}

#endif
