/* The gradient of queries in the backward of tiled attention, on tensor cores: dq_i += scale sum_j
 * ds_ij k_j. And delta_i = sum_j p_ij dp_ij. */
#include "cuda/attention.cuh"
#include "cuda/attention_mma_nonfinite.cuh"
#include "cuda/attention_mma_scores.cuh"

namespace
{

/* Large heads: two blocks fit on a multiprocessor of compute capability 9.0 for heads of up to
   128. */
template <int D>
struct queries_shape : mma_shape<D, /* warps */ 4, /* fragments */ D <= 128 ? 2 : 1,
                                 /* columns */ 32> {
    static constexpr bool general = true, splits = false, holds = false;
};

/* Small heads: 64 queries, whose operands are held in registers, so that three blocks fit on a
   multiprocessor, which hide each other's latencies. If it is GENERAL, a call may have dropout or a
   bias; otherwise whole tiles have code of their own. */
template <int D, bool GENERAL>
struct small_queries_shape : mma_shape<D, /* warps */ 4, /* fragments */ 1, /* columns */ 64, bf16,
                                       /* blocks */ 3> {
    static constexpr bool general = GENERAL, splits = !GENERAL, holds = true;
};

/* Of float: larger heads leave registers for one fragment only. */
template <int D>
struct tf32_queries_shape
    : mma_shape<D, /* warps */ 4, /* fragments */ D <= 64 ? 2 : 1, /* columns */ 32, float> {
    static constexpr bool general = true, splits = false, holds = false;
};

/* Whether a call draws the bits of dropout. */
template <class S> __device__ bool draws(const attention &a)
{
    return S::general && a.dropout.threshold > 0;
}

template <class S> struct queries_memory {
    enum { P = PITCH<S::D, typename S::number> };
    typename S::number q[S::ROWS * P], dy[S::ROWS * P], k[2][S::COLUMNS * P], v[2][S::COLUMNS * P];
    pair_bits<S::ROWS, S::COLUMNS> bits[2];
    key_band band;
    query_rows<S::ROWS> rows;
    mma_tile tile[2];
    nonfinite<S::D, S::ROWS, S::COLUMNS, S::THREADS> in_k;
};

/* What a block computes. With DELTA only delta, and without it only dq. */
template <class S> struct query_results {
    float dq[S::M][S::D / 8][4], delta[S::M][2];
};

/* dq += ds k over a tile, 32 keys at a time; or, with m.rows.delta 0, delta += rowsum(p dp), this
   lane's part. */
template <class S, bool DELTA>
__device__ __forceinline__ void
add_tile(queries_memory<S> &m, int stage, const attention &a, const attention_tiled_backward &g,
         const held_queries<S::D, S::holds> &held, bool all, bool careful, query_results<S> &found)
{
    const int first = threadIdx.x / WARP * S::WARP_ROWS;
    const tile_rows<typename S::number> of = {m.q, m.dy, m.k[stage], m.v[stage]};
#pragma unroll 1
    for (int column = 0; column < S::COLUMNS; column += 32) {
        if (!all && !any_kept<S::M>(m.bits[stage], first, column))
            continue;
        float ds[S::M][4][4];
        score_gradient<S::general, S::D, S::M, S::holds>(of, held, a, g, m.tile[stage].t, first,
                                                         column, m.rows, m.bits[stage], all, ds);
        if (!DELTA)
            add_products<S::D, S::M, 4>(ds, of.k, column, careful, found.dq);
#pragma unroll
        for (int n = 0; DELTA && n < S::M * 16; n++)
            found.delta[n / 16][n % 4 / 2] += ds[n / 16][n / 4 % 4][n % 4];
    }
}

/* Sums the parts of four lanes. */
template <class S>
__device__ void store_delta(const attention &a, const attention_tiled_backward &g,
                            const tile_place &t, const float (&delta)[S::M][2])
{
    const int64_t first = t.i + threadIdx.x / WARP * S::WARP_ROWS;
    float *to = (float *)g.delta + (t.b * a.H + t.h) * a.Lq + first;
#pragma unroll
    for (int r = 0; r < 2 * S::M; r++) {
        const float sum = row_total(delta[r / 2][r % 2]);
        const int row = 8 * r + lane_group();
        if (lane_part() == 0 && first + row < a.Lq)
            to[row] = sum;
    }
}

/* delta = rowsum(dy y) of a query, which the kernel for keys then reads. */
template <class T>
__device__ float row_sum(const attention &a, const attention_tiled_backward &g, int64_t b,
                         int64_t h, int64_t i)
{
    const T *y = rows_from(rows_of<T>(g.y, a.y, b, h), i).at;
    const T *dy = rows_from(rows_of<T>(g.dy, a.y, b, h), i).at;
    float sum = 0;
    for (int64_t d = 0; d < a.Dv; d += CHUNK<T>) {
        const auto x = real_pack<T>::load(y + d, a.Dv - d),
                   dx = real_pack<T>::load(dy + d, a.Dv - d);
        for (int e = 0; e < CHUNK<T>; e++)
            sum += dx.of[e] * x.of[e];
    }
    ((float *)g.delta)[(b * a.H + h) * a.Lq + i] = sum;
    return sum;
}

/* Loads the block's queries and their numbers, and starts loading the first tile. */
template <class S, bool DELTA>
__device__ void begin(queries_memory<S> &m, const attention &a, const attention_tiled_backward &g,
                      const tile_place &t, bool aligned, bool sums)
{
    const tile_operands<typename S::number> of(a, t, g.q, g.k, g.v, g.dy);
    key_band band;
    band.set(a, t.b, g.bias);
    band.set_whole_keys<S::ROWS, S::COLUMNS>(a, (int)t.i);
    if (threadIdx.x == 0)
        m.band = band;
    m.in_k.begin();
    load_rows<S::D, S::ROWS, S::THREADS>(m.q, of.q, a.Lq - t.i, a.D, aligned);
    load_rows<S::D, S::ROWS, S::THREADS>(m.dy, of.dy, a.Lq - t.i, a.Dv, aligned);
    for (int r = threadIdx.x; r < S::ROWS; r += S::THREADS) {
        query_numbers query = numbers_of(a, g, t.b, t.h, t.i + r, !DELTA && !sums);
        if (sums && t.i + r < a.Lq)
            query.delta = row_sum<typename S::number>(a, g, t.b, t.h, t.i + r);
        m.rows.set(r, query, base2_factor(a, g.bias));
    }
    load_keys<S>(m, 0, a, g.k, g.v, first_keys<S::ROWS, S::COLUMNS>(a, band, t.b, t.h, t.i), band,
                 draws<S>(a), aligned);
}

/* Computes dq, and before it with `sums` delta = rowsum(dy y); or with DELTA only delta = rowsum(p
   dp). The other kernels then read delta. */
template <class S, bool DELTA>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    query_gradient(attention a, attention_tiled_backward g, bool aligned, bool sums)
{
    DYNAMIC_SHARED(queries_memory<S>, m);
    const int64_t heads = a.B * a.H, b = blockIdx.x % heads / a.H, h = blockIdx.x % heads % a.H;
    const int64_t i = (block_count(a.Lq, S::ROWS) - 1 - blockIdx.x / heads) * S::ROWS;
    const int64_t first = i + threadIdx.x / WARP * S::WARP_ROWS;
    query_results<S> found = {};
    begin<S, DELTA>(*m, a, g, {b, h, i, 0}, aligned, sums);
    held_queries<S::D, S::holds> held;
    if constexpr (S::holds) {
        cp_async_wait<0>();
        __syncthreads();
        held.q.load(m->q, threadIdx.x / WARP * S::WARP_ROWS);
        held.dy.load(m->dy, threadIdx.x / WARP * S::WARP_ROWS);
    }
    for (int stage = 0;; stage ^= 1) {
        cp_async_wait<0>();
        __syncthreads(); /* the tile is loaded, and no thread reads the previous one any more */
        mma_tile next = m->tile[stage];
        const bool some = next.kind == SOME, splits = S::splits && !DELTA;
        if (next.kind == NOTHING)
            break;
        next_keys<S::ROWS, S::COLUMNS>(a, m->band, next);
        load_keys<S>(*m, stage ^ 1, a, g.k, g.v, next, m->band, draws<S>(a), aligned);
        const bool careful = !DELTA && some && m->in_k.find(m->k[stage], [&](int row) {
            return whole_row<S::COLUMNS / 32>(m->bits[stage].keep[row]);
        });
        if (first < a.Lq && splits && !some)
            add_tile<S, DELTA>(*m, stage, a, g, held, true, false, found);
        else if (first < a.Lq)
            add_tile<S, DELTA>(*m, stage, a, g, held, !splits && !some, careful, found);
    }
    if (first < a.Lq && DELTA)
        store_delta<S>(a, g, {b, h, i, 0}, found.delta);
    if (first >= a.Lq || DELTA)
        return;
    with_rows<typename S::number>(g.part, g.dq, a.q, b, h, [&](auto dq_rows) {
        const auto to = rows_from(dq_rows, first);
        store_rows<S::D, S::M>(found.dq, to, a.Lq - first, a.D, g.dq.fresh, (float)a.scale);
        m->in_k.show((int)(first - i), S::WARP_ROWS, to, a.Lq - first, a.D);
    });
}

template <class S, bool DELTA> bool queries_fit()
{
    return block_fits<queries_memory<S>, query_gradient<S, DELTA>>();
}

template <class S, bool DELTA>
void launch_queries(const attention &a, const attention_tiled_backward &g, bool aligned, bool sums)
{
    const int64_t blocks = a.B * a.H * block_count(a.Lq, S::ROWS);
    if (blocks > 0)
        LAUNCH((query_gradient<S, DELTA>), dim3((unsigned)blocks), dim3(S::THREADS),
               sizeof(queries_memory<S>), stream, a, g, aligned, sums);
}

/* Calls f(shape): only the type of its argument counts. */
template <class T, class F> auto with_queries_shape(const attention &a, const void *bias, F f)
{
    if constexpr (std::is_same_v<T, float>)
        return with_tf32_size(a, [&](auto D) { return f(tf32_queries_shape<D()>()); });
    else
        return with_shape(a, bias, [&](auto D, auto general) {
            if constexpr (D() <= LARGEST_SPLIT)
                return f(small_queries_shape<D(), general()>());
            else
                return f(queries_shape<D()>());
        });
}

} // namespace

