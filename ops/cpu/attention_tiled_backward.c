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
 * A task is a slab of the keys of one group. For each tile of keys it visits the group's heads and
 * their queries. No other task adds to the same dk and dv; they are accumulated in contiguous rows,
 * since the rows of the tensor are H D apart and would map to few cache sets. The first slab adds
 * directly to dq, other slabs to scratch memory, which is added at the end in the order of slabs.
 */
#include "ops/cpu/attention_tiles.h"
#include "tensor/memory.h"

/* Rows are padded with zeros to whole vectors. */
struct work {
    real *memory;
    real *packed_keys, *packed_values; /* (D, KEYS), (Dv, KEYS) */
    real *keys, *dkeys, *dvalues;      /* (KEYS, D), (KEYS, D), (KEYS, Dv) */
    real *queries, *dy;                /* (QUERIES, D), (QUERIES, Dv) */
    real *p, *ds;                      /* tiles */
    bool finite_keys, finite_queries, finite_dy;
};

static int64_t tiled_work_size(const struct attention *a)
{
    int64_t D = whole_vectors(a->D), Dv = whole_vectors(a->Dv);
    return KEYS * (3 * D + 2 * Dv) + QUERIES * (D + Dv) + 2 * QUERIES * PITCH;
}

static bool tiled_take_work(const struct attention *a, struct work *w)
{
    int64_t D = whole_vectors(a->D), Dv = whole_vectors(a->Dv);
    real *at = pool_take(memory_pool(), (size_t)tiled_work_size(a) * sizeof(real));
    *w = (struct work){.memory = at};
    if (!at)
        return false;
    w->packed_keys = at;
    w->packed_values = at += KEYS * D;
    w->keys = at += KEYS * Dv;
    w->dkeys = at += KEYS * D;
    w->dvalues = at += KEYS * D;
    w->queries = at += KEYS * Dv;
    w->dy = at += QUERIES * D;
    w->p = at += QUERIES * Dv;
    w->ds = at + QUERIES * PITCH;
    return true;
}

static void tiled_give_work(const struct attention *a, struct work *w)
{
    pool_give(memory_pool(), w->memory, (size_t)tiled_work_size(a) * sizeof(real));
}

static void tiled_load_keys(const struct attention *a, const struct attention_tiled_backward *g,
                            int64_t b, int64_t group, int64_t j, struct work *w)
{
    struct rows k = rows_of(g->k, a->k, b, group), v = rows_of(g->v, a->v, b, group);
    int64_t n = smaller(a->Lk - j, KEYS), D = whole_vectors(a->D), Dv = whole_vectors(a->Dv);
    CPU(gemm_pack_all)(a->D, n, k.at + j * k.step, k.step, w->packed_keys);
    CPU(gemm_pack_all)(a->Dv, n, v.at + j * v.step, v.step, w->packed_values);
    w->finite_keys = copy_rows(n, a->D, k.at + j * k.step, k.step, w->keys);
    memset(w->dkeys, 0, (size_t)(n * D) * sizeof(real));
    memset(w->dvalues, 0, (size_t)(n * Dv) * sizeof(real));
}

/* Adds the accumulated gradients of the tile's keys and values to dk and dv. */
static void tiled_store_keys(const struct attention *a, const struct attention_tiled_backward *g,
                             int64_t b, int64_t group, int64_t j, const struct work *w)
{
    int64_t n = smaller(a->Lk - j, KEYS), D = whole_vectors(a->D), Dv = whole_vectors(a->Dv);
    for (int64_t c = 0; g->dk.data && c < n; c++)
        add_scaled(a->D, 1, w->dkeys + c * D, row_in(g->dk.data, a->k, b, group, j + c));
    for (int64_t c = 0; g->dv.data && c < n; c++)
        add_scaled(a->Dv, 1, w->dvalues + c * Dv, row_in(g->dv.data, a->v, b, group, j + c));
}

static void tiled_load_queries(const struct attention_tile *t,
                               const struct attention_tiled_backward *g, struct work *w)
{
    const struct attention *a = t->a;
    struct rows q = rows_of(g->q, a->q, t->b, t->h), dy = rows_of(g->dy, a->y, t->b, t->h);
    w->finite_queries = copy_rows(t->rows, a->D, q.at + t->i * q.step, q.step, w->queries);
    w->finite_dy = copy_rows(t->rows, a->Dv, dy.at + t->i * dy.step, dy.step, w->dy);
}

