/*
 * The backward of tiled attention (Dao et al. 2022): it recomputes the weights of each tile from
 * the row's largest score m and its sum of exponentials l, and stores no tile.
 *
 *     p = exp(scale q k' + bias - m) / l     a, the softmax of the forward
 *     m = dropout(p)                         dv += m' dy
 *     dp = dropout(dy v')
 *     ds = p (dp - delta)                    delta = rowsum(p dp), which is rowsum(dy y)
 *     dq += scale ds k    dk += scale ds' q    dbias += ds
 *
 * A block computes one piece of dq, of dk and dv, or of dbias, and visits all tiles that add to it.
 * So tiles are computed once for each piece, and no two blocks add to the same number.
 */
#include "cuda/attention.cuh"
#include "cuda/attention_bias.cuh"
#include "cuda/attention_tiled.cuh"

namespace
{

/* delta = rowsum(dy y), one group of threads for each query */
template <class T, int GROUP>
__global__ void row_sums(int64_t rows, int64_t Dv, attention a, attention_tiled_backward g)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const int64_t head = group.row / a.Lq, i = group.row % a.Lq;
    const T *y = rows_from(rows_of<T>(g.y, a.y, head / a.H, head % a.H), i).at;
    const T *dy = rows_from(rows_of<T>(g.dy, a.y, head / a.H, head % a.H), i).at;
    typedef real_of<T> real;
    real sum = 0;
    for (int64_t d = group.lane; d < Dv; d += GROUP)
        sum += (real)dy[d] * (real)y[d];
    sum = group.sum(sum);
    if (group.lane == 0)
        ((real *)g.delta)[group.row] = sum;
}

/* p for this thread's pairs of a tile, and the bits of dropout. */
template <class T>
__device__ void weights(tile_memory<real_of<T>> &m, const attention &a,
                        const attention_tiled_backward &g, tile_place t, real_of<T> (&p)[4][PAIRS])
{
    const tile_operands<T> of(a, t, g.q, g.k, g.v, g.dy);
    tile_weights(m, a, t, of, (const T *)g.bias, (const real_of<T> *)g.stats, p);
    if (a.dropout.threshold > 0)
        tile_stay(m, a, t);
}

/* m = dropout(p), into shared memory. */
template <class real>
__device__ void put_weights(tile_memory<real> &m, const attention &a, const real (&p)[4][PAIRS])
{
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < PAIRS; c++) {
            const int row = tile_row(r), column = tile_column(c);
            m.p[row][column] = a.dropout.threshold > 0
                                   ? tile_drop(m, (real)a.dropout.scale, row, column, p[r][c])
                                   : p[r][c];
        }
}

/* ds = p (dp - delta), into shared memory. */
template <class T>
__device__ void put_score_gradient(tile_memory<real_of<T>> &m, const attention &a,
                                   const attention_tiled_backward &g, tile_place t,
                                   const real_of<T> (&p)[4][PAIRS])
{
    typedef real_of<T> real;
    const tile_operands<T> of(a, t, g.q, g.k, g.v, g.dy);
    const real *delta = (const real *)g.delta + (t.b * a.H + t.h) * a.Lq + t.i;
    real dp[4][PAIRS];
    tile_weight_gradient(m, a, of, dp);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < PAIRS; c++) {
            const int row = tile_row(r), column = tile_column(c);
            m.p[row][column] = tile_keeps(m, row, column) ? p[r][c] * (dp[r][c] - delta[row]) : 0;
        }
    __syncthreads();
}

/* dq_i += scale sum_j ds_ij k_j */
template <class T> __global__ void query_gradient(attention a, attention_tiled_backward g)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    const int64_t down = tile_count(a.Lq), head = blockIdx.x / down;
    const int64_t column = blockIdx.y * (int64_t)COLUMNS;
    tile_place t = {head / a.H, head % a.H, blockIdx.x % down * TILE, 0};
    piece<real> dq;
    for (; t.j < a.Lk; t.j += TILE) {
        if (!tile_in_range(a, t))
            continue;
        const tile_kept kept = tile_keep(m, a, t);
        if (!kept.any)
            continue;
        real p[4][PAIRS];
        weights<T>(m, a, g, t, p);
        put_score_gradient<T>(m, a, g, t, p);
        const tile_operands<T> of(a, t, g.q, g.k, g.v, g.dy);
        dq.template add<false>(m, kept.whole, of.k, of.keys, column, a.D);
    }
    with_rows<T>(g.part, g.dq, a.q, t.b, t.h, [&](auto to) {
        dq.store(rows_from(to, t.i), g.dq.fresh, smaller(a.Lq - t.i, TILE), column, a.D,
                 (real)a.scale);
    });
}

/* What a block computes: dk, dv or both, as registers allow. */
enum wanted { DK = 1, DV = 2 };

