/* The backward of composed attention, from the last step of the forward to its first. */
#include "ops/cpu/attention_steps.h"

/* m = dropout(a): da = dropout(dm), plus the gradient from other uses of the weights */
static void attention_weight_gradient(const struct block *x, struct attention_gradient dweights,
                                      real *dm)
{
    const struct attention *a = x->a;
    dropped(x, dm, dm);
    if (!dweights.data)
        return;
    real *total = (real *)dweights.data + ((x->b * a->H + x->h) * a->Lq + x->first) * a->Lk;
    for (int64_t i = 0; i < x->n; i++, dm += x->pitch, total += a->Lk) {
        struct masked_row row = row_of(x, i);
        if (dweights.fresh)
            memset(total, 0, (size_t)a->Lk * sizeof *total);
        for (int64_t j = row.keys.from; j < row.keys.to; j++)
            dm[j] = total[j] += dm[j];
        masked_row_clear(&row, total);
    }
}

/* da becomes scale ds, ds_j = a_j (da_j - dot). */
static void attention_row_gradient(int64_t n, real scale, real dot, const real *restrict a,
                                   real *restrict da)
{
    for (int64_t j = 0; j < n; j++)
        da[j] = scale * (a[j] * (da[j] - dot));
}

/* The rows of a block: da becomes scale ds. */
static void attention_rows_gradient(const struct block *x, real scale, const real *weights,
                                    real *da)
{
    const bool dense = x->a->mask.dense;
    for (int64_t i = 0; x->is_short && i < x->n; i += LANES) {
        const struct short_rows rows = short_rows_of(x, i);
        short_softmax_gradient(&rows, scale, weights + i * x->pitch, da + i * x->pitch);
    }
    for (int64_t i = 0; !x->is_short && i < x->n; i++, weights += x->pitch, da += x->pitch) {
        struct masked_row row = row_of(x, i);
        int64_t from = row.keys.from, to = row.keys.to;
        if (dense)
            masked_row_clear(&row, da);
        const real dot = row_dot(to - from, row.Lk - from, weights + from, da + from);
        attention_row_gradient(to - from, scale, dot, weights + from, da + from);
        if (!dense || !(real_abs(dot) < INFINITY))
            masked_row_clear(&row, da);
    }
}

/*
 * a_ij = exp(s_ij - max_i) / sum_j exp(s_ij - max_i), as softmax: ds_ij = a_ij (da_ij - dot_i),
 * dot_i = sum_j a_ij da_ij. da becomes scale ds, in the block's range; `dscores`, unless NULL,
 * receives whole rows of ds for the bias.
 */
static void attention_score_gradient(const struct block *x, const real *weights, real *da,
                                     real *dscores)
{
    const struct attention *a = x->a;
    attention_rows_gradient(x, dscores ? 1 : (real)a->scale, weights, da);
    for (int64_t i = 0; dscores && i < x->n; i++, da += x->pitch) {
        memcpy(dscores + i * a->Lk, da, (size_t)a->Lk * sizeof *da);
        for (int64_t j = x->keys.from; j < x->keys.to; j++)
            da[j] *= (real)a->scale;
    }
}

/* What backward of one head reads, and where it adds. */
struct head {
    struct rows q, k, v, dy;
    bool finite_q, finite_k, finite_dy;
    real *dk, *dv; /* row 0; NULL when not needed */
    bool fresh_dk, fresh_dv;
    real *scratch;
};

/* One block, with its weights and room for as many pairs. */
static bool backward_pairs(const struct attention_backward *g, const struct head *head,
                           const struct block *x, const real *weights, real *dm)
{
    const struct attention *a = x->a;
    const int64_t place = ((x->b * a->H + x->h) * a->Lq + x->first) * a->Lk;
    bool ok = true;
    if (g->dy && head->dv)
        ok = add_over_queries(x, head->finite_dy, a->Dv, dropped(x, weights, dm), head->dy,
                              head->fresh_dv && x->first == 0, head->dv, a->v.row);
    if (g->dy)
        ok = ok && pair_products(x, a->Dv, head->dy, head->v, dm);
    else
        clear_rows(x->n, a->Lk, dm, x->pitch);
    attention_weight_gradient(x, g->dweights, dm);
    real *ds = dm;
    attention_score_gradient(x, weights, ds, g->dscores ? (real *)g->dscores + place : NULL);
    if (ok && g->dq.data)
        ok = add_over_keys(x, head->finite_k, a->D, ds, head->k, g->dq.fresh,
                           row_in(g->dq.data, a->q, x->b, x->h, x->first), a->q.row);
    if (ok && head->dk)
        ok = add_over_queries(x, head->finite_q, a->D, ds, head->q, head->fresh_dk && x->first == 0,
                              head->dk, a->k.row);
    return ok;
}

static bool backward_block(const struct attention_backward *g, const struct head *head,
                           struct block *x, const real *weights)
{
    struct short_pairs pairs, room;
    struct short_bits bits;
    block_shorten(x, &bits);
    if (!x->is_short)
        return backward_pairs(g, head, x, weights, head->scratch);
    short_load(x, weights, pairs.of);
    return backward_pairs(g, head, x, pairs.of, room.of);
}

