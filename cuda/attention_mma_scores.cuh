/*
 * Scores and their gradient on tensor cores. Forward and backward compute each weight with the same
 * products and roundings, so that the weights of a row have the sum that forward computed:
 *
 *     p = 2^(factor s - shift)      factor = scale log2(e)      shift = factor m, rounded
 *
 * where m is the row's largest s; with a bias, s = scale q k' + bias and the scale in factor is 1.
 */
#ifndef SOFTBACK_CUDA_ATTENTION_MMA_SCORES_CUH
#define SOFTBACK_CUDA_ATTENTION_MMA_SCORES_CUH

#include "cuda/attention_mma_mask.cuh"
#include "cuda/attention_tf32.cuh"

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

__device__ inline float base2_factor(const attention &a, const void *bias)
{
    return (bias ? 1 : (float)a.scale) * 1.44269504f;
}

/* 0 for a row that has only -infinity and NaN. */
__device__ inline float score_shift(float max, float factor)
{
    return max == -INFINITY ? 0 : __fmul_rn(max, factor);
}

__device__ inline float shifted_exp(float s, float factor, float shift)
{
    return fast_exp2(__fmaf_rn(s, factor, -shift));
}

__device__ inline float biased_score(const attention &a, float s, bf16 bias)
{
    return __fmaf_rn((float)a.scale, s, (float)bias);
}

/* s = scale s + bias for the kept pairs of a warp's queries, from row `first` of the tile on, with
   8 N keys from `column` on. Row 8 r of `keep` has the bits of row 8 r + group, unless all are
   kept. */
template <int M, int N, int KEYS>
__device__ void add_bias(const attention &a, const tile_place &t, const bf16 *bias, int first,
                         int column, const uint32_t (*keep)[KEYS], bool all, float (&s)[M][N][4])
{
    const int64_t *step = a.bias;
    bias += t.b * step[0] + t.h * step[1] + (t.i + first + lane_group()) * step[2] +
            (t.j + column + 2 * lane_part()) * step[3];
#pragma unroll
    for (int r = 0; r < 2 * M; r++) {
        __syncwarp(); /* saves registers: limits loads to one row at a time */
        const row_bits<N / 4> kept = bits_of<N / 4>(keep[8 * r] + column / 32, all);
#pragma unroll
        for (int c = 0; c < 2 * N; c++)
            if (kept.has(c / 2, c % 2)) {
                float &place = s[r / 2][c / 2][r % 2 * 2 + c % 2];
                place =
                    biased_score(a, place, bias[8 * r * step[2] + (c / 2 * 8 + c % 2) * step[3]]);
            }
    }
}

/* What backward reads for a query: its row of forward's statistics, and delta. */
struct query_numbers {
    float max, inverse, delta;
};

/* Zeros for a query beyond Lq, and for delta before it is computed. */
__device__ inline query_numbers numbers_of(const attention &a, const attention_tiled_backward &g,
                                           int64_t b, int64_t h, int64_t i, bool delta_known)
{
    if (i >= a.Lq)
        return {};
    const int64_t row = (b * a.H + h) * a.Lq + i;
    const float *stats = (const float *)g.stats + 2 * row;
    return {stats[0], stats[1], delta_known ? ((const float *)g.delta)[row] : 0};
}

/* The numbers of a tile's queries, in shared memory. */
template <int QUERIES> struct query_rows {
    float shift[QUERIES], inverse[QUERIES], delta[QUERIES];

    __device__ void set(int row, const query_numbers &query, float factor)
    {
        shift[row] = score_shift(query.max, factor);
        inverse[row] = query.inverse;
        delta[row] = query.delta;
    }
};

/* ds = p (dropout(dp) - delta) of a kept pair; unless it is GENERAL, the call has no dropout. */
template <bool GENERAL>
__device__ float score_gradient_of(const attention &a, float p, float dp, bool stays, float delta)
{
    if (GENERAL && a.dropout.threshold > 0)
        dp = stays ? dp * (float)a.dropout.scale : 0;
    return p * (dp - delta);
}