/* dk_j += scale sum_i ds_ij q_i and dv_j += sum_i m_ij dy_i, over the heads that share them */
template <class T, int WANTED>
__global__ void key_gradients(attention a, attention_tiled_backward g)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    const int64_t across = tile_count(a.Lk), unit = blockIdx.x / across, group = unit % a.G;
    const int64_t column = blockIdx.y * (int64_t)COLUMNS, shared = a.H / a.G;
    const bool has_dk = (WANTED & DK) && g.dk.data && column < a.D;
    const bool has_dv = (WANTED & DV) && g.dv.data && column < a.Dv;
    tile_place t = {unit / a.G, 0, 0, blockIdx.x % across * TILE};
    piece<real> dk, dv;
    for (t.h = group * shared; t.h < (group + 1) * shared; t.h++)
        for (t.i = 0; t.i < a.Lq; t.i += TILE) {
            if (!tile_in_range(a, t))
                continue;
            const tile_kept kept = tile_keep(m, a, t);
            if (!kept.any)
                continue;
            const tile_operands<T> of(a, t, g.q, g.k, g.v, g.dy);
            real p[4][PAIRS];
            weights<T>(m, a, g, t, p);
            if (has_dv) {
                put_weights(m, a, p);
                dv.template add<true>(m, kept.whole, of.dy, of.queries, column, a.Dv);
            }
            if (has_dk) {
                put_score_gradient<T>(m, a, g, t, p);
                dk.template add<true>(m, kept.whole, of.q, of.queries, column, a.D);
            }
        }
    const int64_t keys = smaller(a.Lk - t.j, TILE);
    if (has_dk)
        with_rows<T>(g.part, g.dk, a.k, t.b, group, [&](auto to) {
            dk.store(rows_from(to, t.j), g.dk.fresh, keys, column, a.D, (real)a.scale);
        });
    if (has_dv)
        with_rows<T>(g.part, g.dv, a.v, t.b, group, [&](auto to) {
            dv.store(rows_from(to, t.j), g.dv.fresh, keys, column, a.Dv, 1);
        });
}

/* dbias += ds, summed in double over the axes on which the bias is broadcast. One block for each
   tile of the bias. */
template <class T> __global__ void bias_gradient(attention a, attention_tiled_backward g)
{
    SHARED(tile_memory<real_of<T>>, m);
    SHARED(double, sum, [TILE][TILE + 1]);
    const bias_region<TILE> region(a, blockIdx.x);
    for (int n = threadIdx.x; n < TILE * TILE; n += TILE_THREADS)
        sum[n / TILE][n % TILE] = 0;
    for (int64_t b = region.from[0]; b < region.to[0]; b++)
        for (int64_t h = region.from[1]; h < region.to[1]; h++)
            for (int64_t i = region.i; i < region.queries_end; i += TILE)
                for (int64_t j = region.j; j < region.keys_end; j += TILE) {
                    const tile_place t = {b, h, i, j};
                    if (!tile_in_range(a, t) || !tile_keep(m, a, t).any)
                        continue;
                    real_of<T> p[4][PAIRS];
                    weights<T>(m, a, g, t, p);
                    put_score_gradient<T>(m, a, g, t, p);
                    for (int n = threadIdx.x; n < TILE * TILE; n += TILE_THREADS)
                        sum[n / TILE][n % TILE] += (double)m.p[n / TILE][n % TILE];
                }
    __syncthreads();
    if (sizeof(T) < sizeof(real_of<T>) && g.part)
        region.template store<real_of<T>, TILE_THREADS>(a, sum, g.dbias);
    else
        region.template store<T, TILE_THREADS>(a, sum, g.dbias);
}

template <class T> void queue_queries(const attention &a, const attention_tiled_backward &g)
{
    const int64_t blocks = a.B * a.H * tile_count(a.Lq);
    if (blocks > 0 && a.D > 0)
        LAUNCH((query_gradient<T>), dim3((unsigned)blocks, piece_count(a.D)), dim3(TILE_THREADS), 0,
               stream, a, g);
}

template <class T, int WANTED>
void queue_keys(const attention &a, const attention_tiled_backward &g)
{
    const int64_t blocks = a.B * a.G * tile_count(a.Lk);
    const int64_t dk = (WANTED & DK) && g.dk.data ? a.D : 0;
    const int64_t dv = (WANTED & DV) && g.dv.data ? a.Dv : 0;
    if (blocks > 0 && dk + dv > 0)
        LAUNCH((key_gradients<T, WANTED>), dim3((unsigned)blocks, piece_count(dk > dv ? dk : dv)),
               dim3(TILE_THREADS), 0, stream, a, g);
}

template <class T> void queue_bias(const attention &a, const attention_tiled_backward &g)
{
    const int64_t blocks = bias_region<TILE>::count(a);
    if (blocks > 0)
        LAUNCH((bias_gradient<T>), dim3((unsigned)blocks), dim3(TILE_THREADS), 0, stream, a, g);
}

} // namespace

template <class T> void attention_row_sums(const attention &a, const attention_tiled_backward &g)
{
    const int64_t rows = a.B * a.H * a.Lq;
    LAUNCH_ROWS(row_sums, T, rows, a.Dv, a, g);
}

template <class T>
bool attention_tiles_backward(const attention *a, const attention_tiled_backward *g)
{
    if constexpr (!std::is_same_v<T, double>)
        if (attention_mma_backward<T>(*a, *g))
            return launched("attention");
    attention_row_sums<T>(*a, *g);
    if (g->dq.data)
        queue_queries<T>(*a, *g);
    if constexpr (std::is_same_v<T, double>) { /* one sum fills the registers */
        queue_keys<T, DK>(*a, *g);
        queue_keys<T, DV>(*a, *g);
    } else {
        queue_keys<T, DK | DV>(*a, *g);
    }
    if (g->dbias.data)
        queue_bias<T>(*a, *g);
    return launched("attention");
}

template bool attention_tiles_backward<float>(const attention *, const attention_tiled_backward *);
template bool attention_tiles_backward<double>(const attention *, const attention_tiled_backward *);

template bool attention_tiles_backward<bf16>(const attention *, const attention_tiled_backward *);
template void attention_row_sums<float>(const attention &, const attention_tiled_backward &);
template void attention_row_sums<bf16>(const attention &, const attention_tiled_backward &);