/* ds = factor p (dp - delta), in row r */
static void tiled_score_gradient_row(const struct attention_tile *t, int64_t r, const real *p,
                                     real delta, real factor, real *dp)
{
    for (int64_t c = t->from / LANES * LANES; c < whole_vectors(t->to); c += LANES)
        vector_store(dp + c, factor * (vector_load(p + c) * (vector_load(dp + c) - delta)));
    fill_blocked(t, r, 0, dp);
}

/* rowsum(p dp) of row r */
static real tiled_row_product(const struct attention_tile *t, int64_t r, const real *p, real *dp)
{
    fill_blocked(t, r, 0, dp);
    return row_dot(t->to - t->from, KEYS - t->from, p + t->from, dp + t->from);
}

/* Whether one tile has all keys of its queries. Then delta = rowsum(p dp), which cancels better;
   otherwise delta = rowsum(dy y), which is known before any tile. */
static bool tiled_one_tile(const struct attention *a, const struct attention_tiled_backward *g)
{
    return a->Lk <= KEYS && !g->part;
}

/* The weights of a tile after dropout, and the gradient of its scores times `factor`. */
OUTLINED void compute_tile(const struct attention_tile *t, const struct attention_tiled_backward *g,
                           real factor, struct work *w)
{
    const struct attention *a = t->a;
    int64_t row = (t->b * a->H + t->h) * a->Lq + t->i;
    const real *stats = (const real *)g->stats + 2 * row, *deltas = (const real *)g->delta + row;
    const real scale = score_factor(a, g->bias);
    tile_products(t, a->D, w->queries, whole_vectors(a->D), w->packed_keys, w->p);
    tile_products(t, a->Dv, w->dy, whole_vectors(a->Dv), w->packed_values, w->ds);
    for (int64_t r = 0; r < t->rows; r++) {
        real *p = w->p + r * PITCH, *ds = w->ds + r * PITCH, delta;
        tile_scores(t, r, g->bias, p);
        tile_weights(t, r, scale, stats + 2 * r, p);
        struct dropout_bits bits;
        if (a->dropout.threshold > 0) {
            bits = tile_bits(t, r);
            tile_drop(t, &bits, ds, ds);
        }
        if (tiled_one_tile(a, g))
            delta = tiled_row_product(t, r, p, ds);
        else
            delta = deltas[r];
        tiled_score_gradient_row(t, r, p, delta, factor, ds);
        if (a->dropout.threshold > 0)
            tile_drop(t, &bits, p, p);
    }
}

static void tiled_add_tile(const struct attention_tile *t, const struct attention_tiled_backward *g,
                           real *dq, int64_t dq_step, struct work *w)
{
    const struct attention *a = t->a;
    int64_t D = whole_vectors(a->D), Dv = whole_vectors(a->Dv);
    compute_tile(t, g, (real)a->scale, w);
    if (g->dv.data)
        tile_add_over_queries(t, w->finite_dy, Dv, w->p, w->dy, Dv, w->dvalues, Dv);
    if (g->dk.data)
        tile_add_over_queries(t, w->finite_queries, D, w->ds, w->queries, D, w->dkeys, D);
    if (g->dq.data)
        tile_add_over_keys(t, w->finite_keys, a->D, w->ds, w->keys, D, dq, dq_step);
}

/* The memory to which a slab adds dq. */
static real *tiled_slab_dq(const struct attention *a, const struct attention_tiled_backward *g,
                           int64_t slab, int64_t b, int64_t h, int64_t i, int64_t *step)
{
    *step = slab == 0 ? a->q.row : a->D;
    if (!g->dq.data)
        return NULL;
    return slab == 0
               ? row_in(g->dq.data, a->q, b, h, i)
               : (real *)g->partial + ((((slab - 1) * a->B + b) * a->H + h) * a->Lq + i) * a->D;
}

static void tiled_clear_slab(const struct attention *a, const struct attention_tiled_backward *g,
                             int64_t b, int64_t group, int64_t slab, int64_t from, int64_t to)
{
    int64_t heads = a->H / a->G, step;
    if (g->dk.data && g->dk.fresh)
        clear_rows(to - from, a->D, row_in(g->dk.data, a->k, b, group, from), a->k.row);
    if (g->dv.data && g->dv.fresh)
        clear_rows(to - from, a->Dv, row_in(g->dv.data, a->v, b, group, from), a->v.row);
    for (int64_t h = group * heads; g->dq.data && h < (group + 1) * heads; h++) {
        real *dq = tiled_slab_dq(a, g, slab, b, h, 0, &step);
        if (slab > 0 || g->dq.fresh)
            clear_rows(a->Lq, a->D, dq, step);
    }
}