static bool backward_head(const struct attention *a, const struct attention_backward *g, int64_t b,
                          int64_t h)
{
    int64_t heads = a->H / a->G, group = h / heads, unit = b * a->G + group;
    struct head head = {
        .q = rows_of(g->q, a->q, b, h),
        .k = rows_of(g->k, a->k, b, group),
        .v = rows_of(g->v, a->v, b, group),
        .dk = g->dk.data ? row_in(g->dk.data, a->k, b, group, 0) : NULL,
        .dv = g->dv.data ? row_in(g->dv.data, a->v, b, group, 0) : NULL,
        .fresh_dk = g->dk.fresh && h == group * heads,
        .fresh_dv = g->dv.fresh && h == group * heads,
        .scratch = (real *)g->scratch + unit * attention_block_rows(a) * a->Lk,
    };
    if (g->dy)
        head.dy = rows_of(g->dy, a->y, b, h);
    bool masked = a->mask.count > 0;
    struct key_range seen = mask_range(&a->mask, b, 0, a->Lq - 1, a->Lk);
    struct rows seen_k = {head.k.at + seen.from * head.k.step, head.k.step};
    head.finite_q = !masked || all_finite(a->Lq, a->D, head.q);
    head.finite_k = !masked || all_finite(seen.to - seen.from, a->D, seen_k);
    head.finite_dy = !masked || !g->dy || all_finite(a->Lq, a->Dv, head.dy);
    bool ok = true;
    for (int64_t i = 0; ok && i < a->Lq; i += ATTENTION_BLOCK) {
        struct block x = block_at(a, b, h, i);
        ok = backward_block(g, &head, &x,
                            (const real *)g->weights + ((b * a->H + h) * a->Lq + i) * a->Lk);
    }
    return ok;
}

/* The heads of a group run in sequence, since they add to the same dk and dv. */
static bool backward_group(const struct attention *a, const struct attention_backward *g, int64_t b,
                           int64_t group)
{
    if (g->dk.data && g->dk.fresh && a->Lq == 0)
        clear_rows(a->Lk, a->D, row_in(g->dk.data, a->k, b, group, 0), a->k.row);
    if (g->dv.data && g->dv.fresh && (a->Lq == 0 || !g->dy))
        clear_rows(a->Lk, a->Dv, row_in(g->dv.data, a->v, b, group, 0), a->v.row);
    int64_t heads = a->H / a->G;
    bool ok = true;
    for (int64_t h = group * heads; ok && h < (group + 1) * heads; h++)
        ok = backward_head(a, g, b, h);
    return ok;
}

/*
 * Scores are scale s_ij + bias_ij: dbias += ds, summed over the axes on which the bias is
 * broadcast, in the order of b, h, i. `place` is the row of the bias.
 */
static void attention_bias_row_gradient(const struct attention *a, const int64_t place[3],
                                        const real *ds, real *dbias)
{
    const int64_t size[3] = {a->B, a->H, a->Lq};
    int64_t end[3];
    double total = 0; /* a long sum of small numbers */
    for (int n = 0; n < 3; n++)
        end[n] = a->bias[n] == 0 ? size[n] : place[n] + 1;
    for (int64_t b = place[0]; b < end[0]; b++)
        for (int64_t h = place[1]; h < end[1]; h++)
            for (int64_t i = place[2]; i < end[2]; i++) {
                const real *row = ds + ((b * a->H + h) * a->Lq + i) * a->Lk;
                if (a->bias[3] == 0)
                    for (int64_t j = 0; j < a->Lk; j++)
                        total += (double)row[j];
                else
                    for (int64_t j = 0; j < a->Lk; j++)
                        dbias[j] += row[j];
            }
    if (a->bias[3] == 0)
        dbias[0] += (real)total;
}

static void attention_bias_gradient(const struct attention *a, const real *ds,
                                    struct attention_gradient dbias)
{
    const int64_t *step = a->bias;
    int64_t heads = step[1] ? a->H : 1, queries = step[2] ? a->Lq : 1, keys = step[3] ? a->Lk : 1;
    int64_t rows = (step[0] ? a->B : 1) * heads * queries;
#pragma omp parallel for schedule(static) if (a->B * a->H * a->Lq * a->Lk > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++) {
        const int64_t place[3] = {r / queries / heads, r / queries % heads, r % queries};
        real *row = (real *)dbias.data + r * keys;
        if (dbias.fresh)
            memset(row, 0, (size_t)keys * sizeof *row);
        attention_bias_row_gradient(a, place, ds, row);
    }
}

bool CPU(attention_backward)(const struct attention *a, const struct attention_backward *g)
{
    bool ok = true;
    int64_t groups = a->B * a->G;
#pragma omp parallel for schedule(static) reduction(&& : ok)                                       \
    if (a->B * a->H * a->Lq * a->Lk * (a->D + a->Dv) > PARALLEL_WORK)
    for (int64_t group = 0; group < groups; group++)
        ok = backward_group(a, g, group / a->G, group % a->G) && ok;
    if (ok && g->dbias.data)
        attention_bias_gradient(a, g->dscores, g->dbias);
    return ok;
}
