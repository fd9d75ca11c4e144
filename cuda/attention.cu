/*
 * Attention with stored weights, in which each step is a kernel:
 *
 *     s = q k'                                    dk += scale ds' q   dq += scale ds k
 *     a = softmax(scale s + bias), masked         ds = a (da - rowsum(a da))   dbias += ds
 *     m = dropout(a)                              da = dropout(dm)
 *     o = m v                                     dm = do v'   dv += m' do
 *
 * Composed attention keeps the weights of all queries. Tiled attention without tensor cores takes
 * as many queries at a time as have MOST_PAIRS pairs, and keeps of each the largest score and the
 * sum of exponentials, from which backward computes the weights again (Rabe and Staats 2021). So
 * this file is the twin of ops/cpu/attention.c and of the tiled files beside it.
 */
#include "cuda/attention.cuh"
#include "cuda/divisor.cuh"
#include "cuda/pack.cuh"

namespace
{

/* Queries of every head, whose pairs are in memory: (B, H, count, Lk). */
struct query_range {
    int64_t first, count;

    __device__ int64_t end() const
    {
        return first + count;
    }
    /* The row of (B, H, Lq) that is row r of (B, H, count). */
    __device__ int64_t row(const attention &a, int64_t r) const
    {
        return r / count * a.Lq + first + r % count;
    }
};

/* Loads a tile of pairs, after dropout if any; zeros beyond the queries and Lk. */
template <class P, class real>
__device__ void load_pairs(tile_memory<real> &m, const attention &a, query_range of, bool drop,
                           tile_place t, const P *pairs)
{
    if (drop)
        tile_stay(m, a, t);
    pairs += ((t.b * a.H + t.h) * of.count + t.i - of.first) * a.Lk + t.j;
    for (int n = threadIdx.x; n < TILE * TILE; n += TILE_THREADS) {
        const int r = n / TILE, c = n % TILE;
        const bool inside = t.i + r < of.end() && t.j + c < a.Lk;
        const real p = inside ? (real)pairs[r * a.Lk + c] : 0;
        m.p[r][c] = drop ? tile_drop(m, (real)a.dropout.scale, r, c, p) : p;
    }
}

/* s_ij = x_i . y_j in all tiles that are not fully masked: the scores, and dm. With cosine, divided
   by the norm of y_j, since cached keys are not normalised. */
template <class T>
__global__ void make_pairs(attention a, query_range of, int64_t depth, const void *x,
                           attention_strides x_strides, const void *y, attention_strides y_strides,
                           bool cosine, real_of<T> *s)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    const int64_t across = tile_count(a.Lk), down = tile_count(of.count);
    const int64_t head = blockIdx.x / across / down, h = head % a.H;
    const tile_place t = {head / a.H, h, of.first + blockIdx.x / across % down * TILE,
                          blockIdx.x % across * TILE};
    if (!tile_in_range(a, t))
        return;
    const rows<const T> x_rows = rows_of<T>(x, x_strides, t.b, h);
    const rows<const T> y_rows = rows_from(rows_of<T>(y, y_strides, t.b, h / (a.H / a.G)), t.j);
    const int64_t keys = smaller(a.Lk - t.j, TILE);
    real product[4][PAIRS];
    pair_products(m, rows_from(x_rows, t.i), smaller(of.end() - t.i, TILE), y_rows, keys, depth,
                  product);
    if (cosine && threadIdx.x < TILE)
        m.norm[threadIdx.x] = threadIdx.x < keys ? key_length(y_rows, threadIdx.x, depth) : 1;
    __syncthreads();
    s += (head * of.count + t.i - of.first) * a.Lk + t.j;
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < PAIRS; c++) {
            const int row = tile_row(r), column = tile_column(c);
            if (t.i + row < of.end() && column < keys)
                s[row * a.Lk + column] = cosine ? product[r][c] / m.norm[column] : product[r][c];
        }
}

template <class T>
bool pairs(const attention &a, query_range of, int64_t depth, const void *x,
           attention_strides x_strides, const void *y, attention_strides y_strides, bool cosine,
           real_of<T> *s)
{
    const int64_t tiles = a.B * a.H * tile_count(of.count) * tile_count(a.Lk);
    if (tiles > 0)
        LAUNCH((make_pairs<T>), dim3((unsigned)tiles), dim3(TILE_THREADS), 0, stream, a, of, depth,
               x, x_strides, y, y_strides, cosine, s);
    return launched("attention");
}