static void backward_slab(const struct attention *a, const struct attention_tiled_backward *g,
                          int64_t b, int64_t group, int64_t slab, struct work *w)
{
    int64_t blocks = (a->Lk + KEYS - 1) / KEYS, heads = a->H / a->G, step;
    int64_t from = slab * blocks / g->slabs * KEYS;
    int64_t to = smaller((slab + 1) * blocks / g->slabs * KEYS, a->Lk);
    tiled_clear_slab(a, g, b, group, slab, from, to);
    for (int64_t j = from; j < to; j += KEYS) {
        struct attention_tile t;
        bool loaded = false;
        for (int64_t h = group * heads; h < (group + 1) * heads; h++)
            for (int64_t i = 0; i < a->Lq; i += QUERIES) {
                if (!tile_at(a, b, h, i, j, &t))
                    continue;
                if (!loaded)
                    tiled_load_keys(a, g, b, group, j, w);
                loaded = true;
                tiled_load_queries(&t, g, w);
                real *dq = tiled_slab_dq(a, g, slab, b, h, i, &step);
                tiled_add_tile(&t, g, dq, step, w);
            }
        if (loaded)
            tiled_store_keys(a, g, b, group, j, w);
    }
}

/* delta = rowsum(dy y); 0 for a fully masked query, whatever dy is. */
static void tiled_row_sums(const struct attention *a, const struct attention_tiled_backward *g)
{
    const int64_t rows = a->B * a->H * a->Lq;
    const real *stats = g->stats;
    real *delta = g->delta;
#pragma omp parallel for schedule(static) if (rows * a->Dv > PARALLEL_WORK)
    for (int64_t n = 0; n < rows; n++) {
        int64_t b = n / a->Lq / a->H, h = n / a->Lq % a->H, i = n % a->Lq;
        struct rows y = rows_of(g->y, a->y, b, h), dy = rows_of(g->dy, a->y, b, h);
        double sum = 0; /* double, because p dp - delta cancels where a query attends to one key */
        for (int64_t d = 0; d < a->Dv; d++)
            sum += (double)y.at[i * y.step + d] * (double)dy.at[i * dy.step + d];
        delta[n] = stats[2 * n + 1] == 0 ? 0 : (real)sum;
    }
}

static void tiled_add_partials(const struct attention *a, const struct attention_tiled_backward *g)
{
    const int64_t rows = a->B * a->H * a->Lq;
    int64_t step;
#pragma omp parallel for schedule(static) private(step) if (rows * a->D > PARALLEL_WORK)
    for (int64_t n = 0; n < rows; n++)
        for (int64_t slab = 1; slab < g->slabs; slab++) {
            int64_t b = n / a->Lq / a->H, h = n / a->Lq % a->H, i = n % a->Lq;
            const real *partial = tiled_slab_dq(a, g, slab, b, h, i, &step);
            add_scaled(a->D, 1, partial, tiled_slab_dq(a, g, 0, b, h, i, &step));
        }
}

static bool tiled_main_gradients(const struct attention *a,
                                 const struct attention_tiled_backward *g)
{
    bool ok = true;
    int64_t units = a->B * a->G * g->slabs;
#pragma omp parallel reduction(&& : ok)                                                            \
    if (a->B * a->H * a->Lq * a->Lk * (a->D + a->Dv) > PARALLEL_WORK)
    {
        struct work w;
        ok = tiled_take_work(a, &w);
#pragma omp for schedule(dynamic)
        for (int64_t unit = 0; unit < units; unit++) {
            /* the first keys first: with a causal mask they have the most queries */
            int64_t group = unit % (a->B * a->G), slab = unit / (a->B * a->G);
            if (ok)
                backward_slab(a, g, group / a->G, group % a->G, slab, &w);
        }
        tiled_give_work(a, &w);
    }
    if (ok && g->dq.data && g->slabs > 1)
        tiled_add_partials(a, g);
    return ok;
}

/*
 * The gradient of the bias. Each tile of the bias sums over the sequences, heads, queries and keys
 * on which the bias is broadcast, in this order. It recomputes the gradient of the scores, because
 * no single task above has all the terms of a broadcast bias.
 */