template <class T>
bool attention_mma_queries_fit(const attention &a, const attention_tiled_backward &g)
{
    return with_queries_shape<T>(a, g.bias,
                                 [](auto s) { return queries_fit<decltype(s), false>(); });
}

bool attention_mma_delta_fits(const attention &a, const attention_tiled_backward &g)
{
    return with_queries_shape<bf16>(a, g.bias,
                                    [](auto s) { return queries_fit<decltype(s), true>(); });
}

template <class T>
void attention_mma_queries(const attention &a, const attention_tiled_backward &g, bool aligned,
                           bool sums)
{
    with_queries_shape<T>(a, g.bias,
                          [&](auto s) { launch_queries<decltype(s), false>(a, g, aligned, sums); });
}

void attention_mma_delta(const attention &a, const attention_tiled_backward &g, bool aligned)
{
    with_queries_shape<bf16>(
        a, g.bias, [&](auto s) { launch_queries<decltype(s), true>(a, g, aligned, false); });
}

template bool attention_mma_queries_fit<bf16>(const attention &, const attention_tiled_backward &);
template bool attention_mma_queries_fit<float>(const attention &, const attention_tiled_backward &);
template void attention_mma_queries<bf16>(const attention &, const attention_tiled_backward &, bool,
                                          bool);
template void attention_mma_queries<float>(const attention &, const attention_tiled_backward &,
                                           bool, bool);
