/*
 * The gradients of keys and values in the backward of tiled attention, on tensor cores:
 *
 *     dv_j += sum_i m_ij dy_i     dk_j += scale sum_i ds_ij q_i
 *
 * over the heads that share them. A block owns keys, so its warps hold p' and ds', and visits the
 * queries.
 */
#include "cuda/attention.cuh"
#include "cuda/attention_mma_nonfinite.cuh"
#include "cuda/attention_mma_scores.cuh"

namespace
{

/* If it is GENERAL, a call may have dropout or a bias. */
template <int D, bool GENERAL>
struct keys_shape : mma_shape<D, /* warps */ 4, /* fragments */ D <= 64 ? 2 : 1,
                              /* columns */ D <= 128 ? 64 : 32> {
    static constexpr bool general = GENERAL, splits = D <= LARGEST_SPLIT && !GENERAL;
    enum { N = D <= 64 || D > 128 ? 4 : 8 }; /* fragments of queries that are processed at a time */
};

/* Of float. */
template <int D>
struct tf32_keys_shape : mma_shape<D, /* warps */ 4, /* fragments */ 1, /* columns */ 32, float> {
    static constexpr bool general = true, splits = false;
    enum { N = 4 };
};

template <class S> struct keys_memory {
    enum { P = PITCH<S::D, typename S::number> };
    typename S::number k[S::ROWS * P], v[S::ROWS * P], q[2][S::COLUMNS * P], dy[2][S::COLUMNS * P];
    pair_bits<S::COLUMNS, S::ROWS> bits[2];
    key_band band;
    query_rows<S::COLUMNS> rows[2];
    query_numbers loaded[2][S::COLUMNS]; /* what `rows` are made of */
    mma_tile tile[2];
    nonfinite<S::D, S::ROWS, S::COLUMNS, S::THREADS> in_q, in_dy;
};

/* The first query of the first tile that the band keeps for keys from j on. */
template <class S> __device__ int first_query(const key_band &band, int64_t j)
{
    return band.first_query((int)j) / S::COLUMNS * S::COLUMNS;
}

/* The next tile of queries, head after head, that is not fully masked. */
template <class S>
__device__ void next_queries(const attention &a, const key_band &band, mma_tile &tile)
{
    tile.kind = band.begins_whole((int)tile.t.i + S::COLUMNS) ? WHOLE : NOTHING;
    if (tile.kind == WHOLE) {
        tile.t.i += S::COLUMNS;
        return;
    }
    const int end = band.queries_end((int)tile.t.j + S::ROWS - 1, (int)a.Lq);
    while (tile.kind == NOTHING) {
        tile.t.i += S::COLUMNS;
        if (tile.t.i >= end) {
            tile.t.i = first_query<S>(band, tile.t.j);
            tile.t.h++;
        }
        if (tile.t.h >= tile.end || tile.t.i >= end)
            return;
        tile.kind = kind_of<OWNS_KEYS, S::COLUMNS, S::ROWS>(a, band, tile.t);
    }
}

/* The first such tile. */
template <class S>
__device__ mma_tile first_queries(const attention &a, const key_band &band, int64_t b,
                                  int64_t group, int64_t j)
{
    const int64_t shared = a.H / a.G;
    const int before = first_query<S>(band, j) - S::COLUMNS;
    mma_tile tile = {{b, group * shared, before, j}, group, (group + 1) * shared, NOTHING};
    next_queries<S>(a, band, tile);
    return tile;
}

/* Starts loading the numbers of a query, whose thread then makes its row of them; zeros beyond Lq.
 */
__device__ inline void load_numbers(query_numbers &to, const attention &a,
                                    const attention_tiled_backward &g, const tile_place &t,
                                    int64_t i, bool wanted)
{
    const int64_t row = (t.b * a.H + t.h) * a.Lq + i;
    wanted &= i < a.Lq;
    cp_async_if<4>(wanted, &to.max, (const float *)g.stats + 2 * row);
    cp_async_if<4>(wanted, &to.inverse, (const float *)g.stats + 2 * row + 1);
    cp_async_if<4>(wanted, &to.delta, (const float *)g.delta + row);
}

/* Starts loading a tile, if there is one. */
template <class S>
__device__ void load_queries(keys_memory<S> &m, int stage, const attention &a,
                             const attention_tiled_backward &g, const mma_tile &tile,
                             const key_band &band, bool aligned)
{
    const tile_place &t = tile.t;
    if (threadIdx.x == 0)
        m.tile[stage] = tile;
    if (tile.kind != NOTHING) {
        const int64_t count = a.Lq - t.i;
        load_rows<S::D, S::COLUMNS, S::THREADS>(
            m.q[stage], rows_from(rows_of<typename S::number>(g.q, a.q, t.b, t.h), t.i), count, a.D,
            aligned);
        load_rows<S::D, S::COLUMNS, S::THREADS>(
            m.dy[stage], rows_from(rows_of<typename S::number>(g.dy, a.y, t.b, t.h), t.i), count,
            a.Dv, aligned);
        set_bits<S::THREADS>(m.bits[stage], a, band, t, tile.kind,
                             S::general && a.dropout.threshold > 0);
    }
    if (threadIdx.x < S::COLUMNS)
        load_numbers(m.loaded[stage][threadIdx.x], a, g, t, t.i + threadIdx.x,
                     tile.kind != NOTHING);
    cp_async_commit();
}

/* The bits of a warp's keys for one query: kept by the mask, or by dropout. */
template <class S> __device__ uint32_t key_bits(const uint32_t (&words)[S::ROWS / 32], bool all)
{
    const int first = threadIdx.x / WARP * S::WARP_ROWS;
    return all ? ~0u : words[first / 32] >> (first % 32 + lane_group());
}

/* Bit 16 m + 8 half of a query's key_bits. */
__device__ inline bool has_key(uint32_t bits, int m, int e)
{
    return bits >> (16 * m + 8 * (e / 2)) & 1;
}

/* s_ji = scale s_ji + bias_ij for a key with queries 8 n + e % 2 from `column` on. */
template <class S>
__device__ void add_key_bias(keys_memory<S> &m, int stage, const attention &a, const bf16 *bias,
                             bool all, int column, float (&s)[S::M][S::N][4])
{
    const int first = threadIdx.x / WARP * S::WARP_ROWS;
    const tile_place &t = m.tile[stage].t;
    const int64_t *step = a.bias;
    bias += t.b * step[0] + t.h * step[1] + (t.i + column + 2 * lane_part()) * step[2] +
            (t.j + first + lane_group()) * step[3];
#pragma unroll
    for (int c = 0; c < 2 * S::N; c++) {
        const int query = c / 2 * 8 + c % 2;
        const uint32_t kept =
            key_bits<S>(m.bits[stage].keep[column + 2 * lane_part() + query], all);
#pragma unroll
        for (int r = 0; r < 2 * S::M; r++)
            if (has_key(kept, r / 2, r % 2 * 2)) {
                float &place = s[r / 2][c / 2][r % 2 * 2 + c % 2];
                place = biased_score(a, place, bias[query * step[2] + 8 * r * step[3]]);
            }
    }
}

/* Replaces scores by p', with 0 for blocked pairs. */
template <class S>
__device__ void key_weights(keys_memory<S> &m, int stage, bool all, float factor, int column,
                            float (&s)[S::M][S::N][4])
{
#pragma unroll
    for (int c = 0; c < 2 * S::N; c++) {
        const int query = column + c / 2 * 8 + 2 * lane_part() + c % 2;
        const uint32_t kept = key_bits<S>(m.bits[stage].keep[query], all);
        const float shift = m.rows[stage].shift[query], inverse = m.rows[stage].inverse[query];
#pragma unroll
        for (int r = 0; r < 2 * S::M; r++) {
            float &p = s[r / 2][c / 2][r % 2 * 2 + c % 2];
            p = has_key(kept, r / 2, r % 2 * 2) ? shifted_exp(p, factor, shift) * inverse : 0;
        }
    }
}

/* Replaces dp' by ds', with 0 for blocked pairs. */
template <class S>
__device__ void key_gradient(keys_memory<S> &m, int stage, const attention &a, bool all, int column,
                             const float (&p)[S::M][S::N][4], float (&dp)[S::M][S::N][4])
{
#pragma unroll
    for (int c = 0; c < 2 * S::N; c++) {
        const int query = column + c / 2 * 8 + 2 * lane_part() + c % 2;
        const uint32_t kept = key_bits<S>(m.bits[stage].keep[query], all);
        const uint32_t stay =
            key_bits<S>(m.bits[stage].stay[query], !S::general || a.dropout.threshold == 0);
        const float delta = m.rows[stage].delta[query];
#pragma unroll
        for (int r = 0; r < 2 * S::M; r++) {
            const int e = r % 2 * 2 + c % 2;
            float &ds = dp[r / 2][c / 2][e];
            const bool stays = has_key(stay, r / 2, e);
            ds = has_key(kept, r / 2, e)
                     ? score_gradient_of<S::general>(a, p[r / 2][c / 2][e], ds, stays, delta)
                     : 0;
        }
    }
}

/* Applies dropout to p', without its scale. */
template <class S>
__device__ void drop_weights(keys_memory<S> &m, int stage, int column, float (&p)[S::M][S::N][4])
{
#pragma unroll
    for (int c = 0; c < 2 * S::N; c++) {
        const int query = column + c / 2 * 8 + 2 * lane_part() + c % 2;
        const uint32_t stay = key_bits<S>(m.bits[stage].stay[query], false);
#pragma unroll
        for (int r = 0; r < 2 * S::M; r++)
            if (!has_key(stay, r / 2, r % 2 * 2))
                p[r / 2][c / 2][r % 2 * 2 + c % 2] = 0;
    }
}

/* Whether any pair of a warp's keys and the present queries is kept. */
template <class S> __device__ bool any_kept(const keys_memory<S> &m, int stage, int column)
{
    const int first = threadIdx.x / WARP * S::WARP_ROWS;
    const uint32_t own = ~0u >> (32 - S::WARP_ROWS) << first % 32;
    bool any = false;
    for (int n = threadIdx.x % WARP; n < 8 * S::N; n += WARP)
        any |= (m.bits[stage].keep[column + n][first / 32] & own) != 0;
    return __any_sync(0xffffffffu, any);
}

/* The kept queries of a tile for a key. */
template <class S> __device__ uint64_t kept_queries(const keys_memory<S> &m, int stage, int key)
{
    uint64_t kept = 0;
    for (int n = 0; n < S::COLUMNS; n++)
        kept |= (uint64_t)(m.bits[stage].keep[n][key / 32] >> key % 32 & 1) << n;
    return kept;
}

/* What a block computes: dk, dv or both, as registers allow. */
enum wanted { DK = 1, DV = 2 };

template <class S> struct key_sums {
    float dk[S::M][S::D / 8][4], dv[S::M][S::D / 8][4];
};

/* dk += ds' q and dv += m' dy over a tile. Inlined, so that a constant `all` leaves one way. */
template <class S, int WANTED>
__device__ __forceinline__ void add_tile(keys_memory<S> &m, int stage, const attention &a,
                                         const attention_tiled_backward &g, bool all, bool careful,
                                         key_sums<S> &sums)
{
    const int first = threadIdx.x / WARP * S::WARP_ROWS;
    const typename S::number *q = m.q[stage], *dy = m.dy[stage];
#pragma unroll 1
    for (int column = 0; column < S::COLUMNS; column += 8 * S::N) {
        if (!all && !any_kept(m, stage, column))
            continue;
        float p[S::M][S::N][4], ds[S::M][S::N][4];
        pair_products<S::D, S::M, S::N>(m.k, first, q, column, p);
        if (S::general && BIASES<typename S::number> && g.bias)
            add_key_bias(m, stage, a, (const bf16 *)g.bias, all, column, p);
        key_weights(m, stage, all, base2_factor(a, g.bias), column, p);
        after_product(all);
        if (WANTED & DK) {
            pair_products<S::D, S::M, S::N>(m.v, first, dy, column, ds);
            key_gradient(m, stage, a, all, column, p, ds);
            after_product(all);
        }
        if (WANTED & DV) {
            if (S::general && a.dropout.threshold > 0)
                drop_weights(m, stage, column, p);
            add_products<S::D, S::M, S::N>(p, dy, column, careful, sums.dv);
        }
        after_product(all);
        if (WANTED & DK)
            add_products<S::D, S::M, S::N>(ds, q, column, careful, sums.dk);
    }
}

/* The place of the block's keys is read from a tile, which takes no registers during the loop. */
template <class S, int WANTED>
__device__ void store(keys_memory<S> &m, const attention &a, const attention_tiled_backward &g,
                      const key_sums<S> &sums)
{
    const tile_place &t = m.tile[0].t;
    const int64_t group = m.tile[0].group;
    const int first = threadIdx.x / WARP * S::WARP_ROWS;
    const int64_t count = a.Lk - t.j - first;
    const float dropped = a.dropout.threshold > 0 ? (float)a.dropout.scale : 1;
    if (WANTED & DK && g.dk.data)
        with_rows<typename S::number>(g.part, g.dk, a.k, t.b, group, [&](auto all) {
            const auto to = rows_from(all, t.j + first);
            store_rows<S::D, S::M>(sums.dk, to, count, a.D, g.dk.fresh, (float)a.scale);
            m.in_q.show(first, S::WARP_ROWS, to, count, a.D);
        });
    if (WANTED & DV && g.dv.data)
        with_rows<typename S::number>(g.part, g.dv, a.v, t.b, group, [&](auto all) {
            const auto to = rows_from(all, t.j + first);
            store_rows<S::D, S::M>(sums.dv, to, count, a.Dv, g.dv.fresh, dropped);
            m.in_dy.show(first, S::WARP_ROWS, to, count, a.Dv);
        });
}

/* Whether the warp has keys. Read from a tile too. */
template <class S> __device__ bool has_keys(const keys_memory<S> &m, int stage, const attention &a)
{
    return (int)m.tile[stage].t.j + (int)(threadIdx.x / WARP * S::WARP_ROWS) < (int)a.Lk;
}

/* The first keys of all groups first: with a causal mask they have the most queries. */
template <class S, int WANTED>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    key_gradients(attention a, attention_tiled_backward g, bool aligned)
{
    DYNAMIC_SHARED(keys_memory<S>, m);
    const int64_t groups = a.B * a.G, b = blockIdx.x % groups / a.G;
    const int64_t group = blockIdx.x % groups % a.G, j = blockIdx.x / groups * S::ROWS;
    const tile_place own = {b, group * (a.H / a.G), 0, j};
    const tile_operands<typename S::number> of(a, own, g.q, g.k, g.v, g.dy);
    const float factor = base2_factor(a, g.bias);
    key_sums<S> sums;
    clear<S::D, S::M>(sums.dk);
    clear<S::D, S::M>(sums.dv);
    key_band band;
    band.set(a, b, g.bias);
    band.set_whole_queries<S::COLUMNS, S::ROWS>(a, (int)j);
    if (threadIdx.x == 0)
        m->band = band;
    m->in_q.begin();
    m->in_dy.begin();
    load_rows<S::D, S::ROWS, S::THREADS>(m->k, of.k, a.Lk - j, a.D, aligned);
    load_rows<S::D, S::ROWS, S::THREADS>(m->v, of.v, a.Lk - j, a.Dv, aligned);
    load_queries(*m, 0, a, g, first_queries<S>(a, band, b, group, j), band, aligned);
    for (int stage = 0;; stage ^= 1) {
        cp_async_wait<0>();
        if (threadIdx.x < S::COLUMNS)
            m->rows[stage].set(threadIdx.x, m->loaded[stage][threadIdx.x], factor);
        __syncthreads(); /* the tile is loaded, and no thread reads the previous one any more */
        mma_tile next = m->tile[stage];
        const bool some = next.kind == SOME;
        if (next.kind == NOTHING)
            break;
        next_queries<S>(a, m->band, next);
        load_queries(*m, stage ^ 1, a, g, next, m->band, aligned);
        const auto kept = [&](int key) { return kept_queries(*m, stage, key); };
        const bool in_q = some && m->in_q.find(m->q[stage], kept);
        const bool careful = (some && m->in_dy.find(m->dy[stage], kept)) || in_q;
        if (has_keys(*m, stage, a) && S::splits && !some)
            add_tile<S, WANTED>(*m, stage, a, g, true, false, sums);
        else if (has_keys(*m, stage, a))
            add_tile<S, WANTED>(*m, stage, a, g, !S::splits && !some, careful, sums);
    }
    if (has_keys(*m, 0, a))
        store<S, WANTED>(*m, a, g, sums);
}

template <class S, int WANTED> bool keys_fit()
{
    return block_fits<keys_memory<S>, key_gradients<S, WANTED>>();
}

template <class S, int WANTED>
void launch_keys(const attention &a, const attention_tiled_backward &g, bool aligned)
{
    const int64_t blocks = a.B * a.G * block_count(a.Lk, S::ROWS);
    if (blocks > 0)
        LAUNCH((key_gradients<S, WANTED>), dim3((unsigned)blocks), dim3(S::THREADS),
               sizeof(keys_memory<S>), stream, a, g, aligned);
}

/* Calls f(shape): only the type of its argument counts. */
template <class T, class F> auto with_keys_shape(const attention &a, const void *bias, F f)
{
    if constexpr (std::is_same_v<T, float>)
        return with_tf32_size(a, [&](auto D) { return f(tf32_keys_shape<D()>()); });
    else
        return with_shape(a, bias,
                          [&](auto D, auto general) { return f(keys_shape<D(), general()>()); });
}

/* For the largest heads, one sum fills the registers, so there are two launches. */
template <class S> constexpr bool BOTH = S::D * sizeof(typename S::number) <= 256;

} // namespace

template <class T>
bool attention_mma_keys_fit(const attention &a, const attention_tiled_backward &g)
{
    return with_keys_shape<T>(a, g.bias, [](auto shape) {
        typedef decltype(shape) S;
        if constexpr (BOTH<S>)
            return keys_fit<S, DK | DV>();
        else
            return keys_fit<S, DK>() && keys_fit<S, DV>();
    });
}

template <class T>
void attention_mma_keys(const attention &a, const attention_tiled_backward &g, bool aligned)
{
    with_keys_shape<T>(a, g.bias, [&](auto shape) {
        typedef decltype(shape) S;
        if constexpr (BOTH<S>) {
            launch_keys<S, DK | DV>(a, g, aligned);
        } else {
            if (g.dk.data)
                launch_keys<S, DK>(a, g, aligned);
            if (g.dv.data)
                launch_keys<S, DV>(a, g, aligned);
        }
    });
}

template bool attention_mma_keys_fit<bf16>(const attention &, const attention_tiled_backward &);
template bool attention_mma_keys_fit<float>(const attention &, const attention_tiled_backward &);
template void attention_mma_keys<bf16>(const attention &, const attention_tiled_backward &, bool);
template void attention_mma_keys<float>(const attention &, const attention_tiled_backward &, bool);
