/*
 * Tiled attention: online softmax over tiles of keys (Milakov and Gimelshein 2018). Its twins of a
 * device are cuda/attention_mma.cu, on tensor cores, and cuda/attention.cu.
 *
 *     for each tile of keys:   s = scale q k' + bias          -inf for blocked pairs
 *                              m' = max(m, rowmax(s))         the largest score so far
 *                              p = exp(s - m')
 *                              l = l exp(m - m') + rowsum(p)
 *                              y = y exp(m - m') + dropout(p) v
 *     at the end:              y = y / l; saves m and 1 / l (log-sum-exp is m + log l)
 *
 * A task is some queries of one head, which reuse the packed keys of a tile.
 */
#include "ops/cpu/attention_tiles.h"
#include "tensor/memory.h"

enum { TASK_TILES = 4, TASK_QUERIES = TASK_TILES * QUERIES };

/* The scratch memory of a task. */
struct work {
    real *keys, *values, *p; /* keys packed (D, KEYS); values (KEYS, Dv); a tile */
    bool finite;             /* the values are */
    real max[TASK_QUERIES], sum[TASK_QUERIES];
    bool seen[TASK_QUERIES]; /* the mask kept a key */
};

static int64_t tiled_work_size(const struct attention *a)
{
    return KEYS * (a->D + whole_vectors(a->Dv)) + QUERIES * PITCH;
}

static void tiled_scale_row(int64_t n, real factor, real *y)
{
    for (int64_t d = 0; d < n; d++)
        y[d] *= factor;
}

/* p = exp(scale (s - max)) with the largest score so far; returns the factor by which to rescale
   earlier sums. */
static real tiled_exponentials(const struct attention_tile *t, real scale, real *x, real *max,
                               real *sum)
{
    int64_t from = t->from / LANES * LANES, end = whole_vectors(t->to);
    vector largest = vector_of(*max), sums = vector_zero();
    for (int64_t c = from; c < end; c += LANES)
        largest = vector_larger(largest, vector_load(x + c));
    real before = *max, shift = *max = vector_max(largest);
    if (shift == -INFINITY) /* all scores are blocked, -infinity or NaN: no shift is needed */
        shift = 0;
    for (int64_t c = from; c < end; c += LANES) {
        vector e = vector_exp(scale * (vector_load(x + c) - shift));
        vector_store(x + c, e);
        sums += e;
    }
    real factor = real_exp(scale * (before - shift));
    *sum = *sum * factor + vector_sum(sums);
    return factor;
}

static void tiled_add_tile(const struct attention_tile *t, const struct attention_tiled *f,
                           struct work *w, int64_t first)
{
    const struct attention *a = t->a;
    real *y = row_in(f->y, a->y, t->b, t->h, t->i);
    const real scale = score_factor(a, f->bias);
    struct rows q = rows_of(f->q, a->q, t->b, t->h);
    tile_products(t, a->D, q.at + t->i * q.step, q.step, w->keys, w->p);
    for (int64_t r = 0, n = t->i - first; r < t->rows; r++, n++) {
        real *p = w->p + r * PITCH;
        tile_scores(t, r, f->bias, p);
        w->seen[n] |= fill_blocked(t, r, -INFINITY, p);
        real factor = tiled_exponentials(t, scale, p, &w->max[n], &w->sum[n]);
        if (factor != 1)
            tiled_scale_row(a->Dv, factor, y + r * a->y.row);
        if (a->dropout.threshold > 0) {
            struct dropout_bits bits = tile_bits(t, r);
            tile_drop(t, &bits, p, p);
        }
    }
    tile_add_over_keys(t, w->finite, a->Dv, w->p, w->values, whole_vectors(a->Dv), y, a->y.row);
}

/* Starts a row: from zero, or from the sums over other keys. */
static void tiled_begin_row(struct work *w, int64_t n, bool begun, int64_t Dv, real *y,
                            const real *stats)
{
    w->seen[n] = begun && !(stats[1] < 0); /* it may be NaN */
    w->max[n] = w->seen[n] ? stats[0] : -INFINITY;
    w->sum[n] = w->seen[n] ? stats[1] : 0;
    if (!begun)
        memset(y, 0, (size_t)Dv * sizeof *y);
}