/* The operands and the result of a product with weights or their gradients, of type P. */
template <class P> struct pair_product {
    const P *pairs;
    bool drop; /* the pairs are weights, to which dropout applies */
    const void *y;
    attention_strides y_strides;
    attention_gradient z;
    attention_strides z_strides;
    int64_t columns;
    bool wide;          /* z is of the type of sums */
    const void *before; /* sums over other keys, which are added; or NULL */
};

/* z_i += sum_j p_ij y_j: o = m v and dq = ds k */
template <class T, class P>
__global__ void sum_over_keys(attention a, query_range of, pair_product<P> f)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    const int64_t down = tile_count(of.count), head = blockIdx.x / down, b = head / a.H,
                  h = head % a.H;
    const int64_t i = of.first + blockIdx.x % down * TILE, left = smaller(of.end() - i, TILE);
    const int64_t column = blockIdx.y * (int64_t)COLUMNS;
    const rows<const T> y = rows_of<T>(f.y, f.y_strides, b, h / (a.H / a.G));
    piece<real> z;
    if (f.before)
        z.load(rows_from(rows_of<real>(f.before, f.z_strides, b, h), i), left, column, f.columns);
    for (int64_t j = 0; j < a.Lk; j += TILE) {
        const tile_place t = {b, h, i, j};
        if (!tile_in_range(a, t))
            continue;
        const tile_kept kept = tile_keep(m, a, t);
        if (!kept.any)
            continue;
        load_pairs(m, a, of, f.drop, t, f.pairs);
        z.template add<false>(m, kept.whole, rows_from(y, j), smaller(a.Lk - j, TILE), column,
                              f.columns);
    }
    with_rows<T>(f.wide, f.z, f.z_strides, b, h,
                 [&](auto to) { z.store(rows_from(to, i), f.z.fresh, left, column, f.columns); });
}

/* z_j += sum_i p_ij y_i over the heads that share z: dv = m' do and dk = ds' q */
template <class T, class P>
__global__ void sum_over_queries(attention a, query_range of, pair_product<P> f)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    const int64_t across = tile_count(a.Lk), unit = blockIdx.x / across, shared = a.H / a.G;
    const int64_t b = unit / a.G, group = unit % a.G;
    const int64_t j = blockIdx.x % across * TILE, column = blockIdx.y * (int64_t)COLUMNS;
    piece<real> z;
    for (int64_t h = group * shared; h < (group + 1) * shared; h++) {
        const rows<const T> y = rows_of<T>(f.y, f.y_strides, b, h);
        for (int64_t i = of.first; i < of.end(); i += TILE) {
            const tile_place t = {b, h, i, j};
            if (!tile_in_range(a, t))
                continue;
            const tile_kept kept = tile_keep(m, a, t);
            if (!kept.any)
                continue;
            load_pairs(m, a, of, f.drop, t, f.pairs);
            z.template add<true>(m, kept.whole, rows_from(y, i), smaller(of.end() - i, TILE),
                                 column, f.columns);
        }
    }
    with_rows<T>(f.wide, f.z, f.z_strides, b, group, [&](auto to) {
        z.store(rows_from(to, j), f.z.fresh, smaller(a.Lk - j, TILE), column, f.columns);
    });
}

template <class T, class P>
bool over_keys(const attention &a, query_range of, const pair_product<P> &f)
{
    const int64_t blocks = a.B * a.H * tile_count(of.count);
    if (blocks > 0 && f.columns > 0)
        LAUNCH((sum_over_keys<T, P>), dim3((unsigned)blocks, piece_count(f.columns)),
               dim3(TILE_THREADS), 0, stream, a, of, f);
    return launched("attention");
}

template <class T, class P>
bool over_queries(const attention &a, query_range of, const pair_product<P> &f)
{
    const int64_t blocks = a.B * a.G * tile_count(a.Lk);
    if (blocks > 0 && f.columns > 0)
        LAUNCH((sum_over_queries<T, P>), dim3((unsigned)blocks, piece_count(f.columns)),
               dim3(TILE_THREADS), 0, stream, a, of, f);
    return launched("attention");
}

