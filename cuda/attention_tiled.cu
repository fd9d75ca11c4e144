/*
 * Tiled attention: online softmax over tiles of keys (Milakov and Gimelshein 2018).
 *
 *     for each tile of keys:   s = scale q k' + bias          without blocked pairs
 *                              m' = max(m, rowmax(s))         the largest score so far
 *                              p = exp(s - m')
 *                              l = l exp(m - m') + rowsum(p)
 *                              y = y exp(m - m') + dropout(p) v
 *     at the end:              y = y / l; saves m and 1 / l (log-sum-exp is m + log l)
 */
#include "cuda/attention.cuh"
#include "cuda/attention_tiled.cuh"

namespace
{

enum { MAX, SUM, FACTOR }; /* rows of tile_memory.row */

/* p = exp(scale (s - max)) with the largest score so far, for a tile of scores in shared memory;
   one warp for each row. */
template <class T> __device__ void exponentials(tile_memory<T> &m, T scale)
{
    const int lane = threadIdx.x % WARP;
    for (int r = threadIdx.x / WARP; r < TILE; r += TILE_THREADS / WARP) {
        const bool kept = tile_keeps(m, r, lane);
        const T s = kept ? m.p[r][lane] : (T)-INFINITY, before = m.row[MAX][r];
        const T max = real_max(before, warp_reduce(s, greater()));
        const T shift = max == (T)-INFINITY ? 0 : max; /* only -infinity or NaN */
        const T p = kept ? real_exp(scale * (s - shift)) : 0;
        const T sum = warp_reduce(p, add());
        m.p[r][lane] = p;
        __syncwarp();
        if (lane == 0) {
            const T factor = real_exp(scale * (before - shift));
            m.row[MAX][r] = max;
            m.row[SUM][r] = m.row[SUM][r] * factor + sum;
            m.row[FACTOR][r] = factor;
        }
    }
    __syncthreads();
}

/* The tile's scores, into shared memory. */
template <class T>
__device__ void scores(tile_memory<real_of<T>> &m, const attention &a, const attention_tiled &f,
                       tile_place t)
{
    const tile_operands<T> of(a, t, f.q, f.k, f.v, f.y);
    real_of<T> s[4][PAIRS];
    pair_products(m, of.q, of.queries, of.k, of.keys, a.D, s);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < PAIRS; c++) {
            const int row = tile_row(r), column = tile_column(c);
            m.p[row][column] = tile_keeps(m, row, column)
                                   ? tile_score(a, t, (const T *)f.bias, row, column, s[r][c])
                                   : 0;
        }
    __syncthreads();
}

template <class T> __device__ void drop_tile(tile_memory<T> &m, const attention &a, tile_place t)
{
    tile_stay(m, a, t);
    for (int n = threadIdx.x; n < TILE * TILE; n += TILE_THREADS)
        m.p[n / TILE][n % TILE] =
            tile_drop(m, (T)a.dropout.scale, n / TILE, n % TILE, m.p[n / TILE][n % TILE]);
}

/* Starts the rows: from nothing, or from the statistics over other keys. */
template <class real>
__device__ void begin(tile_memory<real> &m, uint32_t *seen, const real *before, int64_t queries)
{
    const int r = threadIdx.x;
    if (r < TILE) {
        const bool begun = before && r < queries && !(before[2 * r + 1] < 0); /* it may be NaN */
        m.row[MAX][r] = begun ? before[2 * r] : (real)-INFINITY;
        m.row[SUM][r] = begun ? before[2 * r + 1] : 0;
        seen[r] = begun;
    }
    __syncthreads();
}

/* Stores the sums, to which other keys are added later. */
template <class real>
__device__ void leave(const tile_memory<real> &m, const attention &a, const attention_tiled &f,
                      tile_place t, const uint32_t *seen, const piece<real> &y, int64_t column)
{
    const int64_t queries = smaller(a.Lq - t.i, TILE);
    real *stats = (real *)f.stats + 2 * ((t.b * a.H + t.h) * a.Lq + t.i);
    if (column == 0 && threadIdx.x < queries) {
        const int r = threadIdx.x;
        stats[2 * r] = m.row[MAX][r];
        stats[2 * r + 1] = seen[r] ? m.row[SUM][r] : -1;
    }
    y.store(rows_from(rows_in<real>(f.sums, a.y, t.b, t.h), t.i), true, queries, column, a.Dv, 1);
}

/* Stores y / l, m and 1 / l; zeros for a fully masked query, as the mask alone decides. */
template <class T>
__device__ void finish(tile_memory<real_of<T>> &m, const attention &a, const attention_tiled &f,
                       tile_place t, const uint32_t *seen, piece<real_of<T>> &y, int64_t column)
{
    typedef real_of<T> real;
    const int64_t queries = smaller(a.Lq - t.i, TILE);
    real *stats = (real *)f.stats + 2 * ((t.b * a.H + t.h) * a.Lq + t.i);
    if (column == 0 && threadIdx.x < queries) {
        const int r = threadIdx.x;
        const real sum = m.row[SUM][r];
        stats[2 * r] = seen[r] ? m.row[MAX][r] : 0;
        stats[2 * r + 1] = !seen[r] ? 0 : sum == 0 ? (real)NAN : 1 / sum; /* all scores -infinity */
    }
    for (int r = 0; r < 4; r++) {
        const real sum = m.row[SUM][tile_row(r)];
        for (int c = 0; c < WIDTH; c++)
            y.at[r][c] = !seen[tile_row(r)] ? 0 : sum == 0 ? (real)NAN : y.at[r][c] / sum;
    }
    y.store(rows_from(rows_in<T>(f.y, a.y, t.b, t.h), t.i), true, queries, column, a.Dv, 1);
}

