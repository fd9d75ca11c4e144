/* Products of composed attention, forward and backward, with stored weights or their gradients (B,
   H, Lq, Lk), which are zero for blocked pairs. */
#ifndef SOFTBACK_CUDA_ATTENTION_STEPS_CUH
#define SOFTBACK_CUDA_ATTENTION_STEPS_CUH

#include "cuda/attention_tiles.cuh"
#include "ops/rows.h"

/* Loads a tile of pairs, after dropout if any; zeros beyond Lq and Lk. */
template <class P, class real>
__device__ void load_pairs(tile_memory<real> &m, const attention &a, bool drop, tile_place t,
                           const P *pairs)
{
    if (drop)
        tile_stay(m, a, t);
    pairs += (t.b * a.H + t.h) * a.Lq * a.Lk;
    for (int n = threadIdx.x; n < TILE * TILE; n += TILE_THREADS) {
        const int r = n / TILE, c = n % TILE;
        const bool inside = t.i + r < a.Lq && t.j + c < a.Lk;
        const real p = inside ? (real)pairs[(t.i + r) * a.Lk + t.j + c] : 0;
        m.p[r][c] = drop ? tile_drop(m, (real)a.dropout.scale, r, c, p) : p;
    }
}

/* The norm of row n, at least 1e-12; of smaller numbers, if squares overflow. */
template <class T>
__device__ real_of<T> key_length(const rows<const T> &x, int64_t n, int64_t depth)
{
    typedef real_of<T> real;
    real squares = 0, shrunk = 0;
    for (int64_t d = 0; d < depth; d++) {
        const real e = (real)x.at[n * x.step + d], small = e * ROW_SHRINK(real);
        squares += e * e;
        shrunk += small * small;
    }
    const real length =
        squares < (real)INFINITY ? real_sqrt(squares) : real_sqrt(shrunk) / ROW_SHRINK(real);
    return length < (real)1e-12 ? (real)1e-12 : length;
}

/* s_ij = x_i . y_j in all tiles that are not fully masked: the scores, and dm. With cosine, divided
   by the norm of y_j, since cached keys are not normalised. */
template <class T>
__global__ void make_pairs(attention a, int64_t depth, const void *x, attention_strides x_strides,
                           const void *y, attention_strides y_strides, bool cosine, real_of<T> *s)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    const int64_t across = tile_count(a.Lk), down = tile_count(a.Lq);
    const int64_t head = blockIdx.x / across / down, h = head % a.H;
    const tile_place t = {head / a.H, h, blockIdx.x / across % down * TILE,
                          blockIdx.x % across * TILE};
    if (!tile_in_range(a, t))
        return;
    const rows<const T> x_rows = rows_of<T>(x, x_strides, t.b, h);
    const rows<const T> y_rows = rows_from(rows_of<T>(y, y_strides, t.b, h / (a.H / a.G)), t.j);
    const int64_t keys = smaller(a.Lk - t.j, TILE);
    real product[4][PAIRS];
    pair_products(m, rows_from(x_rows, t.i), smaller(a.Lq - t.i, TILE), y_rows, keys, depth,
                  product);
    if (cosine && threadIdx.x < TILE)
        m.row[0][threadIdx.x] = threadIdx.x < keys ? key_length(y_rows, threadIdx.x, depth) : 1;
    __syncthreads();
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < PAIRS; c++) {
            const int64_t i = t.i + tile_row(r), j = t.j + tile_column(c);
            if (i < a.Lq && j < a.Lk)
                s[(head * a.Lq + i) * a.Lk + j] =
                    cosine ? product[r][c] / m.row[0][tile_column(c)] : product[r][c];
        }
}

template <class T>
bool pairs(const attention &a, int64_t depth, const void *x, attention_strides x_strides,
           const void *y, attention_strides y_strides, bool cosine, real_of<T> *s)
{
    const int64_t tiles = a.B * a.H * tile_count(a.Lq) * tile_count(a.Lk);
    if (tiles > 0)
        LAUNCH((make_pairs<T>), dim3((unsigned)tiles), dim3(TILE_THREADS), 0, stream, a, depth, x,
               x_strides, y, y_strides, cosine, s);
    return launched("attention");
}

/* The operands and the result of a product with weights or their gradients, of type P. */
template <class P> struct pair_product {
    const P *pairs;
    bool drop; /* the pairs are weights, to which dropout applies */
    const void *y;
    attention_strides y_strides;
    void *z;
    attention_strides z_strides;
    int64_t columns;
    bool fresh;
};

