#include "teach/playground/mistaken.h"
#include "ops/attention.h"
#include "teach/playground/rule.h"
#include <assert.h>
#include <string.h>

static struct rule chosen;

/* da becomes scale ds, by the rule that was chosen. */
static void mistaken_row_gradient(int64_t n, float scale, const float *a, float *da)
{
    static double weights[RULE_KEYS], g[RULE_KEYS], ds[RULE_KEYS]; /* of one row at a time */
    for (int64_t j = 0; j < n; j++) {
        weights[j] = (double)a[j];
        g[j] = (double)da[j];
    }
    rule_apply(&chosen, n, weights, g, ds);
    for (int64_t j = 0; j < n; j++)
        da[j] = scale * (float)ds[j];
}

/* Row l of a head; NULL where there is no data. */
static float *row_of(const void *data, struct attention_strides s, int64_t b, int64_t h, int64_t l)
{
    return data ? (float *)(uintptr_t)data + b * s.batch + h * s.head + l * s.row : NULL;
}

/* In four sums, which compilers add as a vector. */
static float dot(int64_t n, const float *x, const float *y)
{
    float sum[4] = {0};
    int64_t d = 0;
    for (; d + 4 <= n; d += 4)
        for (int i = 0; i < 4; i++)
            sum[i] += x[d + i] * y[d + i];
    for (; d < n; d++)
        sum[0] += x[d] * y[d];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* y += factor x, where both are there */
static void add_scaled(int64_t n, float factor, const float *x, float *y)
{
    for (int64_t d = 0; x && y && d < n; d++)
        y[d] += factor * x[d];
}

/* The gradient of the weights of row `row`, with what else they were used for added. */
static void weight_gradient(const struct attention *a, struct attention_gradient dweights,
                            int64_t row, struct key_range keys, float *da)
{
    if (!dweights.data)
        return;
    float *total = (float *)dweights.data + row * a->Lk;
    if (dweights.fresh)
        memset(total, 0, (size_t)a->Lk * sizeof *total);
    for (int64_t j = keys.from; j < keys.to; j++)
        da[j] = total[j] += da[j];
}

/* Query i of head h: y = sum_j a_j v_j, a = softmax(s), s_j = scale q . k_j */
static void backward_row(const struct attention *a, const struct attention_backward *g, int64_t b,
                         int64_t h, int64_t i)
{
    const int64_t row = (b * a->H + h) * a->Lq + i, group = h / (a->H / a->G);
    const struct key_range keys = mask_range(&a->mask, b, i, i, a->Lk);
    const float *weights = (const float *)g->weights + row * a->Lk;
    const float *q = row_of(g->q, a->q, b, h, i), *dy = row_of(g->dy, a->y, b, h, i);
    float *dq = row_of(g->dq.data, a->q, b, h, i), *da = g->scratch;
    for (int64_t j = keys.from; j < keys.to; j++) {
        da[j] = dy ? dot(a->Dv, dy, row_of(g->v, a->v, b, group, j)) : 0;
        add_scaled(a->Dv, weights[j], dy, row_of(g->dv.data, a->v, b, group, j));
    }
    weight_gradient(a, g->dweights, row, keys, da);
    float *ds = da + keys.from;
    mistaken_row_gradient(keys.to - keys.from, (float)a->scale, weights + keys.from, ds);
    for (int64_t j = keys.from; j < keys.to; j++, ds++) {
        add_scaled(a->D, *ds, row_of(g->k, a->k, b, group, j), dq);
        add_scaled(a->D, *ds, q, row_of(g->dk.data, a->k, b, group, j));
    }
}

/* Zeros in the rows of one head, where their gradient is fresh. */
static void clear_fresh(struct attention_gradient x, struct attention_strides s, int64_t b,
                        int64_t h, int64_t rows, int64_t n)
{
    for (int64_t l = 0; x.data && x.fresh && l < rows; l++)
        memset(row_of(x.data, s, b, h, l), 0, (size_t)n * sizeof(float));
}

static bool mistaken_backward(const struct attention *a, const struct attention_backward *g)
{
    assert(a->Lk <= RULE_KEYS && !g->dbias.data && !a->mask.dense && a->dropout.threshold == 0);
    for (int64_t b = 0; b < a->B; b++) {
        for (int64_t group = 0; group < a->G; group++) {
            clear_fresh(g->dk, a->k, b, group, a->Lk, a->D);
            clear_fresh(g->dv, a->v, b, group, a->Lk, a->Dv);
        }
        for (int64_t h = 0; h < a->H; h++) {
            clear_fresh(g->dq, a->q, b, h, a->Lq, a->D);
            for (int64_t i = 0; i < a->Lq; i++)
                backward_row(a, g, b, h, i);
        }
    }
    return true;
}

bool mistake_install(const char *text)
{
    static const struct attention_kernels *right;
    static struct attention_kernels wrong;
    const void **row = &attention_rows.row[kernel_cpu_set()][SB_F32];
    const bool own = text && *text != '\0';
    if (own && !rule_read(&chosen, text))
        return false;
    if (!right)
        right = *row;
    wrong = *right;
    wrong.backward = mistaken_backward;
    *row = own ? &wrong : right;
    return true;
}
