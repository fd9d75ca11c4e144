/* Weights and gradients of a tile, which forward and backward of tiled attention share. */
#ifndef SOFTBACK_CUDA_ATTENTION_TILED_CUH
#define SOFTBACK_CUDA_ATTENTION_TILED_CUH

#include "cuda/attention_tiles.cuh"

/* The operands of a tile: some rows of q and dy, of k and v. */
template <class T> struct tile_operands {
    rows<const T> q, dy, k, v;
    int64_t queries, keys;

    __device__ tile_operands(const attention &a, tile_place t, const void *q_data,
                             const void *k_data, const void *v_data, const void *dy_data)
        : queries(smaller(a.Lq - t.i, TILE)), keys(smaller(a.Lk - t.j, TILE))
    {
        const int64_t group = t.h / (a.H / a.G);
        q = rows_from(rows_of<T>(q_data, a.q, t.b, t.h), t.i);
        dy = rows_from(rows_of<T>(dy_data, a.y, t.b, t.h), t.i);
        k = rows_from(rows_of<T>(k_data, a.k, t.b, group), t.j);
        v = rows_from(rows_of<T>(v_data, a.v, t.b, group), t.j);
    }
};

/* The factor of score differences: 1 with a bias, since tile_score has applied the scale. */
template <class T> __device__ real_of<T> score_factor(const attention &a, const T *bias)
{
    return bias ? 1 : (real_of<T>)a.scale;
}

/* A score from s = q . k: with a bias, scale s + bias; without, s itself. */
template <class T>
__device__ real_of<T> tile_score(const attention &a, tile_place t, const T *bias, int row,
                                 int column, real_of<T> s)
{
    typedef real_of<T> real;
    const int64_t *step = a.bias;
    return bias ? (real)a.scale * s + (real)bias[t.b * step[0] + t.h * step[1] +
                                                 (t.i + row) * step[2] + (t.j + column) * step[3]]
                : s;
}

/* p = exp(scale (s - m)) / l for this thread's pairs, and 0 for blocked ones. */
template <class T>
__device__ void tile_weights(tile_memory<real_of<T>> &m, const attention &a, tile_place t,
                             const tile_operands<T> &of, const T *bias, const real_of<T> *stats,
                             real_of<T> (&p)[4][PAIRS])
{
    typedef real_of<T> real;
    pair_products(m, of.q, of.queries, of.k, of.keys, a.D, p);
    stats += 2 * ((t.b * a.H + t.h) * a.Lq + t.i);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < PAIRS; c++) {
            const int row = tile_row(r), column = tile_column(c);
            const bool kept = tile_keeps(m, row, column);
            const real s = kept ? tile_score(a, t, bias, row, column, p[r][c]) : 0;
            p[r][c] =
                kept ? real_exp(score_factor(a, bias) * (s - stats[2 * row])) * stats[2 * row + 1]
                     : 0;
        }
}

/* da = dropout(dy v') for this thread's kept pairs; needs the bits of tile_stay. */
template <class T>
__device__ void tile_weight_gradient(tile_memory<real_of<T>> &m, const attention &a,
                                     const tile_operands<T> &of, real_of<T> (&da)[4][PAIRS])
{
    pair_products(m, of.dy, of.queries, of.v, of.keys, a.Dv, da);
    for (int r = 0; a.dropout.threshold > 0 && r < 4; r++)
        for (int c = 0; c < PAIRS; c++)
            da[r][c] =
                tile_drop(m, (real_of<T>)a.dropout.scale, tile_row(r), tile_column(c), da[r][c]);
}

/* Calls store(rows) with the rows of a gradient, which for a part of the keys are of the type of
   sums. */
template <class T, class Store>
__device__ void with_rows(bool part, const attention_gradient &gradient, attention_strides s,
                          int64_t b, int64_t h, Store store)
{
    if (sizeof(T) < sizeof(real_of<T>) && part)
        store(rows_in<real_of<T>>(gradient.data, s, b, h));
    else
        store(rows_in<T>(gradient.data, s, b, h));
}

#endif