/* Whether there are kernels for a bias. */
template <class T> constexpr bool BIASES = std::is_same_v<T, bf16>;

/* The operands of a tile in shared memory: q and dy of some queries, k and v of some keys. */
template <class T> struct tile_rows {
    const T *q, *dy, *k, *v;
};

/* Whether any pair of a warp's queries with 32 keys is kept. */
template <int M, int QUERIES, int KEYS>
__device__ bool any_kept(const pair_bits<QUERIES, KEYS> &bits, int first, int column)
{
    bool any = false;
    for (int r = threadIdx.x % WARP; r < 16 * M; r += WARP)
        any |= bits.keep[first + r][column / 32] != 0;
    return __any_sync(0xffffffffu, any);
}

/* The queries' operands in registers. */
template <int D, bool HOLDS> struct held_queries {
    held_rows<D, HOLDS> q, dy;
};

/* ds of a warp's queries, from row `first` of the tile on, with 32 keys from `column` on; 0 for
   blocked pairs. */
template <bool GENERAL, int D, int M, bool HOLDS, class T, int QUERIES, int KEYS>
__device__ __forceinline__ void
score_gradient(const tile_rows<T> &of, const held_queries<D, HOLDS> &held, const attention &a,
               const attention_tiled_backward &g, const tile_place &t, int first, int column,
               const query_rows<QUERIES> &rows, const pair_bits<QUERIES, KEYS> &bits, bool all,
               float (&ds)[M][4][4])
{
    float p[M][4][4];
    const float factor = base2_factor(a, g.bias);
    const int own = first + lane_group();
    if constexpr (HOLDS)
        pair_products<D, M, 4>(held.q, of.k, column, p);
    else
        pair_products<D, M, 4>(of.q, first, of.k, column, p);
    if (GENERAL && BIASES<T> && g.bias)
        add_bias<M, 4>(a, t, (const bf16 *)g.bias, first, column, bits.keep + own, all, p);
    if constexpr (HOLDS)
        pair_products<D, M, 4>(held.dy, of.v, column, ds);
    else
        pair_products<D, M, 4>(of.dy, first, of.v, column, ds);
#pragma unroll
    for (int r = 0; r < 2 * M; r++) {
        const int row = own + 8 * r;
        const row_bits<1> kept = bits_of<1>(bits.keep[row] + column / 32, all);
        const row_bits<1> stay =
            bits_of<1>(bits.stay[row] + column / 32, !GENERAL || a.dropout.threshold == 0);
        const float shift = rows.shift[row], inverse = rows.inverse[row], delta = rows.delta[row];
#pragma unroll
        for (int c = 0; c < 8; c++) {
            const int n = c / 2, e = r % 2 * 2 + c % 2;
            const float weight = shifted_exp(p[r / 2][n][e], factor, shift) * inverse;
            const float gradient =
                score_gradient_of<GENERAL>(a, weight, ds[r / 2][n][e], stay.has(n, e), delta);
            ds[r / 2][n][e] = kept.has(n, e) ? gradient : 0;
        }
    }
}

/* The parts of the backward, in attention_mma_*.cu: whether the device has enough shared memory for
   a part, and the function that queues it. `aligned`: cp.async can read all rows. `sums`: delta is
   computed first. */
template <class T>
bool attention_mma_queries_fit(const attention &a, const attention_tiled_backward &g);
template <class T>
bool attention_mma_keys_fit(const attention &a, const attention_tiled_backward &g);
template <class T>
void attention_mma_queries(const attention &a, const attention_tiled_backward &g, bool aligned,
                           bool sums);
template <class T>
void attention_mma_keys(const attention &a, const attention_tiled_backward &g, bool aligned);

/* For bf16 alone. */
bool attention_mma_delta_fits(const attention &a, const attention_tiled_backward &g);
bool attention_mma_bias_fits(const attention &a);
void attention_mma_delta(const attention &a, const attention_tiled_backward &g, bool aligned);
void attention_mma_bias(const attention &a, const attention_tiled_backward &g, bool aligned);

#endif
