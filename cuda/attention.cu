/*
 * Composed attention: the weights are stored, and each step is a kernel:
 *
 *     s = q k'                                    dk += scale ds' q   dq += scale ds k
 *     a = softmax(scale s + bias), masked         ds = a (da - rowsum(a da))   dbias += ds
 *     m = dropout(a)                              da = dropout(dm)
 *     o = m v                                     dm = do v'   dv += m' do
 */
#include "cuda/attention.cuh"
#include "cuda/divisor.cuh"
#include "cuda/pack.cuh"

namespace
{

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

/* s_i becomes a_i = softmax over the kept j of scale s_ij + bias_ij, and 0 elsewhere. If weights
   are stored in a narrower type, they are rounded from a. */
template <class T, int GROUP>
__global__ void softmax_rows(int64_t rows, int64_t Lk, attention a, const T *bias, real_of<T> *s,
                             T *weights)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const masked_row row(a.mask, {a.B, a.H, a.Lq, Lk}, group.row);
    const real scale = (real)a.scale, factor = bias ? 1 : scale;
    const int64_t *step = a.bias;
    s += group.row * Lk;
    weights += group.row * Lk;
    real max = -INFINITY, sum = 0;
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        if (!row.keeps(j))
            continue;
        if (bias)
            s[j] = scale * s[j] +
                   (real)bias[row.b * step[0] + row.h * step[1] + row.i * step[2] + j * step[3]];
        max = real_max(max, s[j]);
    }
    max = group.max(max);
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        sum += row.keeps(j) ? real_exp(factor * (s[j] - max)) : 0;
    sum = group.sum(sum);
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        s[j] = row.keeps(j) ? real_exp(factor * (s[j] - max)) / sum : 0;
        if (sizeof(T) < sizeof(real))
            weights[j] = (T)s[j];
    }
}

enum { FEW_QUERIES = 8 }; /* for which reading the keys again takes less time than tiles */

template <class T> bool forward(const attention *a, const attention_forward *f)
{
    typedef real_of<T> real;
    if (a->products == PRODUCTS_ROWS && a->Lq <= FEW_QUERIES && a->dropout.threshold == 0)
        return attention_cached_forward<T>(a, f);
    const int64_t rows = a->B * a->H * a->Lq;
    const bool apart = sizeof(T) < sizeof(real);
    const scratch memory("attention", apart ? (size_t)(rows * a->Lk) * sizeof(real) : 0);
    real *const s = apart ? memory.as<real>() : (real *)f->weights;
    const pair_product<real> product = {
        s, a->dropout.threshold > 0, f->v, a->v, f->y, a->y, a->Dv, true};
    if (!memory || !pairs<T>(*a, a->D, f->q, a->q, f->k, a->k, a->cosine, s))
        return false;
    if (rows > 0 && a->Lk > 0)
        LAUNCH_ROWS(softmax_rows, T, rows, a->Lk, *a, (const T *)f->bias, s, (T *)f->weights);
    return launched("attention") && over_keys<T>(*a, product);
}

/* The backward, from the last step of the forward to its first. */

/*
 * m = dropout(a): da = dropout(dm), plus the gradient from other uses of the weights. a_ij =
 * exp(s_ij - max_i) / sum_j exp(s_ij - max_i), as softmax: ds_ij = a_ij (da_ij - dot_i), dot_i =
 * sum_j a_ij da_ij. dm becomes scale ds; dscores, unless NULL, receives ds for the bias.
 */
