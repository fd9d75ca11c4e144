/* Tiled attention on tensor cores: the forward, and the sequence of kernels of the backward. */
#include "cuda/attention.cuh"
#include "cuda/attention_mma_nonfinite.cuh"
#include "cuda/attention_mma_scores.cuh"

namespace
{

/* Large heads, or with a bias: a block owns 128 queries. For the largest heads, and large heads
   with a bias, a warp has registers for one fragment of them only; from 128 numbers on, for 32 keys
   at a time. A call may have dropout. */
template <int D, bool BIASED, bool LARGE = (BIASED ? D >= 128 : D > 128)>
struct forward_shape : mma_shape<D, /* warps */ LARGE ? 8 : 4, /* fragments */ LARGE ? 1 : 2,
                                 /* columns */ D >= 128 ? 32 : 64> {
    static constexpr bool biased = BIASED, drops = true, splits = false, holds = false;
};

/* Small heads without bias: 64 queries, held in registers, so that some blocks fit on a
   multiprocessor, which hide each other's latencies. It splits: whole tiles have code of their
   own. */
template <int D, bool DROPS>
struct small_forward_shape : mma_shape<D, /* warps */ 4, /* fragments */ 1, /* columns */ 64, bf16,
                                       /* blocks */ (D > 32 && DROPS ? 3 : (int)SMALL_BLOCKS)> {
    static constexpr bool biased = false, drops = DROPS, splits = true, holds = true;
};

/* Of float. */
template <int D>
struct tf32_forward_shape
    : mma_shape<D, /* warps */ D <= 64 ? 4 : 8, /* fragments */ D <= 64 ? 2 : 1,
                /* columns */ 32, float> {
    static constexpr bool biased = false, drops = true, splits = false, holds = false;
};

template <class S> struct forward_memory {
    enum { P = PITCH<S::D, typename S::number> };
    typename S::number q[S::ROWS * P], k[2][S::COLUMNS * P], v[2][S::COLUMNS * P];
    pair_bits<S::ROWS, S::COLUMNS> bits[2];
    key_band band;
    mma_tile tile[2];
    nonfinite<S::D, S::ROWS, S::COLUMNS, S::THREADS> in_v;
};

/* The results of a warp for its queries: the largest score so far, this lane's part of the sum of
   exponentials, whether the mask kept a key, and y. */
template <class S> struct query_sums {
    enum { N = S::COLUMNS / 8, WORDS = S::COLUMNS / 32 };
    float max[S::M][2], sum[S::M][2], y[S::M][S::D / 8][4];
    int seen; /* bit r for row 8 r + group */

    __device__ query_sums()
    {
        for (int m = 0; m < S::M; m++)
            for (int half = 0; half < 2; half++) {
                max[m][half] = -INFINITY;
                sum[m][half] = 0;
            }
        seen = 0;
        clear<S::D, S::M>(y);
    }

    /* Replaces scores by p = 2^(factor (s - max)), rounded the same way in all kernels, with the
       largest score so far; rescales earlier sums. Either ALL pairs are kept, or row 8 r of `keep`
       has the bits of row 8 r + group. */
    template <bool ALL>
    __device__ void exponentials(const uint32_t (*keep)[WORDS], float factor,
                                 float (&s)[S::M][N][4])
    {
        enum { ROWS = 2 * S::M };
        row_bits<WORDS> kept[ROWS];
        float largest[ROWS], shift[ROWS], scaling[ROWS], terms[ROWS] = {};
        bool same = true;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            kept[r] = bits_of<WORDS>(keep[8 * r], ALL);
            largest[r] = max[r / 2][r % 2];
        }
#pragma unroll
        for (int n = 0; n < 2 * N; n++)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (kept[r].has(n / 2, n % 2))
                    largest[r] = fmaxf(largest[r], s[r / 2][n / 2][r % 2 * 2 + n % 2]);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffffu, largest[r], 1));
            largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffffu, largest[r], 2));
            shift[r] = score_shift(largest[r], factor);
            scaling[r] = fast_exp2(__fmul_rn(max[r / 2][r % 2], factor) - shift[r]);
            same &= scaling[r] == 1;
            max[r / 2][r % 2] = largest[r];
        }
        if (!__all_sync(0xffffffffu, same))
#pragma unroll
            for (int n = 0; n < S::M * S::D / 2; n++)
                y[n / (S::D / 2)][n / 4 % (S::D / 8)][n % 4] *=
                    scaling[n / (S::D / 2) * 2 + n % 4 / 2];
#pragma unroll
        for (int n = 0; n < 2 * N; n++)
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float &p = s[r / 2][n / 2][r % 2 * 2 + n % 2];
                p = kept[r].has(n / 2, n % 2) ? shifted_exp(p, factor, shift[r]) : 0;
                terms[r] += p;
            }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            sum[r / 2][r % 2] = sum[r / 2][r % 2] * scaling[r] + terms[r];
    }
};