/* Replaces kept scores s_j of a row by scale s_j + bias_j, if there is a bias. Returns the factor
   of their differences, which is 1 then, else the scale. */
template <class T, int GROUP>
__device__ real_of<T> add_bias(const row_group<GROUP> &group, const masked_row &row,
                               const attention &a, const T *bias, real_of<T> *s)
{
    typedef real_of<T> real;
    const real scale = (real)a.scale;
    const int64_t *step = a.bias;
    if (!bias)
        return scale;
    bias += row.b * step[0] + row.h * step[1] + row.i * step[2];
    for (int64_t j = group.lane; j < a.Lk; j += GROUP)
        if (row.keeps(j))
            s[j] = scale * s[j] + (real)bias[j * step[3]];
    return 1;
}

/*
 * s_i becomes a_i = softmax over the kept j of scale s_ij + bias_ij, and 0 elsewhere. If weights
 * are stored in a narrower type, they are rounded from a.
 *
 * If other keys came before, the statistics and the sums over them are rescaled (Milakov and
 * Gimelshein 2018), and if others follow, there is no division by the sum yet.
 */
template <class T, int GROUP>
__global__ void softmax_rows(int64_t rows, int64_t Lk, attention a, query_range of,
                             attention_tiled f, real_of<T> *s, T *weights)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const int64_t r = of.row(a, group.row);
    const masked_row row(a.mask, {a.B, a.H, a.Lq, Lk}, r);
    real *const stats = (real *)f.stats + 2 * r;
    s += group.row * Lk;
    const real factor = add_bias(group, row, a, (const T *)f.bias, s);
    const bool begun = f.begun && !(stats[1] < 0); /* it may be NaN */
    const real before = begun ? stats[0] : -(real)INFINITY, sum_before = begun ? stats[1] : 0;
    __syncwarp(); /* before lane 0 writes `stats` */
    real max = before, sum = 0, kept = begun;
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        if (row.keeps(j)) {
            max = real_max(max, s[j]);
            kept = 1;
        }
    max = group.max(max);
    const real shift = max == -(real)INFINITY ? 0 : max; /* only -infinity or NaN */
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        sum += row.keeps(j) ? real_exp(factor * (s[j] - shift)) : 0;
    const real rescale = begun ? real_exp(factor * (before - shift)) : 0;
    sum = group.sum(sum) + sum_before * rescale;
    const real divisor = f.goes_on ? 1 : sum;
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        s[j] = row.keeps(j) ? real_exp(factor * (s[j] - shift)) / divisor : 0;
        if (sizeof(T) < sizeof(real) && weights)
            weights[group.row * Lk + j] = (T)s[j];
    }
    if (begun) {
        const auto sums = rows_from(rows_in<real>(f.sums, a.y, row.b, row.h), row.i).at;
        for (int64_t d = group.lane; d < a.Dv; d += GROUP)
            sums[d] *= rescale / divisor;
    }
    if (!f.stats)
        return;
    kept = group.max(kept);
    if (group.lane == 0 && f.goes_on) {
        stats[0] = max;
        stats[1] = kept ? sum : -1;
    } else if (group.lane == 0) {
        stats[0] = kept ? max : 0;
        stats[1] = !kept ? 0 : sum == 0 ? (real)NAN : 1 / sum; /* all scores are -infinity */
    }
}

/* s_i becomes a_i again, by the statistics of all keys. */
template <class T, int GROUP>
__global__ void weights_again(int64_t rows, int64_t Lk, attention a, query_range of, const T *bias,
                              const real_of<T> *stats, real_of<T> *s, T *weights)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const int64_t r = of.row(a, group.row);
    const masked_row row(a.mask, {a.B, a.H, a.Lq, Lk}, r);
    s += group.row * Lk;
    const real factor = add_bias(group, row, a, bias, s);
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        s[j] = row.keeps(j) ? real_exp(factor * (s[j] - stats[2 * r])) * stats[2 * r + 1] : 0;
        if (sizeof(T) < sizeof(real) && weights)
            weights[group.row * Lk + j] = (T)s[j];
    }
}