/* `before`: the statistics over other keys, or NULL. */
template <class T>
__global__ void forward_tiles(attention a, attention_tiled f, const real_of<T> *before)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    SHARED(uint32_t, seen, [TILE]);
    const int64_t down = tile_count(a.Lq), head = blockIdx.x / down,
                  column = blockIdx.y * (int64_t)COLUMNS;
    tile_place t = {head / a.H, head % a.H, blockIdx.x % down * TILE, 0};
    const int64_t queries = smaller(a.Lq - t.i, TILE);
    piece<real> y;
    begin(m, seen, before ? before + 2 * (head * a.Lq + t.i) : nullptr, queries);
    if (before)
        y.load(rows_from(rows_in<real>(f.sums, a.y, t.b, t.h), t.i), queries, column, a.Dv);
    for (; t.j < a.Lk; t.j += TILE) {
        if (!tile_in_range(a, t))
            continue;
        const tile_kept kept = tile_keep(m, a, t);
        if (!kept.any)
            continue;
        if (threadIdx.x < TILE)
            seen[threadIdx.x] |= m.keep[threadIdx.x];
        scores<T>(m, a, f, t);
        exponentials(m, score_factor(a, (const T *)f.bias));
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < WIDTH; c++)
                y.at[r][c] *= m.row[FACTOR][tile_row(r)];
        if (a.dropout.threshold > 0)
            drop_tile(m, a, t);
        const tile_operands<T> of(a, t, f.q, f.k, f.v, f.y);
        y.template add<false>(m, kept.whole, of.v, of.keys, column, a.Dv);
    }
    if (f.goes_on)
        leave(m, a, f, t, seen, y, column);
    else
        finish<T>(m, a, f, t, seen, y, column);
}

/* The statistics are copied first if they are begun, since the blocks of a query's pieces read
   them while one of these writes the new ones. */
template <class T> bool launch_forward(const attention &a, const attention_tiled &f)
{
    const int64_t rows = a.B * a.H * a.Lq, blocks = a.B * a.H * tile_count(a.Lq);
    const size_t bytes = f.begun ? (size_t)(2 * rows) * sizeof(real_of<T>) : 0;
    const scratch copy("attention", bytes);
    if (!copy || (f.begun && !cuda_ok(cudaMemcpyAsync(copy.as<void>(), f.stats, bytes,
                                                      cudaMemcpyDeviceToDevice, stream),
                                      "attention")))
        return false;
    if (blocks > 0)
        LAUNCH((forward_tiles<T>), dim3((unsigned)blocks, piece_count(a.Dv)), dim3(TILE_THREADS), 0,
               stream, a, f, f.begun ? copy.as<real_of<T>>() : nullptr);
    return launched("attention");
}

/* Rows of the weights, recomputed, or of their gradient: one tile of the requested rows, (B, H,
   count, Lk), from query `first` on. Weights are of f, their gradient is of g. */
template <class T>
__global__ void make_rows(attention a, attention_tiled f, attention_tiled_backward g, bool weights,
                          int64_t first, int64_t count, T *to)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    const int64_t across = tile_count(a.Lk), down = tile_count(count);
    const int64_t head = blockIdx.x / across / down;
    const tile_place t = {head / a.H, head % a.H, first + blockIdx.x / across % down * TILE,
                          blockIdx.x % across * TILE};
    tile_keep(m, a, t);
    real x[4][PAIRS];
    if (weights) {
        const tile_operands<T> of(a, t, f.q, f.k, f.v, f.y);
        tile_weights(m, a, t, of, (const T *)f.bias, (const real *)f.stats, x);
    } else {
        const tile_operands<T> of(a, t, g.q, g.k, g.v, g.dy);
        if (a.dropout.threshold > 0)
            tile_stay(m, a, t);
        tile_weight_gradient(m, a, of, x);
    }
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < PAIRS; c++) {
            const int64_t i = t.i - first + tile_row(r), j = t.j + tile_column(c);
            if (i < count && j < a.Lk)
                to[(head * count + i) * a.Lk + j] =
                    (T)(tile_keeps(m, tile_row(r), tile_column(c)) ? x[r][c] : 0);
        }
}

} // namespace

template <class T> bool attention_tiles_forward(const attention *a, const attention_tiled *f)
{
    if constexpr (!std::is_same_v<T, double>)
        if (attention_mma_forward<T>(*a, *f))
            return launched("attention");
    return launch_forward<T>(*a, *f);
}

template bool attention_tiles_forward<float>(const attention *, const attention_tiled *);
template bool attention_tiles_forward<double>(const attention *, const attention_tiled *);
template bool attention_tiles_forward<bf16>(const attention *, const attention_tiled *);

template <class T>
bool attention_tiles_rows(const attention *a, const attention_tiled *f,
                          const attention_tiled_backward *g, int64_t first, int64_t count, void *to)
{
    const int64_t blocks = a->B * a->H * tile_count(count) * tile_count(a->Lk);
    if (blocks > 0)
        LAUNCH((make_rows<T>), dim3((unsigned)blocks), dim3(TILE_THREADS), 0, stream, *a,
               f ? *f : attention_tiled(), g ? *g : attention_tiled_backward(), f != nullptr, first,
               count, (T *)to);
    return launched("attention");
}

template bool attention_tiles_rows<float>(const attention *, const attention_tiled *,
                                          const attention_tiled_backward *, int64_t, int64_t,
                                          void *);
template bool attention_tiles_rows<double>(const attention *, const attention_tiled *,
                                           const attention_tiled_backward *, int64_t, int64_t,
                                           void *);
template bool attention_tiles_rows<bf16>(const attention *, const attention_tiled *,
                                         const attention_tiled_backward *, int64_t, int64_t,
                                         void *);