/* Marks the queries of which the mask keeps a key of the tile; whether the warp has any. */
template <class S>
__device__ bool mark_seen(const uint32_t (*keep)[S::COLUMNS / 32], query_sums<S> &sums)
{
    int seen = 0;
    for (int r = 0; r < 2 * S::M; r++)
        seen |= (whole_row<S::COLUMNS / 32>(keep[8 * r]) != 0) << r;
    sums.seen |= seen;
    return __any_sync(0xffffffffu, seen != 0);
}

/* Row 8 r of `stay` has the bits of row 8 r + group. */
template <class S>
__device__ void drop_weights(const uint32_t (*stay)[S::COLUMNS / 32],
                             float (&p)[S::M][S::COLUMNS / 8][4])
{
#pragma unroll
    for (int r = 0; r < 2 * S::M; r++) {
        const row_bits<S::COLUMNS / 32> stays = bits_of<S::COLUMNS / 32>(stay[8 * r], false);
#pragma unroll
        for (int c = 0; c < S::COLUMNS / 4; c++)
            if (!stays.has(c / 2, c % 2))
                p[r / 2][c / 2][r % 2 * 2 + c % 2] = 0;
    }
}

/* If `all` pairs of the tile are kept, no bits of the mask are read. Inlined, so that a constant
   leaves one way. */
template <class S>
__device__ __forceinline__ void
add_tile(forward_memory<S> &m, int stage, const attention &a, const attention_tiled &f,
         const held_rows<S::D, S::holds> &held, bool all, bool careful, query_sums<S> &sums)
{
    enum { N = S::COLUMNS / 8 };
    const int first = threadIdx.x / WARP * S::WARP_ROWS, own = first + lane_group();
    const auto keep = m.bits[stage].keep + own;
    if (all)
        sums.seen = ~0;
    else if (!mark_seen<S>(keep, sums))
        return;
    float s[S::M][N][4];
    if constexpr (S::holds)
        pair_products<S::D, S::M, N>(held, m.k[stage], 0, s);
    else
        pair_products<S::D, S::M, N>(m.q, first, m.k[stage], 0, s);
    if (S::biased)
        add_bias<S::M, N>(a, m.tile[stage].t, (const bf16 *)f.bias, first, 0, keep, all, s);
    if (all)
        sums.template exponentials<true>(keep, base2_factor(a, f.bias), s);
    else
        sums.template exponentials<false>(keep, base2_factor(a, f.bias), s);
    if (S::drops && a.dropout.threshold > 0)
        drop_weights<S>(m.bits[stage].stay + own, s);
    add_products<S::D, S::M, N>(s, m.v[stage], 0, careful, sums.y);
}

/* Continues from the statistics and the sums over other keys. */
template <class S>
__device__ void begin(const attention &a, const attention_tiled &f, const tile_place &t,
                      query_sums<S> &sums)
{
    const int64_t first = t.i + threadIdx.x / WARP * S::WARP_ROWS, count = a.Lq - first;
    const float *stats = (const float *)f.stats + 2 * ((t.b * a.H + t.h) * a.Lq + first);
#pragma unroll
    for (int n = 0; n < 2 * S::M; n++) {
        const int row = 8 * n + lane_group();
        if (row >= count || stats[2 * row + 1] < 0)
            continue;
        sums.seen |= 1 << n;
        sums.max[n / 2][n % 2] = stats[2 * row];
        sums.sum[n / 2][n % 2] = lane_part() == 0 ? stats[2 * row + 1] : 0;
    }
    load_sums<S::D, S::M>(sums.y, rows_from(rows_of<float>(f.sums, a.y, t.b, t.h), first), count,
                          a.Dv);
}

/* Stores the sums, to which other keys are added later. */
template <class S>
__device__ void leave(forward_memory<S> &m, const attention &a, const attention_tiled &f,
                      const tile_place &t, const query_sums<S> &sums)
{
    const int64_t first = t.i + threadIdx.x / WARP * S::WARP_ROWS, count = a.Lq - first;
    const rows<float> y = rows_from(rows_in<float>(f.sums, a.y, t.b, t.h), first);
    float *stats = (float *)f.stats + 2 * ((t.b * a.H + t.h) * a.Lq + first);
#pragma unroll
    for (int n = 0; n < 2 * S::M; n++) {
        const int row = 8 * n + lane_group();
        const float sum = row_total(sums.sum[n / 2][n % 2]);
        if (lane_part() == 0 && row < count) {
            stats[2 * row] = sums.max[n / 2][n % 2];
            stats[2 * row + 1] = sums.seen >> n & 1 ? sum : -1;
        }
    }
    store_rows<S::D, S::M>(sums.y, y, count, a.Dv, true, 1);
    m.in_v.show((int)(first - t.i), S::WARP_ROWS, y, count, a.Dv);
}