template <class T, int GROUP>
__global__ void score_gradient(int64_t rows, int64_t Lk, attention a, const T *weights, T *total,
                               bool fresh, real_of<T> *dm, real_of<T> *dscores)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const masked_row row(a.mask, {a.B, a.H, a.Lq, Lk}, group.row);
    const int64_t start = a.dropout.threshold > 0 ? place_of_row(&a.dropout.place, group.row) : 0;
    weights += group.row * Lk;
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
        if (total) {
            T &sum = total[group.row * Lk + j];
            da = kept ? da + (fresh ? 0 : (real)sum) : 0;
            sum = (T)da;
        }
        dm[j] = da;
        dot += kept ? (real)weights[j] * da : 0;
    }
    dot = group.sum(dot);
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        const real ds = row.keeps(j) ? (real)weights[j] * (dm[j] - dot) : 0;
        dm[j] = (real)a.scale * ds;
        if (dscores)
            dscores[group.row * Lk + j] = ds;
    }
}

/* The shape of a bias, and how many scores share each element along (B, H, Lq, Lk). */
struct bias_walk {
    int64_t size[4], kept[4];
    int64_t places;
};

bias_walk walk_of(const attention &a)
{
    bias_walk w = {{a.B, a.H, a.Lq, a.Lk}, {}, 1};
    for (int n = 0; n < 4; n++) {
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
    int64_t at[4], rest = group.row;
    for (int n = 3; n >= 0; n--) {
        at[n] = rest % w.kept[n];
        rest /= w.kept[n];
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
    if (group.lane == 0)
        dbias[group.row] = (T)((real_of<T>)sum + (fresh ? 0 : (real_of<T>)dbias[group.row]));
}

template <class T>
bool bias_gradient(const attention &a, const real_of<T> *ds, attention_gradient dbias)
{
    const bias_walk w = walk_of(a);
    const int64_t terms = w.places > 0 ? a.B * a.H * a.Lq * a.Lk / w.places : 0;
    LAUNCH_ROWS(sum_bias, T, w.places, terms, w, ds, dbias.fresh, (T *)dbias.data);
    return launched("attention");
}

template <class T>
bool weight_gradient(const attention &a, const attention_backward *g, real_of<T> *dm)
{
    const int64_t rows = a.B * a.H * a.Lq;
    if (g->dy && !pairs<T>(a, a.Dv, g->dy, a.y, g->v, a.v, false, dm))
        return false;
    if (!g->dy && !cuda_ok(cudaMemsetAsync(dm, 0, rows * a.Lk * sizeof *dm, stream), "attention"))
        return false;
    if (rows > 0 && a.Lk > 0)
        LAUNCH_ROWS(score_gradient, T, rows, a.Lk, a, (const T *)g->weights, (T *)g->dweights.data,
                    g->dweights.fresh, dm, (real_of<T> *)g->dscores);
    return launched("attention");
}

template <class T> bool backward(const attention *a, const attention_backward *g)
{
    typedef real_of<T> real;
    const scratch memory("attention", (size_t)(a->B * a->H * a->Lq * a->Lk) * sizeof(real));
    real *const ds = memory.as<real>();
    if (!memory || !weight_gradient<T>(*a, g, ds))
        return false;
    const bool drop = a->dropout.threshold > 0;
    const pair_product<real> dq = {ds, false, g->k, a->k, g->dq.data, a->q, a->D, g->dq.fresh};
    const pair_product<real> dk = {ds, false, g->q, a->q, g->dk.data, a->k, a->D, g->dk.fresh};
    const pair_product<T> dv = {
        (const T *)g->weights, drop, g->dy, a->y, g->dv.data, a->v, a->Dv, g->dv.fresh};
    attention terms = *a;
    terms.Lq = g->dy ? a->Lq : 0; /* an empty sum */
    return (!dq.z || over_keys<T>(*a, dq)) && (!dk.z || over_queries<T>(*a, dk)) &&
           (!dv.z || over_queries<T>(terms, dv)) &&
           (!g->dbias.data || bias_gradient<T>(*a, (const real *)g->dscores, g->dbias));
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

KERNELS_AND_BF16(attention, forward<T>, backward<T>, attention_tiles_forward<T>,
                 attention_tiles_backward<T>, attention_tiles_rows<T>, copy_blocks);
