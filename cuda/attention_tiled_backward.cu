/*
 * The backward of tiled attention (Dao et al. 2022): each tile's weights are computed again, from
 * the row's largest score m and its sum of exponentials l, and no tile is kept.
 *
 *     p = exp(scale q k' + bias - m) / l     a, the softmax of the forward
 *     m = dropout(p)                         dv += m' dy
 *     dp = dropout(dy v')
 *     ds = p (dp - delta)                    delta = rowsum(p dp), which is rowsum(dy y)
 *     dq += scale ds k    dk += scale ds' q    dbias += ds
 *
 * A block makes one piece of one gradient, and goes through all tiles that add to it. So tiles are
 * computed once for each piece, and no two blocks add to the same number.
 */
#include "cuda/attention_steps.cuh"
#include "cuda/attention_tiled.cuh"

namespace
{

/* delta = rowsum(dy y), a group of threads for each query */
template <class T, int GROUP>
__global__ void row_sums(int64_t rows, int64_t Dv, attention a, attention_tiled_backward g)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const int64_t head = group.row / a.Lq, i = group.row % a.Lq;
    const T *y = rows_from(rows_of<T>(g.y, a.y, head / a.H, head % a.H), i).at;
    const T *dy = rows_from(rows_of<T>(g.dy, a.y, head / a.H, head % a.H), i).at;
    T sum = 0;
    for (int64_t d = group.lane; d < Dv; d += GROUP)
        sum += dy[d] * y[d];
    sum = group.sum(sum);
    if (group.lane == 0)
        ((T *)g.delta)[group.row] = sum;
}

/* What a tile is computed for. */
enum tile_purpose { WEIGHTS, SCORE_GRADIENT };

/* The tile's weights after dropout, or the gradient ds of its scores, into shared memory. */
template <class T>
__device__ void compute_tile(tile_memory<T> &m, const attention &a,
                             const attention_tiled_backward &g, tile_place t, tile_purpose purpose)
{
    const tile_operands<T> of(a, t, g.q, g.k, g.v, g.dy);
    const bool drop = a.dropout.threshold > 0;
    const T *delta = (const T *)g.delta + (t.b * a.H + t.h) * a.Lq + t.i;
    T p[4][PAIRS], dp[4][PAIRS];
    tile_weights(m, a, t, of, (const T *)g.bias, (const T *)g.stats, p);
    if (drop)
        tile_stay(m, a, t);
    if (purpose == SCORE_GRADIENT)
        tile_weight_gradient(m, a, of, dp);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < PAIRS; c++) {
            const int row = tile_row(r), column = tile_column(c);
            if (purpose == WEIGHTS)
                m.p[row][column] =
                    drop ? tile_drop(m, (T)a.dropout.scale, row, column, p[r][c]) : p[r][c];
            else
                m.p[row][column] =
                    tile_keeps(m, row, column) ? p[r][c] * (dp[r][c] - delta[row]) : 0;
        }
    __syncthreads();
}

/* dq_i += scale sum_j ds_ij k_j */
template <class T> __global__ void query_gradient(attention a, attention_tiled_backward g)
{
    SHARED(tile_memory<T>, m);
    const int64_t down = tile_count(a.Lq), head = blockIdx.x / down;
    const int64_t column = blockIdx.y * (int64_t)COLUMNS;
    tile_place t = {head / a.H, head % a.H, blockIdx.x % down * TILE, 0};
    piece<T> dq;
    for (; t.j < a.Lk; t.j += TILE) {
        if (!tile_in_range(a, t))
            continue;
        const tile_kept kept = tile_keep(m, a, t);
        if (!kept.any)
            continue;
        compute_tile(m, a, g, t, SCORE_GRADIENT);
        const tile_operands<T> of(a, t, g.q, g.k, g.v, g.dy);
        dq.template add<false>(m, kept.whole, of.k, of.keys, column, a.D);
    }
    dq.store(rows_from(rows_in<T>(g.dq.data, a.q, t.b, t.h), t.i), g.dq.fresh,
             smaller(a.Lq - t.i, TILE), column, a.D, (T)a.scale);
}

/* dk_j += scale sum_i ds_ij q_i or dv_j += sum_i m_ij dy_i, over the heads that share them */
template <class T>
__global__ void key_gradient(attention a, attention_tiled_backward g, tile_purpose purpose)
{
    SHARED(tile_memory<T>, m);
    const int64_t across = tile_count(a.Lk), unit = blockIdx.x / across, group = unit % a.G;
    const int64_t column = blockIdx.y * (int64_t)COLUMNS, shared = a.H / a.G;
    const bool dv = purpose == WEIGHTS;
    tile_place t = {unit / a.G, 0, 0, blockIdx.x % across * TILE};
    piece<T> sum;
    for (t.h = group * shared; t.h < (group + 1) * shared; t.h++)
        for (t.i = 0; t.i < a.Lq; t.i += TILE) {
            if (!tile_in_range(a, t))
                continue;
            const tile_kept kept = tile_keep(m, a, t);
            if (!kept.any)
                continue;
            compute_tile(m, a, g, t, purpose);
            const tile_operands<T> of(a, t, g.q, g.k, g.v, g.dy);
            sum.template add<true>(m, kept.whole, dv ? of.dy : of.q, of.queries, column,
                                   dv ? a.Dv : a.D);
        }
    const rows<T> to =
        dv ? rows_in<T>(g.dv.data, a.v, t.b, group) : rows_in<T>(g.dk.data, a.k, t.b, group);
    sum.store(rows_from(to, t.j), dv ? g.dv.fresh : g.dk.fresh, smaller(a.Lk - t.j, TILE), column,
              dv ? a.Dv : a.D, dv ? 1 : (T)a.scale);
}

