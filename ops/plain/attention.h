/* One query and one key: what attention does with each pair that the mask
   allows. There are B sequences, H query heads that share G heads of keys and
   values, Lq queries and Lk keys; q and k have D numbers, v and y have Dv. */
#ifndef SOFTBACK_OPS_PLAIN_ATTENTION_H
#define SOFTBACK_OPS_PLAIN_ATTENTION_H

#include "ops/attention.h"
#include "ops/plain/dropout.h"
#include "ops/plain/mask.h"

/* Sequence b, head h, query i and key j. */
struct pair {
    const struct attention *a;
    int64_t b, h, i, j;
};

/* Where query i of (B, H, Lq, ...) begins in rows of this length. */
static inline int64_t query_at(const struct pair *p, int64_t length)
{
    return ((p->b * p->a->H + p->h) * p->a->Lq + p->i) * length;
}

/* The pair's row of q or y, or of k or v; NULL of a gradient that is not
   wanted. */
static inline real *query_row(const struct pair *p, const void *data,
                              struct attention_strides s)
{
    const int64_t at = p->b * s.batch + p->i * s.row + p->h * s.head;
    return data ? (real *)(uintptr_t)data + at : NULL;
}

static inline real *key_row(const struct pair *p, const void *data,
                            struct attention_strides s)
{
    const int64_t group = p->h / (p->a->H / p->a->G);
    const int64_t at = p->b * s.batch + p->j * s.row + group * s.head;
    return data ? (real *)(uintptr_t)data + at : NULL;
}

static inline int64_t bias_at(const struct pair *p)
{
    const int64_t *s = p->a->bias;
    return p->b * s[0] + p->h * s[1] + p->i * s[2] + p->j * s[3];
}

static inline bool allows(const struct pair *p)
{
    return mask_allows(&p->a->mask, p->b, p->h, p->i, p->j);
}

static inline real dot(int64_t n, const real *x, const real *y)
{
    real sum = 0;
    for (int64_t c = 0; c < n; c++)
        sum += x[c] * y[c];
    return sum;
}

/* s = scale q . k + bias. With cosine, q . k is divided by |k|, since a cache
   stores k as it is; there is no backward through a cache. */
static inline real pair_score(const struct pair *p, const void *q_,
                              const void *k_, const real *bias)
{
    const struct attention *a = p->a;
    const real *q = query_row(p, q_, a->q), *k = key_row(p, k_, a->k);
    real s = (real)a->scale * dot(a->D, q, k);
    if (a->cosine)
        s /= real_max(real_sqrt(dot(a->D, k, k)), (real)1e-12);
    return s + (bias ? bias[bias_at(p)] : 0);
}

/* dq += ds k scale     dk += ds q scale     dbias += ds
   So dk and dv sum over all queries and over the H / G heads of a group. */
static inline void pair_score_backward(const struct pair *p, real ds,
                                       const void *q_, const void *k_,
                                       void *dq_, void *dk_, real *dbias)
{
    const struct attention *a = p->a;
    const real *q = query_row(p, q_, a->q), *k = key_row(p, k_, a->k);
    real *dq = query_row(p, dq_, a->q), *dk = key_row(p, dk_, a->k);
    for (int64_t c = 0; dq && c < a->D; c++)
        dq[c] += ds * k[c] * (real)a->scale;
    for (int64_t c = 0; dk && c < a->D; c++)
        dk[c] += ds * q[c] * (real)a->scale;
    if (dbias)
        dbias[bias_at(p)] += ds;
}

/* Dropout of what belongs to the pair. */
static inline real pair_dropout(const struct pair *p, real x)
{
    const struct place *place = &p->a->dropout.place;
    int64_t one = 1;
    if (p->a->dropout.threshold == 0)
        return x;
    const int64_t row = place_of_row(place, query_at(p, 1));
    return dropout_of(&p->a->dropout, row + place_in_row(place, p->j, &one), x);
}

/* Fresh gradients of all queries, or of all keys, become 0. */
static inline void zero_rows(const struct attention *a,
                             struct attention_gradient dx,
                             struct attention_strides s, int64_t heads,
                             int64_t L, int64_t D)
{
    for (int64_t n = 0; dx.data && n < a->B * heads * L; n++)
        zero_if_fresh(dx.fresh, D,
                      (real *)dx.data + n / L / heads * s.batch +
                          n / L % heads * s.head + n % L * s.row);
}

static inline void zero_bias(const struct attention *a,
                             struct attention_gradient dbias)
{
    struct pair p = {.a = a};
    for (p.b = 0; dbias.data && dbias.fresh && p.b < a->B; p.b++)
        for (p.h = 0; p.h < a->H; p.h++)
            for (p.i = 0; p.i < a->Lq; p.i++)
                for (p.j = 0; p.j < a->Lk; p.j++)
                    ((real *)dbias.data)[bias_at(&p)] = 0;
}

/* In attention_tiled.c. */
#define TILED(name) PLAIN_PASTE(name, ROW)
bool TILED(attention_tiled)(const struct attention *a,
                            const struct attention_tiled *f);
bool TILED(attention_tiled_backward)(const struct attention *a,
                                     const struct attention_tiled_backward *g);
bool TILED(attention_tiled_rows)(const struct attention *a,
                                 const struct attention_tiled *f,
                                 const struct attention_tiled_backward *g,
                                 int64_t first, int64_t count, void *rows);

#endif
