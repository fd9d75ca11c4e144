/*
 * Attention of decoding: few queries, with keys and values from a cache (B, room, G, D). Keys and
 * values are read in memory order, a block of positions with all their heads at a time.
 */
#include "ops/cpu/attention_steps.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/vector_transpose.h"

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

/* s_j /= the norm of k_j, since cached keys are not normalised. */
static void cached_normalise(const struct attention *a, int64_t n, const real *key, int64_t step,
                             real *s)
{
    for (int64_t c = 0; c < n; c++, key += step) {
        real length = real_sqrt(row_dot(a->D, a->D, key, key));
        if (!(length < INFINITY)) /* squares overflow */
            length = real_sqrt(row_sum_of_squares(a->D, key, ROW_SHRINK(real))) / ROW_SHRINK(real);
        s[c] /= length < (real)1e-12 ? (real)1e-12 : length;
    }
}

/* s_j = q . k_j of head h for n <= LANES keys, `step` apart. */
static void cached_score_keys(const struct cached_query *x, int64_t h, int64_t n, const real *key,
                              int64_t step, real *s)
{
    const struct attention *a = x->a;
    const struct rows q = rows_of(x->f->q, a->q, x->b, h);
    real products[LANES * LANES];
    for (int64_t c = 0; c < n; c++) {
        row_prefetch(a->D, key + (c + LANES) * step);
        vector_store(products + c * LANES,
                     row_products(a->D, a->D, q.at + x->i * q.step, key + c * step));
    }
    memset(products + n * LANES, 0, (size_t)((LANES - n) * LANES) * sizeof *products);
    tail_store(s, n, n, vector_sums(products));
    if (a->cosine)
        cached_normalise(a, n, key, step, s);
}

/* The scores of n <= LANES keys from j on, for all heads; fetches their values meanwhile. */
static void cached_score_block(const struct cached_query *x, int64_t j, int64_t n)
{
    const struct attention *a = x->a;
    for (int64_t g = x->from; g < x->to; g++) {
        const struct rows k = rows_of(x->f->k, a->k, x->b, g);
        const struct rows v = rows_of(x->f->v, a->v, x->b, g);
        for (int64_t c = j; c < j + n; c++)
            row_prefetch(a->Dv, v.at + c * v.step);
        for (int64_t h = cached_first_head(x, g); h < cached_first_head(x, g + 1); h++)
            cached_score_keys(x, h, n, k.at + j * k.step, k.step, cached_weights_of(x, h) + j);
    }
}

static void cached_weigh_keys(const struct cached_query *x, int64_t h)
{
    const struct block block = {x->a, x->b, h, x->i, 1, x->keys, .pitch = x->a->Lk};
    softmax_rows(&block, x->f->bias, cached_weights_of(x, h));
    dropped(&block, cached_weights_of(x, h), cached_dropped_of(x, h));
}

/* y += sum_j m_j v_j for so many vectors of columns, in the order of the n keys. */
UNROLLED void cached_add_columns(int vectors, int64_t n, const real *m, const real *v, int64_t step,
                                 real *y)
{
    vector sum[4];
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i++)
        sum[i] = vector_load(y + i * LANES);
    for (int64_t j = 0; j < n; j++, v += step)
#pragma GCC unroll 4
        for (int i = 0; i < vectors; i++)
            sum[i] += m[j] * vector_load(v + i * LANES);
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i++)
        vector_store(y + i * LANES, sum[i]);
}

/* The same for all columns of a head. */
static void cached_add_values(int64_t Dv, int64_t n, const real *m, const real *v, int64_t step,
                              real *y)
{
    int64_t d = 0;
    for (; d + 4 * LANES <= Dv; d += 4 * LANES)
        cached_add_columns(4, n, m, v + d, step, y + d);
    for (; d + 2 * LANES <= Dv; d += 2 * LANES)
        cached_add_columns(2, n, m, v + d, step, y + d);
    for (; d + LANES <= Dv; d += LANES)
        cached_add_columns(1, n, m, v + d, step, y + d);
    for (int64_t j = 0; d < Dv && j < n; j++)
        add_scaled(Dv - d, m[j], v + j * step + d, y + d);
}

static void cached_add_block(const struct cached_query *x, int64_t j, int64_t n)
{
    const struct attention *a = x->a;
    for (int64_t g = x->from; g < x->to; g++) {
        const struct rows v = rows_of(x->f->v, a->v, x->b, g);
        for (int64_t h = cached_first_head(x, g); h < cached_first_head(x, g + 1); h++)
            cached_add_values(a->Dv, n, cached_dropped_of(x, h) + j, v.at + j * v.step, v.step,
                              row_in(x->f->y, a->y, x->b, h, x->i));
    }
}

/* The same for all keys that the mask keeps. */
static void cached_add_kept_values(const struct cached_query *x, int64_t group)
{
    const struct attention *a = x->a;
    for (int64_t h = cached_first_head(x, group); h < cached_first_head(x, group + 1); h++) {
        const struct block block = {a, x->b, h, x->i, 1, x->keys, .pitch = a->Lk};
        add_by_pairs(&block, false, a->Dv, cached_dropped_of(x, h),
                     rows_of(x->f->v, a->v, x->b, group), row_in(x->f->y, a->y, x->b, h, x->i),
                     a->y.row);
    }
}

static void cached_attend(const struct cached_query *x)
{
    const struct attention *a = x->a;
    const int64_t from = x->keys.from, to = x->keys.to;
    for (int64_t j = from; j < to; j += LANES)
        cached_score_block(x, j, to - j < LANES ? to - j : LANES);
    for (int64_t h = cached_first_head(x, x->from); h < cached_first_head(x, x->to); h++) {
        cached_weigh_keys(x, h);
        memset(row_in(x->f->y, a->y, x->b, h, x->i), 0, (size_t)a->Dv * sizeof(real));
    }
    for (int64_t j = from; !a->mask.dense && j < to; j += LANES)
        cached_add_block(x, j, to - j < LANES ? to - j : LANES);
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