/* Stores y / l, m and 1 / l; zeros for a fully masked query, as the mask alone decides. */
template <class S>
__device__ void finish(forward_memory<S> &m, const attention &a, const attention_tiled &f,
                       const tile_place &t, query_sums<S> &sums)
{
    const int64_t first = t.i + threadIdx.x / WARP * S::WARP_ROWS;
    typedef typename S::number number;
    const rows<number> y = rows_from(rows_in<number>(f.y, a.y, t.b, t.h), first);
    float *stats = (float *)f.stats + 2 * ((t.b * a.H + t.h) * a.Lq + first);
#pragma unroll
    for (int n = 0; n < 2 * S::M; n++) {
        const int row = 8 * n + lane_group();
        const bool seen = sums.seen >> n & 1;
        const float sum = row_total(sums.sum[n / 2][n % 2]);
        const float inverse = sum == 0 ? NAN : 1 / sum; /* NAN: all scores are -infinity */
        if (lane_part() == 0 && first + row < a.Lq) {
            stats[2 * row] = seen ? sums.max[n / 2][n % 2] : 0;
            stats[2 * row + 1] = seen ? inverse : 0;
        }
        const float factor = S::drops ? inverse * (float)a.dropout.scale : inverse;
#pragma unroll
        for (int d = 0; d < S::D / 4; d++) {
            float &sum_d = sums.y[n / 2][d / 2][n % 2 * 2 + d % 2];
            sum_d = seen ? factor * sum_d : 0;
        }
    }
    store_rows<S::D, S::M>(sums.y, y, a.Lq - first, a.Dv, true, 1);
    m.in_v.show((int)(first - t.i), S::WARP_ROWS, y, a.Lq - first, a.Dv);
}

/* Whether a call draws the bits of dropout. For bf16, most calls without dropout have kernels of
   their own. */
template <class S> __device__ bool draws(const attention &a)
{
    return S::drops && (std::is_same_v<typename S::number, bf16> || a.dropout.threshold > 0);
}

/* Whether the warp has queries. Their place is read from a tile, which takes no registers during
   the loop. */
template <class S>
__device__ bool has_queries(const forward_memory<S> &m, int stage, const attention &a)
{
    return (int)m.tile[stage].t.i + (int)(threadIdx.x / WARP * S::WARP_ROWS) < (int)a.Lq;
}

/* The last queries of all heads first: with a causal mask they attend to the most keys. */
template <class S>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    forward_tiles(attention a, attention_tiled f, bool aligned)
{
    DYNAMIC_SHARED(forward_memory<S>, m);
    const int64_t heads = a.B * a.H, b = blockIdx.x % heads / a.H, h = blockIdx.x % heads % a.H;
    const int64_t i = (block_count(a.Lq, S::ROWS) - 1 - blockIdx.x / heads) * S::ROWS;
    query_sums<S> sums;
    if (f.begun && i + threadIdx.x / WARP * S::WARP_ROWS < a.Lq)
        begin<S>(a, f, {b, h, i, 0}, sums);
    key_band band;
    band.set(a, b, f.bias);
    band.set_whole_keys<S::ROWS, S::COLUMNS>(a, (int)i);
    if (threadIdx.x == 0)
        m->band = band;
    m->in_v.begin();
    load_rows<S::D, S::ROWS, S::THREADS>(
        m->q, rows_from(rows_of<typename S::number>(f.q, a.q, b, h), i), a.Lq - i, a.D, aligned);
    load_keys<S>(*m, 0, a, f.k, f.v, first_keys<S::ROWS, S::COLUMNS>(a, band, b, h, i), band,
                 draws<S>(a), aligned);
    held_rows<S::D, S::holds> held;
    if constexpr (S::holds) {
        cp_async_wait<0>();
        __syncthreads();
        held.load(m->q, threadIdx.x / WARP * S::WARP_ROWS);
    }
    for (int stage = 0;; stage ^= 1) {
        cp_async_wait<0>();
        __syncthreads(); /* the tile is loaded, and no thread reads the previous one any more */
        mma_tile next = m->tile[stage];
        const bool some = next.kind == SOME;
        if (next.kind == NOTHING)
            break;
        next_keys<S::ROWS, S::COLUMNS>(a, m->band, next);
        load_keys<S>(*m, stage ^ 1, a, f.k, f.v, next, m->band, draws<S>(a), aligned);
        const bool careful = some && m->in_v.find(m->v[stage], [&](int row) {
            return whole_row<S::COLUMNS / 32>(m->bits[stage].keep[row]);
        });
        if (has_queries(*m, stage, a) && S::splits && !some)
            add_tile<S>(*m, stage, a, f, held, true, false, sums);
        else if (has_queries(*m, stage, a))
            add_tile<S>(*m, stage, a, f, held, !S::splits && !some, careful, sums);
    }
    if (!has_queries(*m, 0, a))
        return;
    if (f.goes_on)
        leave<S>(*m, a, f, m->tile[0].t, sums);
    else
        finish<S>(*m, a, f, m->tile[0].t, sums);
}