/* Stores the sums, to which other keys are added later. */
static void tiled_leave_row(const struct work *w, int64_t n, real *stats)
{
    stats[0] = w->max[n];
    stats[1] = w->seen[n] ? w->sum[n] : -1;
}

/* Stores y / l, m and 1 / l; zeros for a fully masked query, as the mask alone decides. */
static void tiled_finish_row(const struct work *w, int64_t n, int64_t Dv, real *y, real *stats)
{
    real sum = w->sum[n];
    bool seen = w->seen[n];
    stats[0] = seen ? w->max[n] : 0;
    stats[1] = !seen ? 0 : sum == 0 ? NAN : 1 / sum; /* NAN: all scores are -infinity */
    for (int64_t d = 0; seen && d < Dv; d++)
        y[d] = sum == 0 ? NAN : y[d] / sum;
}

static void tiled_forward_task(const struct attention *a, const struct attention_tiled *f,
                               int64_t b, int64_t h, int64_t first, struct work *w)
{
    int64_t g = h / (a->H / a->G), queries = smaller(a->Lq - first, TASK_QUERIES);
    struct rows k = rows_of(f->k, a->k, b, g), v = rows_of(f->v, a->v, b, g);
    struct key_range range = mask_range(&a->mask, b, first, first + queries - 1, a->Lk);
    real *stats = (real *)f->stats + 2 * ((b * a->H + h) * a->Lq + first);
    for (int64_t n = 0; n < queries; n++)
        tiled_begin_row(w, n, f->begun, a->Dv, row_in(f->y, a->y, b, h, first + n), stats + 2 * n);
    for (int64_t j = range.from / KEYS * KEYS; j < range.to; j += KEYS) {
        int64_t keys = smaller(a->Lk - j, KEYS);
        struct attention_tile t;
        bool loaded = false;
        for (int64_t i = first; i < first + queries; i += QUERIES) {
            if (!tile_at(a, b, h, i, j, &t))
                continue;
            if (!loaded) {
                CPU(gemm_pack_all)(a->D, keys, k.at + j * k.step, k.step, w->keys);
                w->finite = copy_rows(keys, a->Dv, v.at + j * v.step, v.step, w->values);
            }
            loaded = true;
            tiled_add_tile(&t, f, w, first);
        }
    }
    for (int64_t n = 0; n < queries && f->goes_on; n++)
        tiled_leave_row(w, n, stats + 2 * n);
    for (int64_t n = 0; n < queries && !f->goes_on; n++)
        tiled_finish_row(w, n, a->Dv, row_in(f->y, a->y, b, h, first + n), stats + 2 * n);
}

bool CPU(attention_tiled)(const struct attention *a, const struct attention_tiled *f)
{
    bool ok = true;
    int64_t parts = (a->Lq + TASK_QUERIES - 1) / TASK_QUERIES, tasks = a->B * a->H * parts;
    size_t bytes = (size_t)tiled_work_size(a) * sizeof(real);
#pragma omp parallel reduction(&& : ok)                                                            \
    if (a->B * a->H * a->Lq * a->Lk * (a->D + a->Dv) > PARALLEL_WORK)
    {
        struct work w = {.keys = pool_take(memory_pool(), bytes)};
        ok = w.keys != NULL;
        w.values = ok ? w.keys + KEYS * a->D : NULL;
        w.p = ok ? w.values + KEYS * whole_vectors(a->Dv) : NULL;
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            /* the last queries first: with a causal mask they attend to the most keys */
            int64_t head = task % (a->B * a->H), part = parts - 1 - task / (a->B * a->H);
            if (ok)
                tiled_forward_task(a, f, head / a->H, head % a->H, part * TASK_QUERIES, &w);
        }
        pool_give(memory_pool(), w.keys, bytes);
    }
    return ok;
}