/* The forward of some queries: their weights, into s, and y. */
template <class T>
bool attend(const attention &a, query_range of, const attention_tiled &f, real_of<T> *s, T *weights)
{
    const int64_t rows = a.B * a.H * of.count;
    const pair_product<real_of<T>> product = {
        s,         a.dropout.threshold > 0,   f.v, a.v, {f.goes_on ? f.sums : f.y, true}, a.y, a.Dv,
        f.goes_on, f.begun ? f.sums : nullptr};
    if (!pairs<T>(a, of, a.D, f.q, a.q, f.k, a.k, a.cosine, s))
        return false;
    LAUNCH_ROWS(softmax_rows, T, rows, a.Lk, a, of, f, s, weights); /* without keys, statistics */
    return launched("attention") && over_keys<T>(a, of, product);
}

enum { FEW_QUERIES = 8 }; /* for which reading the keys again takes less time than tiles */

template <class T> bool forward(const attention *a, const attention_forward *f)
{
    typedef real_of<T> real;
    if (a->products == PRODUCTS_ROWS && a->Lq <= FEW_QUERIES && a->dropout.threshold == 0)
        return attention_cached_forward<T>(a, f);
    const bool apart = sizeof(T) < sizeof(real);
    const scratch memory("attention",
                         apart ? (size_t)(a->B * a->H * a->Lq * a->Lk) * sizeof(real) : 0);
    attention_tiled all = {};
    all.q = f->q;
    all.k = f->k;
    all.v = f->v;
    all.bias = f->bias;
    all.y = f->y;
    real *const s = apart ? memory.as<real>() : (real *)f->weights;
    return memory && attend<T>(*a, {0, a->Lq}, all, s, (T *)f->weights);
}

/* The backward, from the last step of the forward to its first. */

/* What the gradient of some queries' weights reads and writes besides dm. */
template <class T> struct weight_gradients {
    const T *weights;        /* NULL: only the total is computed */
    const real_of<T> *delta; /* rowsum(dy y), which is dot of all keys; or NULL */
    T *total;                /* the gradient of the weights, from other uses too; or NULL */
    bool fresh;
    real_of<T> *dscores; /* ds for the bias; or NULL */
};

/*
 * m = dropout(a): da = dropout(dm), plus the gradient from other uses of the weights. a_ij =
 * exp(s_ij - max_i) / sum_j exp(s_ij - max_i), as softmax: ds_ij = a_ij (da_ij - dot_i), dot_i =
 * sum_j a_ij da_ij. dm becomes scale ds.
 */
template <class T, int GROUP>
__global__ void score_gradient(int64_t rows, int64_t Lk, attention a, query_range of,
                               weight_gradients<T> g, real_of<T> *dm)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const int64_t r = of.row(a, group.row);
    const masked_row row(a.mask, {a.B, a.H, a.Lq, Lk}, r);
    const int64_t start = a.dropout.threshold > 0 ? place_of_row(&a.dropout.place, r) : 0;
    const T *const weights = g.weights + group.row * Lk;
    dm += group.row * Lk;
    real dot = 0;
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        const bool kept = row.keeps(j);
        real da = kept ? dm[j] : 0;
        if (kept && a.dropout.threshold > 0) {
            int64_t n = 1;
            const int64_t at = start + place_in_row(&a.dropout.place, j, &n);
            da = staying_from(a.dropout, at, 1) ? da * (real)a.dropout.scale : 0;
        }
        if (g.total) {
            T &sum = g.total[group.row * Lk + j];
            da = kept ? da + (g.fresh ? 0 : (real)sum) : 0;
            sum = (T)da;
        }
        dm[j] = da;
        dot += kept && g.weights ? (real)weights[j] * da : 0;
    }
    if (!g.weights)
        return;
    dot = g.delta ? g.delta[r] : group.sum(dot);
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        const real ds = row.keeps(j) ? (real)weights[j] * (dm[j] - dot) : 0;
        dm[j] = (real)a.scale * ds;
        if (g.dscores)
            g.dscores[group.row * Lk + j] = ds;
    }
}

