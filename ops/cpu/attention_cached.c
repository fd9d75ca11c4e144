/*
 * Attention of decoding: few queries, with keys and values from a cache (B, room, G, D). Memory
 * bandwidth limits the speed, so keys and values are read in memory order, all heads of a position
 * together.
 */
#include "ops/cpu/attention_steps.h"

/* Query i of sequence b, the keys that it may attend to, and the groups of heads to compute:
   from..to - 1. */
struct cached_query {
    const struct attention *a;
    const struct attention_forward *f;
    int64_t b, i, from, to;
    struct key_range keys;
};

static int64_t cached_first_head(const struct cached_query *x, int64_t group)
{
    return group * (x->a->H / x->a->G);
}

static real *cached_weights_of(const struct cached_query *x, int64_t h)
{
    const struct attention *a = x->a;
    return (real *)x->f->weights + ((x->b * a->H + h) * a->Lq + x->i) * a->Lk;
}

/* The weights of head h after dropout. */
static real *cached_dropped_of(const struct cached_query *x, int64_t h)
{
    const struct attention *a = x->a;
    if (a->dropout.threshold == 0)
        return cached_weights_of(x, h);
    return (real *)x->f->scratch + (x->b * a->H + h) * attention_block_rows(a) * a->Lk;
}

static void cached_fetch_row(const real *x, int64_t n)
{
    for (int64_t d = 0; d < n; d += 64 / (int64_t)sizeof(real))
        __builtin_prefetch(x + d);
}

/* s_j = q . k_j for the heads of a group; with cosine, divided by the norm of k_j, since cached
   keys are not normalised. */
static void cached_score_key(const struct cached_query *x, int64_t group, int64_t j)
{
    const struct attention *a = x->a;
    const struct rows k = rows_of(x->f->k, a->k, x->b, group);
    const struct rows v = rows_of(x->f->v, a->v, x->b, group);
    const real *key = k.at + j * k.step;
    cached_fetch_row(key + 8 * k.step, a->D);
    cached_fetch_row(v.at + j * v.step, a->Dv);
    real length = 1;
    if (a->cosine) {
        length = real_sqrt(row_dot(a->D, a->D, key, key));
        length = length < (real)1e-12 ? (real)1e-12 : length;
    }
    for (int64_t h = cached_first_head(x, group); h < cached_first_head(x, group + 1); h++) {
        const struct rows q = rows_of(x->f->q, a->q, x->b, h);
        const real score = row_dot(a->D, a->D, q.at + x->i * q.step, key);
        cached_weights_of(x, h)[j] = a->cosine ? score / length : score;
    }
}

static void cached_weigh_keys(const struct cached_query *x, int64_t h)
{
    const struct block block = {x->a, x->b, h, x->i, 1, x->keys};
    softmax_rows(&block, x->f->bias, cached_weights_of(x, h));
    dropped(&block, cached_weights_of(x, h), cached_dropped_of(x, h));
}

/* y += m_j v_j in the heads of a group */
static void cached_add_value(const struct cached_query *x, int64_t group, int64_t j)
{
    const struct attention *a = x->a;
    const struct rows v = rows_of(x->f->v, a->v, x->b, group);
    for (int64_t h = cached_first_head(x, group); h < cached_first_head(x, group + 1); h++)
        add_scaled(a->Dv, cached_dropped_of(x, h)[j], v.at + j * v.step,
                   row_in(x->f->y, a->y, x->b, h, x->i));
}

/* The same for all keys that the mask keeps. */
static void cached_add_kept_values(const struct cached_query *x, int64_t group)
{
    const struct attention *a = x->a;
    for (int64_t h = cached_first_head(x, group); h < cached_first_head(x, group + 1); h++) {
        const struct block block = {a, x->b, h, x->i, 1, x->keys};
        add_by_pairs(&block, false, a->Dv, cached_dropped_of(x, h),
                     rows_of(x->f->v, a->v, x->b, group), row_in(x->f->y, a->y, x->b, h, x->i),
                     a->y.row);
    }
}

static void cached_attend(const struct cached_query *x)
{
    const struct attention *a = x->a;
    for (int64_t j = x->keys.from; j < x->keys.to; j++)
        for (int64_t g = x->from; g < x->to; g++)
            cached_score_key(x, g, j);
    for (int64_t h = cached_first_head(x, x->from); h < cached_first_head(x, x->to); h++) {
        cached_weigh_keys(x, h);
        memset(row_in(x->f->y, a->y, x->b, h, x->i), 0, (size_t)a->Dv * sizeof(real));
    }
    for (int64_t j = x->keys.from; !a->mask.dense && j < x->keys.to; j++)
        for (int64_t g = x->from; g < x->to; g++)
            cached_add_value(x, g, j);
    for (int64_t g = x->from; a->mask.dense && g < x->to; g++)
        cached_add_kept_values(x, g);
}

/* Called inside a parallel region, whose threads share the work: each sequence has `parts` parts,
   which are ranges of its groups of heads. */
static void cached_attend_all(const struct attention *a, const struct attention_forward *f,
                              int64_t parts)
{
#pragma omp for schedule(static)
    for (int64_t n = 0; n < a->B * parts; n++)
        for (int64_t i = 0; i < a->Lq; i++) {
            const int64_t b = n / parts, part = n % parts;
            const struct cached_query look = {a,
                                              f,
                                              b,
                                              i,
                                              part * a->G / parts,
                                              (part + 1) * a->G / parts,
                                              mask_range(&a->mask, b, i, i, a->Lk)};
            cached_attend(&look);
        }
}

bool CPU(attention_cached)(const struct attention *a, const struct attention_forward *f)
{
    const int64_t work = a->H * a->Lq * a->Lk * (a->D + a->Dv);
    if (a->B * work <= PARALLEL_WORK) {
        cached_attend_all(a, f, 1);
        return true;
    }
#pragma omp parallel
    cached_attend_all(a, f, work > PARALLEL_WORK ? a->G : 1);
    return true;
}