/* The scores whose bias is the same number, or of which a block sums up a tile: a range along each
   axis. */
struct bias_region {
    int64_t from[2], to[2]; /* sentences, heads */
    int64_t i, queries_end, j, keys_end;
};

__device__ bias_region region_of(const attention &a, int64_t block)
{
    const int64_t J = a.bias[3] ? tile_count(a.Lk) : 1, I = a.bias[2] ? tile_count(a.Lq) : 1;
    const int64_t H = a.bias[1] ? a.H : 1;
    const int64_t b = block / J / I / H, h = block / J / I % H;
    bias_region r;
    r.from[0] = b;
    r.to[0] = a.bias[0] ? b + 1 : a.B;
    r.from[1] = h;
    r.to[1] = a.bias[1] ? h + 1 : a.H;
    r.i = block / J % I * TILE;
    r.queries_end = a.bias[2] ? smaller(r.i + TILE, a.Lq) : a.Lq;
    r.j = block % J * TILE;
    r.keys_end = a.bias[3] ? smaller(r.j + TILE, a.Lk) : a.Lk;
    return r;
}

/* Adds up this thread's pairs of a tile of sums along the axes that the bias stretches along, and
   puts what is left to its place. */
template <class T>
__device__ void store_bias(const attention &a, const bias_region &region, double (*sum)[TILE + 1],
                           attention_gradient dbias)
{
    const int64_t queries = a.bias[2] ? region.queries_end - region.i : 1;
    const int64_t keys = a.bias[3] ? region.keys_end - region.j : 1;
    T *to = (T *)dbias.data + region.from[0] * a.bias[0] + region.from[1] * a.bias[1] +
            region.i * a.bias[2] + region.j * a.bias[3];
    for (int64_t n = threadIdx.x; n < queries * keys; n += TILE_THREADS) {
        const int64_t r = n / keys, c = n % keys;
        double total = 0;
        for (int64_t i = r; i < (a.bias[2] ? r + 1 : (int64_t)TILE); i++)
            for (int64_t j = c; j < (a.bias[3] ? c + 1 : (int64_t)TILE); j++)
                total += sum[i][j];
        T &place = to[r * a.bias[2] + c * a.bias[3]];
        place = (T)total + (dbias.fresh ? 0 : place);
    }
}

/* dbias += ds, summed over the axes along which the bias stretches, in double: many small numbers
   meet. A block for each tile of the bias. */
template <class T> __global__ void bias_gradient(attention a, attention_tiled_backward g)
{
    SHARED(tile_memory<T>, m);
    SHARED(double, sum, [TILE][TILE + 1]);
    const bias_region region = region_of(a, blockIdx.x);
    for (int n = threadIdx.x; n < TILE * TILE; n += TILE_THREADS)
        sum[n / TILE][n % TILE] = 0;
    for (int64_t b = region.from[0]; b < region.to[0]; b++)
        for (int64_t h = region.from[1]; h < region.to[1]; h++)
            for (int64_t i = region.i; i < region.queries_end; i += TILE)
                for (int64_t j = region.j; j < region.keys_end; j += TILE) {
                    const tile_place t = {b, h, i, j};
                    if (!tile_in_range(a, t) || !tile_keep(m, a, t).any)
                        continue;
                    compute_tile(m, a, g, t, SCORE_GRADIENT);
                    for (int n = threadIdx.x; n < TILE * TILE; n += TILE_THREADS)
                        sum[n / TILE][n % TILE] += (double)m.p[n / TILE][n % TILE];
                    __syncthreads();
                }
    __syncthreads();
    store_bias<T>(a, region, sum, g.dbias);
}

template <class T> void queue_bias(const attention &a, const attention_tiled_backward &g)
{
    const int64_t blocks = (a.bias[0] ? a.B : 1) * (a.bias[1] ? a.H : 1) *
                           (a.bias[2] ? tile_count(a.Lq) : 1) * (a.bias[3] ? tile_count(a.Lk) : 1);
    if (blocks > 0)
        LAUNCH((bias_gradient<T>), dim3((unsigned)blocks), dim3(TILE_THREADS), 0, stream, a, g);
}

} // namespace

template <class T>
bool attention_tiles_backward(const attention *a, const attention_tiled_backward *g)
{
    const int64_t queries = a->B * a->H * tile_count(a->Lq), keys = a->B * a->G * tile_count(a->Lk);
    const dim3 threads(TILE_THREADS);
    if (queries > 0)
        LAUNCH_ROWS(row_sums, T, a->B * a->H * a->Lq, a->Dv, *a, *g);
    if (g->dq.data && queries > 0 && a->D > 0)
        LAUNCH((query_gradient<T>), dim3((unsigned)queries, piece_count(a->D)), threads, 0, stream,
               *a, *g);
    if (g->dk.data && keys > 0 && a->D > 0)
        LAUNCH((key_gradient<T>), dim3((unsigned)keys, piece_count(a->D)), threads, 0, stream, *a,
               *g, SCORE_GRADIENT);
    if (g->dv.data && keys > 0 && a->Dv > 0)
        LAUNCH((key_gradient<T>), dim3((unsigned)keys, piece_count(a->Dv)), threads, 0, stream, *a,
               *g, WEIGHTS);
    if (g->dbias.data)
        queue_bias<T>(*a, *g);
    return launched("attention");
}

template bool attention_tiles_backward<float>(const attention *, const attention_tiled_backward *);
template bool attention_tiles_backward<double>(const attention *, const attention_tiled_backward *);
