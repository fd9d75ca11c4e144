/* Attention as it is defined (Vaswani et al. 2017): softmax over the keys that
   the mask allows, whose weights are stored. */
#include "ops/plain/attention.h"
#include <string.h>

/* s_j = scale q . k_j + bias_j     a = softmax(s) over the allowed j
   y = sum_j dropout(a_j) v_j */
static void attention_query(struct pair p, const struct attention_forward *f)
{
    const struct attention *of = p.a;
    real *a = (real *)f->weights + query_at(&p, of->Lk);
    real *y = query_row(&p, f->y, of->y), max = -INFINITY, sum = 0;
    for (p.j = 0; p.j < of->Lk; p.j++) {
        a[p.j] = allows(&p) ? pair_score(&p, f->q, f->k, f->bias) : -INFINITY;
        max = real_max(max, a[p.j]);
    }
    for (p.j = 0; p.j < of->Lk; p.j++) {
        a[p.j] = allows(&p) ? real_exp(a[p.j] - max) : 0;
        sum += a[p.j];
    }
    zero_if_fresh(true, of->Dv, y);
    for (p.j = 0; p.j < of->Lk; p.j++) {
        if (!allows(&p)) /* 0, whatever is in v */
            continue;
        a[p.j] /= sum;
        for (int64_t c = 0; c < of->Dv; c++)
            y[c] += pair_dropout(&p, a[p.j]) * key_row(&p, f->v, of->v)[c];
    }
}

static bool attention_forward(const struct attention *a,
                              const struct attention_forward *f)
{
    struct pair p = {.a = a};
    for (p.b = 0; p.b < a->B; p.b++)
        for (p.h = 0; p.h < a->H; p.h++)
            for (p.i = 0; p.i < a->Lq; p.i++)
                attention_query(p, f);
    return true;
}

/* y = dropout(a) v: dv += dropout(a) dy     da = dropout(dy . v) */
static real weight_backward(const struct pair *p, real weight,
                            const struct attention_backward *g)
{
    const struct attention *of = p->a;
    const real *v = key_row(p, g->v, of->v), *dy = query_row(p, g->dy, of->y);
    real *dv = key_row(p, g->dv.data, of->v);
    for (int64_t c = 0; dy && dv && c < of->Dv; c++)
        dv[c] += pair_dropout(p, weight) * dy[c];
    return dy ? pair_dropout(p, dot(of->Dv, dy, v)) : 0;
}

/* a = softmax(s): ds = a (da - sum_j a_j da_j). da includes dweights, the
   gradient from other uses of the weights, unless that is fresh; then da is
   stored there, 0 where blocked. */
static void attention_query_backward(struct pair p,
                                     const struct attention_backward *g)
{
    const struct attention *of = p.a;
    const int64_t at = query_at(&p, of->Lk);
    const real *a = (const real *)g->weights + at;
    real *da = g->scratch, sum = 0;
    real *total = g->dweights.data ? (real *)g->dweights.data + at : NULL;
    for (p.j = 0; p.j < of->Lk; p.j++) {
        da[p.j] = allows(&p) ? weight_backward(&p, a[p.j], g) : 0;
        if (total && !g->dweights.fresh && allows(&p))
            da[p.j] += total[p.j];
        if (total)
            total[p.j] = da[p.j];
        sum += a[p.j] * da[p.j];
    }
    for (p.j = 0; p.j < of->Lk; p.j++)
        if (allows(&p))
            pair_score_backward(&p, a[p.j] * (da[p.j] - sum), g->q, g->k,
                                g->dq.data, g->dk.data, g->dbias.data);
}

static bool attention_backward(const struct attention *a,
                               const struct attention_backward *g)
{
    struct pair p = {.a = a};
    zero_rows(a, g->dq, a->q, a->H, a->Lq, a->D);
    zero_rows(a, g->dk, a->k, a->G, a->Lk, a->D);
    zero_rows(a, g->dv, a->v, a->G, a->Lk, a->Dv);
    zero_bias(a, g->dbias);
    for (p.b = 0; p.b < a->B; p.b++)
        for (p.h = 0; p.h < a->H; p.h++)
            for (p.i = 0; p.i < a->Lq; p.i++)
                attention_query_backward(p, g);
    return true;
}

/* Blocks of a cache's keys and values, in another order. */
static bool copy_blocks(const struct block_copy copy[2])
{
    for (const struct block_copy *c = copy; c < copy + 2; c++) {
        char *to = (char *)c->to + (c->at ? (size_t)*c->at * c->at_bytes : 0);
        for (int64_t i = 0; i < c->n; i++)
            memcpy(to + (size_t)i * c->to_stride,
                   (const char *)c->from +
                       (size_t)(c->rows ? c->rows[i] : i) * c->from_stride,
                   c->bytes);
    }
    return true;
}

KERNELS(attention) = {
    attention_forward,           attention_backward,
    TILED(attention_tiled),      TILED(attention_tiled_backward),
    TILED(attention_tiled_rows), copy_blocks};