/* z_i += sum_j p_ij y_j: o = m v and dq = ds k */
template <class T, class P> __global__ void sum_over_keys(attention a, pair_product<P> f)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    const int64_t down = tile_count(a.Lq), head = blockIdx.x / down, b = head / a.H, h = head % a.H;
    const int64_t i = blockIdx.x % down * TILE, column = blockIdx.y * (int64_t)COLUMNS;
    const rows<const T> y = rows_of<T>(f.y, f.y_strides, b, h / (a.H / a.G));
    piece<real> z;
    for (int64_t j = 0; j < a.Lk; j += TILE) {
        const tile_place t = {b, h, i, j};
        if (!tile_in_range(a, t))
            continue;
        const tile_kept kept = tile_keep(m, a, t);
        if (!kept.any)
            continue;
        load_pairs(m, a, f.drop, t, f.pairs);
        z.template add<false>(m, kept.whole, rows_from(y, j), smaller(a.Lk - j, TILE), column,
                              f.columns);
    }
    z.store(rows_from(rows_in<T>(f.z, f.z_strides, b, h), i), f.fresh, smaller(a.Lq - i, TILE),
            column, f.columns, 1);
}

/* z_j += sum_i p_ij y_i over the heads that share z: dv = m' do and dk = ds' q */
template <class T, class P> __global__ void sum_over_queries(attention a, pair_product<P> f)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    const int64_t across = tile_count(a.Lk), unit = blockIdx.x / across, shared = a.H / a.G;
    const int64_t b = unit / a.G, group = unit % a.G;
    const int64_t j = blockIdx.x % across * TILE, column = blockIdx.y * (int64_t)COLUMNS;
    piece<real> z;
    for (int64_t h = group * shared; h < (group + 1) * shared; h++) {
        const rows<const T> y = rows_of<T>(f.y, f.y_strides, b, h);
        for (int64_t i = 0; i < a.Lq; i += TILE) {
            const tile_place t = {b, h, i, j};
            if (!tile_in_range(a, t))
                continue;
            const tile_kept kept = tile_keep(m, a, t);
            if (!kept.any)
                continue;
            load_pairs(m, a, f.drop, t, f.pairs);
            z.template add<true>(m, kept.whole, rows_from(y, i), smaller(a.Lq - i, TILE), column,
                                 f.columns);
        }
    }
    z.store(rows_from(rows_in<T>(f.z, f.z_strides, b, group), j), f.fresh, smaller(a.Lk - j, TILE),
            column, f.columns, 1);
}

template <class T, class P> bool over_keys(const attention &a, const pair_product<P> &f)
{
    const int64_t blocks = a.B * a.H * tile_count(a.Lq);
    if (blocks > 0 && f.columns > 0)
        LAUNCH((sum_over_keys<T, P>), dim3((unsigned)blocks, piece_count(f.columns)),
               dim3(TILE_THREADS), 0, stream, a, f);
    return launched("attention");
}

template <class T, class P> bool over_queries(const attention &a, const pair_product<P> &f)
{
    const int64_t blocks = a.B * a.G * tile_count(a.Lk);
    if (blocks > 0 && f.columns > 0)
        LAUNCH((sum_over_queries<T, P>), dim3((unsigned)blocks, piece_count(f.columns)),
               dim3(TILE_THREADS), 0, stream, a, f);
    return launched("attention");
}

/* In attention_cached.cu, attention_backward.cu, attention_tiled.cu, attention_tiled_backward.cu
   and attention_rows.cu, for each element type. The first is for few queries, without dropout. */
template <class T> bool attention_cached_forward(const attention *a, const attention_forward *f);
template <class T>
bool attention_composed_backward(const attention *a, const attention_backward *g);
template <class T> bool attention_tiles_forward(const attention *a, const attention_tiled *f);
template <class T>
bool attention_tiles_backward(const attention *a, const attention_tiled_backward *g);
template <class T> void attention_row_sums(const attention &a, const attention_tiled_backward &g);
template <class T>
bool attention_tiles_rows(const attention *a, const attention_tiled *f,
                          const attention_tiled_backward *g, int64_t first, int64_t count,
                          void *to);

/* In attention_mma*.cu: the same on tensor cores for bf16, and for float as 3xTF32. False, without
   queued work, when the heads are too large, or float has a bias. */
template <class T> bool attention_mma_forward(const attention &a, const attention_tiled &f);
template <class T>
bool attention_mma_backward(const attention &a, const attention_tiled_backward &g);

#endif