template <class S> bool launch_forward(const attention &a, const attention_tiled &f)
{
    typedef typename S::number number;
    const int64_t blocks = a.B * a.H * block_count(a.Lq, S::ROWS);
    const bool aligned = rows_aligned<number>(f.q, a.q, a.D) &&
                         rows_aligned<number>(f.k, a.k, a.D) &&
                         rows_aligned<number>(f.v, a.v, a.Dv);
    if (!block_fits<forward_memory<S>, forward_tiles<S>>())
        return false;
    if (blocks > 0)
        LAUNCH((forward_tiles<S>), dim3((unsigned)blocks), dim3(S::THREADS),
               sizeof(forward_memory<S>), stream, a, f, aligned);
    return true;
}

/* Whether delta is computed as rowsum(p dp), for which all keys must be there, and not from y. With
   few keys, p dp - delta cancels, and y, which is rounded to bf16, is not accurate enough. */
template <class T> bool delta_from_products(const attention &a, const attention_tiled_backward &g)
{
    return std::is_same_v<T, bf16> && a.Lk <= 256 && !g.part;
}

/* Whether the place is flat, as stay_word requires. */
bool draws_in_order(const attention &a)
{
    return a.dropout.threshold == 0 || a.dropout.place.flat;
}

template <class T> bool has_kernels(const attention &a, const void *bias)
{
    const int64_t largest = std::is_same_v<T, bf16> ? LARGEST_HEAD : LARGEST_TF32_HEAD;
    return a.D <= largest && a.Dv <= largest && a.Lq < MOST_POSITIONS && a.Lk < MOST_POSITIONS &&
           draws_in_order(a) && (BIASES<T> || !bias);
}

/* Whether the device has enough shared memory for all kernels of a backward. */
template <class T> bool backward_fits(const attention &a, const attention_tiled_backward &g)
{
    return (!delta_from_products<T>(a, g) || attention_mma_delta_fits(a, g)) &&
           (!g.dq.data || attention_mma_queries_fit<T>(a, g)) &&
           (!(g.dk.data || g.dv.data) || attention_mma_keys_fit<T>(a, g)) &&
           (!g.dbias.data || attention_mma_bias_fits(a));
}

} // namespace

template <class T> bool attention_mma_forward(const attention &a, const attention_tiled &f)
{
    if (!has_kernels<T>(a, f.bias))
        return false;
    if constexpr (std::is_same_v<T, float>)
        return with_tf32_size(
            a, [&](auto D) { return launch_forward<tf32_forward_shape<D()>>(a, f); });
    else
        return with_shape(a, nullptr, [&](auto D, auto drops) {
            if (f.bias)
                return launch_forward<forward_shape<D(), true>>(a, f);
            if constexpr (D() <= LARGEST_SPLIT)
                return launch_forward<small_forward_shape<D(), drops()>>(a, f);
            else
                return launch_forward<forward_shape<D(), false>>(a, f);
        });
}

template <class T>
bool attention_mma_backward(const attention &a, const attention_tiled_backward &g)
{
    const bool aligned = rows_aligned<T>(g.q, a.q, a.D) && rows_aligned<T>(g.k, a.k, a.D) &&
                         rows_aligned<T>(g.v, a.v, a.Dv) && rows_aligned<T>(g.dy, a.y, a.Dv);
    if (!has_kernels<T>(a, g.bias) || !backward_fits<T>(a, g))
        return false;
    const bool products = delta_from_products<T>(a, g);
    if (products)
        attention_mma_delta(a, g, aligned);
    else if (!g.dq.data)
        attention_row_sums<T>(a, g);
    if (g.dq.data)
        attention_mma_queries<T>(a, g, aligned, !products);
    if (g.dk.data || g.dv.data)
        attention_mma_keys<T>(a, g, aligned);
    if (g.dbias.data)
        attention_mma_bias(a, g, aligned);
    return true;
}

template bool attention_mma_forward<bf16>(const attention &, const attention_tiled &);
template bool attention_mma_forward<float>(const attention &, const attention_tiled &);
template bool attention_mma_backward<bf16>(const attention &, const attention_tiled_backward &);
template bool attention_mma_backward<float>(const attention &, const attention_tiled_backward &);