/* delta = rowsum(dy y), one group of threads for each query */
template <class T, int GROUP>
__global__ void row_sums(int64_t rows, int64_t Dv, attention a, attention_tiled_backward g)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const int64_t head = group.row / a.Lq, i = group.row % a.Lq;
    const T *y = rows_from(rows_of<T>(g.y, a.y, head / a.H, head % a.H), i).at;
    const T *dy = rows_from(rows_of<T>(g.dy, a.y, head / a.H, head % a.H), i).at;
    real sum = 0;
    for (int64_t d = group.lane; d < Dv; d += GROUP)
        sum += (real)dy[d] * (real)y[d];
    sum = group.sum(sum);
    if (group.lane == 0)
        ((real *)g.delta)[group.row] = sum;
}

/* The shape of a bias, and how many scores share each element along (B, H, count, Lk). */
struct bias_walk {
    int64_t size[4], kept[4], step[4], first;
    int64_t places;
};

bias_walk walk_of(const attention &a, query_range of)
{
    bias_walk w = {{a.B, a.H, of.count, a.Lk}, {}, {}, of.first * a.bias[2], 1};
    for (int n = 0; n < 4; n++) {
        w.step[n] = a.bias[n];
        w.kept[n] = a.bias[n] ? w.size[n] : 1;
        w.places *= w.kept[n];
    }
    return w;
}

/*
 * Scores are scale s_ij + bias_ij: dbias += ds, summed over the axes on which the bias is
 * broadcast. One group of threads for each element of the bias; long sums of small numbers, so in
 * double.
 */
template <class T, int GROUP>
__global__ void sum_bias(int64_t places, int64_t terms, bias_walk w, const real_of<T> *ds,
                         bool fresh, T *dbias)
{
    const row_group<GROUP> group;
    if (group.row >= places)
        return;
    int64_t at[4], rest = group.row, place_of_sum = w.first;
    for (int n = 3; n >= 0; n--) {
        at[n] = rest % w.kept[n];
        rest /= w.kept[n];
        place_of_sum += at[n] * w.step[n];
    }
    double sum = 0;
    for (int64_t term = group.lane; term < terms; term += GROUP) {
        int64_t left = term, place = 0, weight = 1;
        for (int n = 3; n >= 0; n--) {
            const int64_t many = w.size[n] / w.kept[n];
            place += (at[n] + left % many) * weight;
            left /= many;
            weight *= w.size[n];
        }
        sum += (double)ds[place];
    }
    sum = group.sum(sum);
    T &total = dbias[place_of_sum];
    if (group.lane == 0)
        total = (T)((real_of<T>)sum + (fresh ? 0 : (real_of<T>)total));
}

template <class T>
bool bias_gradient(const attention &a, query_range of, const real_of<T> *ds,
                   attention_gradient dbias)
{
    const bias_walk w = walk_of(a, of);
    const int64_t terms = w.places > 0 ? a.B * a.H * of.count * a.Lk / w.places : 0;
    LAUNCH_ROWS(sum_bias, T, w.places, terms, w, ds, dbias.fresh, (T *)dbias.data);
    return launched("attention");
}

/* All gradients over some queries, of which W is the type of weights in memory. The first range
   writes dk, dv and dbias if they are fresh, and the others add. */
template <class T, class W>
bool gradients(const attention &a, query_range of, const attention_tiled_backward &g,
               const weight_gradients<W> &w, real_of<T> *dm)
{
    typedef real_of<T> real;
    const int64_t rows = a.B * a.H * of.count;
    const bool first = of.first == 0, drop = a.dropout.threshold > 0;
    if (g.dy && !pairs<T>(a, of, a.Dv, g.dy, a.y, g.v, a.v, false, dm))
        return false;
    if (!g.dy && !cuda_ok(cudaMemsetAsync(dm, 0, rows * a.Lk * sizeof *dm, stream), "attention"))
        return false;
    if (a.Lk > 0)
        LAUNCH_ROWS(score_gradient, W, rows, a.Lk, a, of, w, dm);
    const attention_gradient dk_sum = {g.dk.data, g.dk.fresh && first};
    const attention_gradient dv_sum = {g.dv.data, g.dv.fresh && first};
    const attention_gradient dbias = {g.dbias.data, g.dbias.fresh && (first || a.bias[2])};
    const pair_product<real> dq = {dm, false, g.k, a.k, g.dq, a.q, a.D, g.part, nullptr};
    const pair_product<real> dk = {dm, false, g.q, a.q, dk_sum, a.k, a.D, g.part, nullptr};
    const pair_product<W> dv = {w.weights, drop, g.dy, a.y, dv_sum, a.v, a.Dv, g.part, nullptr};
    const query_range terms = {of.first, g.dy ? of.count : 0}; /* without dy an empty sum */
    return launched("attention") && (!dq.z.data || over_keys<T>(a, of, dq)) &&
           (!dk.z.data || over_queries<T>(a, of, dk)) &&
           (!dv.z.data || over_queries<T>(a, terms, dv)) &&
           (!dbias.data || (g.part ? bias_gradient<real>(a, of, w.dscores, dbias)
                                   : bias_gradient<T>(a, of, w.dscores, dbias)));
}

