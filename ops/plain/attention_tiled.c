/* Attention without stored weights, by tiles of one key: the online softmax
   (Milakov and Gimelshein 2018) forward, and backward the weights once more
   (Dao et al. 2022). */
#include "ops/plain/attention.h"

/* m' = max(m, s)     l = l exp(m - m') + exp(s - m')
   y = y exp(m - m') + dropout(exp(s - m')) v */
static void add_key(const struct pair *p, const struct attention_tiled *f,
                    real *m, real *l)
{
    const struct attention *of = p->a;
    const real *v = key_row(p, f->v, of->v);
    real *y = query_row(p, f->y, of->y);
    const real s = pair_score(p, f->q, f->k, f->bias), max = real_max(*m, s);
    const real shift = isinf(real_value(max)) ? 0 : max;
    const real before = real_exp(*m - shift), e = real_exp(s - shift);
    for (int64_t c = 0; c < of->Dv; c++)
        y[c] = y[c] * before + pair_dropout(p, e) * v[c];
    *l = *l * before + e;
    *m = max;
}

/* All keys, and at the end y / l. Where others came before or follow, m, l and
   y are between; l is -1 while no key was seen. */
static void attention_tiled_query(struct pair p,
                                  const struct attention_tiled *f)
{
    const struct attention *of = p.a;
    real *stats = (real *)f->stats + query_at(&p, 2);
    real *y = query_row(&p, f->y, of->y);
    bool seen = f->begun && !(real_value(stats[1]) < 0);
    real m = seen ? stats[0] : -INFINITY, l = seen ? stats[1] : 0;
    zero_if_fresh(!f->begun, of->Dv, y);
    for (p.j = 0; p.j < of->Lk; p.j++)
        if (allows(&p)) {
            add_key(&p, f, &m, &l);
            seen = true;
        }
    for (int64_t c = 0; seen && !f->goes_on && c < of->Dv; c++)
        y[c] /= l;
    stats[0] = seen ? m : 0;
    stats[1] = f->goes_on ? (seen ? l : -1) : seen ? 1 / l : 0;
}

bool TILED(attention_tiled)(const struct attention *a,
                            const struct attention_tiled *f)
{
    struct pair p = {.a = a};
    for (p.b = 0; p.b < a->B; p.b++)
        for (p.h = 0; p.h < a->H; p.h++)
            for (p.i = 0; p.i < a->Lq; p.i++)
                attention_tiled_query(p, f);
    return true;
}

/* a = exp(s - m) / l */
static real pair_weight(const struct pair *p, const void *q, const void *k,
                        const real *bias, const void *stats_)
{
    const real *stats = (const real *)stats_ + query_at(p, 2);
    return real_exp(pair_score(p, q, k, bias) - stats[0]) * stats[1];
}

/* da = dropout(dy v') */
static real pair_weight_gradient(const struct pair *p, const void *v,
                                 const void *dy)
{
    const struct attention *of = p->a;
    return pair_dropout(
        p, dot(of->Dv, query_row(p, dy, of->y), key_row(p, v, of->v)));
}

/* delta = dy . y     dv += dropout(a) dy     ds = a (da - delta) */
static void
attention_tiled_query_backward(struct pair p,
                               const struct attention_tiled_backward *g)
{
    const struct attention *of = p.a;
    const real *dy = query_row(&p, g->dy, of->y);
    const real delta = dot(of->Dv, dy, query_row(&p, g->y, of->y));
    for (p.j = 0; p.j < of->Lk; p.j++) {
        if (!allows(&p))
            continue;
        const real a = pair_weight(&p, g->q, g->k, g->bias, g->stats);
        const real da = pair_weight_gradient(&p, g->v, g->dy);
        real *dv = key_row(&p, g->dv.data, of->v);
        for (int64_t c = 0; dv && c < of->Dv; c++)
            dv[c] += pair_dropout(&p, a) * dy[c];
        pair_score_backward(&p, a * (da - delta), g->q, g->k, g->dq.data,
                            g->dk.data, g->dbias.data);
    }
}

bool TILED(attention_tiled_backward)(const struct attention *a,
                                     const struct attention_tiled_backward *g)
{
    struct pair p = {.a = a};
    zero_rows(a, g->dq, a->q, a->H, a->Lq, a->D);
    zero_rows(a, g->dk, a->k, a->G, a->Lk, a->D);
    zero_rows(a, g->dv, a->v, a->G, a->Lk, a->Dv);
    zero_bias(a, g->dbias);
    for (p.b = 0; p.b < a->B; p.b++)
        for (p.h = 0; p.h < a->H; p.h++)
            for (p.i = 0; p.i < a->Lq; p.i++)
                attention_tiled_query_backward(p, g);
    return true;
}

/* The weights of some queries again, or where f is NULL their gradient. */
bool TILED(attention_tiled_rows)(const struct attention *a,
                                 const struct attention_tiled *f,
                                 const struct attention_tiled_backward *g,
                                 int64_t first, int64_t count, void *rows)
{
    struct pair p = {.a = a};
    real *row = rows;
    for (p.b = 0; p.b < a->B; p.b++)
        for (p.h = 0; p.h < a->H; p.h++)
            for (p.i = first; p.i < first + count; p.i++, row += a->Lk)
                for (p.j = 0; p.j < a->Lk; p.j++)
                    row[p.j] =
                        !allows(&p) ? 0
                        : f ? pair_weight(&p, f->q, f->k, f->bias, f->stats)
                            : pair_weight_gradient(&p, g->v, g->dy);
    return true;
}