enum { BIAS_QUERIES = 4 * QUERIES };

struct bias_part {
    int64_t b[2], h[2], i[2], j[2]; /* from, to */
};

static void tiled_range_of(int64_t n, int64_t size, int64_t block, bool stretches, int64_t range[2])
{
    range[0] = stretches ? 0 : n * block;
    range[1] = stretches ? size : smaller((n + 1) * block, size);
}

/* dbias += ds of a tile; if the bias is broadcast over keys, the sum of a row goes to sums[]. */
static void tiled_add_to_bias(const struct attention_tile *t, const real *ds, real *dbias,
                              double *sums)
{
    const int64_t *step = t->a->bias;
    dbias += t->b * step[0] + t->h * step[1] + t->i * step[2] + t->j;
    for (int64_t r = 0; r < t->rows; r++, ds += PITCH) {
        double sum = 0;
        for (int64_t c = t->from; c < t->to; c++)
            if (step[3] == 0)
                sum += (double)ds[c];
            else
                dbias[r * step[2] + c] += ds[c];
        sums[step[2] ? r : 0] += sum;
    }
}

static void tiled_bias_task(const struct attention *a, const struct attention_tiled_backward *g,
                            const struct bias_part *region, struct work *w)
{
    const int64_t *step = a->bias;
    int64_t rows = step[2] ? region->i[1] - region->i[0] : 1;
    real *dbias = (real *)g->dbias.data + region->b[0] * step[0] + region->h[0] * step[1] +
                  region->i[0] * step[2];
    double sums[BIAS_QUERIES] = {0};
    struct attention_tile t;
    if (g->dbias.fresh)
        clear_rows(rows, step[3] ? region->j[1] - region->j[0] : 1, dbias + region->j[0] * step[3],
                   step[2]);
    for (int64_t b = region->b[0]; b < region->b[1]; b++)
        for (int64_t h = region->h[0]; h < region->h[1]; h++)
            for (int64_t j = region->j[0]; j < region->j[1]; j += KEYS) {
                bool loaded = false;
                for (int64_t i = region->i[0]; i < region->i[1]; i += QUERIES) {
                    if (!tile_at(a, b, h, i, j, &t))
                        continue;
                    if (!loaded)
                        tiled_load_keys(a, g, b, h / (a->H / a->G), j, w);
                    loaded = true;
                    tiled_load_queries(&t, g, w);
                    compute_tile(&t, g, 1, w);
                    tiled_add_to_bias(&t, w->ds, g->dbias.data,
                                      sums + (step[2] ? i - region->i[0] : 0));
                }
            }
    for (int64_t r = 0; step[3] == 0 && r < rows; r++)
        dbias[r * step[2]] += (real)sums[r];
}

static bool tiled_bias_gradient(const struct attention *a, const struct attention_tiled_backward *g)
{
    bool ok = true;
    const int64_t *step = a->bias;
    int64_t J = step[3] ? (a->Lk + KEYS - 1) / KEYS : 1;
    int64_t I = step[2] ? (a->Lq + BIAS_QUERIES - 1) / BIAS_QUERIES : 1;
    int64_t H = step[1] ? a->H : 1, B = step[0] ? a->B : 1;
#pragma omp parallel reduction(&& : ok) if (a->B * a->H * a->Lq * a->Lk > PARALLEL_WORK)
    {
        struct work w;
        ok = tiled_take_work(a, &w);
#pragma omp for schedule(dynamic)
        for (int64_t n = 0; n < B * H * I * J; n++) {
            struct bias_part region;
            tiled_range_of(n / J / I / H, a->B, 1, !step[0], region.b);
            tiled_range_of(n / J / I % H, a->H, 1, !step[1], region.h);
            tiled_range_of(n / J % I, a->Lq, BIAS_QUERIES, !step[2], region.i);
            tiled_range_of(n % J, a->Lk, KEYS, !step[3], region.j);
            if (ok)
                tiled_bias_task(a, g, &region, &w);
        }
        tiled_give_work(a, &w);
    }
    return ok;
}

bool CPU(attention_tiled_backward)(const struct attention *a,
                                   const struct attention_tiled_backward *g)
{
    if (!tiled_one_tile(a, g))
        tiled_row_sums(a, g);
    return (!(g->dq.data || g->dk.data || g->dv.data) || tiled_main_gradients(a, g)) &&
           (!g->dbias.data || tiled_bias_gradient(a, g));
}