template <class T> bool backward(const attention *a, const attention_backward *g)
{
    typedef real_of<T> real;
    const scratch memory("attention", (size_t)(a->B * a->H * a->Lq * a->Lk) * sizeof(real));
    attention_tiled_backward all = {};
    all.q = g->q;
    all.k = g->k;
    all.v = g->v;
    all.dy = g->dy;
    all.dq = g->dq;
    all.dk = g->dk;
    all.dv = g->dv;
    all.dbias = g->dbias;
    const weight_gradients<T> w = {(const T *)g->weights, nullptr, (T *)g->dweights.data,
                                   g->dweights.fresh, (real *)g->dscores};
    return memory && gradients<T>(*a, {0, a->Lq}, all, w, memory.as<real>());
}

/* ---- tiled, where there are no kernels on tensor cores ---- */

} // namespace

template <class T> void attention_row_sums(const attention &a, const attention_tiled_backward &g)
{
    LAUNCH_ROWS(row_sums, T, a.B * a.H * a.Lq, a.Dv, a, g);
}

template void attention_row_sums<float>(const attention &, const attention_tiled_backward &);
template void attention_row_sums<double>(const attention &, const attention_tiled_backward &);
template void attention_row_sums<bf16>(const attention &, const attention_tiled_backward &);

namespace
{

/* Pairs whose scores are in memory at a time. The emulator gets few, so that there are several
   ranges at the sizes of tests. */
#ifdef SOFTBACK_EMULATOR
enum { MOST_PAIRS = 1 << 12 };
#else
enum { MOST_PAIRS = 1 << 21 };
#endif

/* Calls step(range, memory) for ranges of whole tiles, with the memory for `arrays` numbers for
   each pair; one range at least, of an empty sum. */
template <class real, class Step> bool each_range(const attention &a, int arrays, Step step)
{
    const int64_t of_query = a.B * a.H * a.Lk, tiles = MOST_PAIRS / (of_query * TILE + 1);
    const int64_t most = TILE * (tiles > 0 ? tiles : 1), count = a.Lq < most ? a.Lq : most;
    const scratch memory("attention", (size_t)(arrays * of_query * count) * sizeof(real));
    bool ok = (bool)memory;
    query_range of = {0, count};
    do {
        ok = ok && step(of, memory.as<real>());
        of.first += count;
        of.count = a.Lq - of.first < count ? a.Lq - of.first : count;
    } while (ok && of.first < a.Lq);
    return ok;
}

template <class T> bool tiled_forward(const attention *a, const attention_tiled *f)
{
    if constexpr (!std::is_same_v<T, double>)
        if (attention_mma_forward<T>(*a, *f))
            return launched("attention");
    return each_range<real_of<T>>(
        *a, 1, [&](query_range of, real_of<T> *s) { return attend<T>(*a, of, *f, s, nullptr); });
}

/* The weights of some queries, into s. */
template <class T>
bool attend_again(const attention &a, query_range of, const void *q, const void *k,
                  const void *bias, const void *stats, real_of<T> *s, T *weights)
{
    if (!pairs<T>(a, of, a.D, q, a.q, k, a.k, false, s))
        return false;
    if (a.Lk > 0)
        LAUNCH_ROWS(weights_again, T, a.B * a.H * of.count, a.Lk, a, of, (const T *)bias,
                    (const real_of<T> *)stats, s, weights);
    return launched("attention");
}

/* delta is computed as rowsum(p dp), for which all keys must be there, else from y. */
template <class T> bool tiled_backward(const attention *a, const attention_tiled_backward *g)
{
    typedef real_of<T> real;
    if constexpr (!std::is_same_v<T, double>)
        if (attention_mma_backward<T>(*a, *g))
            return launched("attention");
    if (g->part)
        attention_row_sums<T>(*a, *g);
    return each_range<real>(*a, g->dbias.data ? 3 : 2, [&](query_range of, real *p) {
        real *const dm = p + a->B * a->H * of.count * a->Lk;
        real *const ds = g->dbias.data ? dm + (dm - p) : nullptr;
        const real *const delta = g->part ? (const real *)g->delta : nullptr;
        const weight_gradients<real> w = {p, delta, nullptr, false, ds};
        return attend_again<T>(*a, of, g->q, g->k, g->bias, g->stats, p, nullptr) &&
               gradients<T>(*a, of, *g, w, dm);
    });
}

template <class T>
bool tiled_rows(const attention *a, const attention_tiled *f, const attention_tiled_backward *g,
                int64_t first, int64_t count, void *to)
{
    typedef real_of<T> real;
    const query_range of = {first, count};
    const int64_t rows = a->B * a->H * count;
    const bool apart = sizeof(T) < sizeof(real);
    const scratch memory("attention", apart ? (size_t)(rows * a->Lk) * sizeof(real) : 0);
    real *const s = apart ? memory.as<real>() : (real *)to;
    if (!memory)
        return false;
    if (f)
        return attend_again<T>(*a, of, f->q, f->k, f->bias, f->stats, s, (T *)to);
    if (!pairs<T>(*a, of, a->Dv, g->dy, a->y, g->v, a->v, false, s))
        return false;
    const weight_gradients<T> w = {nullptr, nullptr, (T *)to, true, nullptr};
    if (a->Lk > 0)
        LAUNCH_ROWS(score_gradient, T, rows, a->Lk, *a, of, w, s);
    return launched("attention");
}

/* Copies whose rows lie on the device; a block has `packs` packs of bytes. */
struct block_moves {
    block_copy copy[2];
    divisor packs[2];
};

__global__ void move_blocks(block_moves all)
{
    typedef pack<unsigned char> bytes;
    const block_copy &c = all.copy[blockIdx.y];
    const divisor &packs = all.packs[blockIdx.y];
    const int64_t begin = c.at ? *c.at * (int64_t)c.at_bytes : 0, size = (int64_t)c.bytes;
    unsigned char *const to = (unsigned char *)c.to + begin;
    GRID_STRIDE(n, c.n * packs.d)
    {
        const int64_t i = packs.quotient(n), first = (n - i * packs.d) * PACK<unsigned char>;
        const int64_t row = c.rows ? c.rows[i] : i;
        const unsigned char *from = (const unsigned char *)c.from + row * (int64_t)c.from_stride;
        bytes::load(from + first, size - first)
            .store(to + i * (int64_t)c.to_stride + first, size - first);
    }
}

bool copy_blocks(const struct block_copy copy[2])
{
    const int32_t *const rows = copy[0].rows;
    const size_t row_bytes = rows ? (size_t)copy[0].n * sizeof *rows : 0;
    const scratch there("kv_cache", row_bytes);
    block_moves all;
    int64_t most = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t packs = pack_count((int64_t)copy[i].bytes, PACK<unsigned char>);
        all.copy[i] = copy[i];
        all.copy[i].rows = rows ? there.as<const int32_t>() : nullptr;
        all.packs[i] = divisor(packs);
        most = copy[i].n * packs > most ? copy[i].n * packs : most;
    }
    if (!there || (rows && !cuda_ok(cudaMemcpyAsync(there.as<void>(), rows, row_bytes,
                                                    cudaMemcpyHostToDevice, stream),
                                    "kv_cache")))
        return false;
    if (most > 0)
        LAUNCH(move_blocks, dim3(blocks_for(most, THREADS), 2), dim3(THREADS), 0, stream, all);
    return launched("kv_cache");
}

} // namespace

KERNELS_AND_BF16(attention, forward<T>, backward<T>, tiled_forward<T>, tiled_backward<T>,
                 tiled_rows<T>, copy_blocks);
