/*
 * Attention, composed: the weights are stored, and each step is a function. This file has the
 * forward, attention_backward.c the backward, step by step:
 *
 *     s = q k'                                    dk += scale ds' q   dq += scale ds k
 *     a = softmax(scale s + bias), masked         ds = a (da - rowsum(a da))   dbias += ds
 *     m = dropout(a)                              da = dropout(dm)
 *     o = m v                                     dm = do v'   dv += m' do
 *
 * The queries of a head are processed in blocks, each with the range of keys that the mask keeps
 * before dense terms. Heads run in parallel; in backward, groups of heads that share keys and
 * values run in parallel, and gradients are added in the order of heads and blocks.
 */
#include "ops/cpu/attention_steps.h"

static bool attention_forward_head(const struct attention *a, int64_t b, int64_t h,
                                   const struct attention_forward *f)
{
    int64_t g = h / (a->H / a->G), head = b * a->H + h;
    struct rows q = rows_of(f->q, a->q, b, h), k = rows_of(f->k, a->k, b, g);
    struct rows v = rows_of(f->v, a->v, b, g);
    struct key_range seen = mask_range(&a->mask, b, 0, a->Lq - 1, a->Lk);
    struct rows seen_v = {v.at + seen.from * v.step, v.step};
    bool ok = true, finite = !a->mask.count || all_finite(seen.to - seen.from, a->Dv, seen_v);
    real *scratch = f->scratch ? (real *)f->scratch + head * attention_block_rows(a) * a->Lk : NULL;
    for (int64_t i = 0; ok && i < a->Lq; i += ATTENTION_BLOCK) {
        struct block x = block_at(a, b, h, i);
        real *weights = (real *)f->weights + (head * a->Lq + i) * a->Lk;
        real *y = row_in(f->y, a->y, b, h, i);
        ok = pair_products(&x, a->D, q, k, weights);
        softmax_rows(&x, f->bias, weights);
        ok = ok &&
             add_over_keys(&x, finite, a->Dv, dropped(&x, weights, scratch), v, true, y, a->y.row);
    }
    return ok;
}

static bool attention_forward(const struct attention *a, const struct attention_forward *f)
{
    bool ok = true;
    int64_t heads = a->B * a->H;
    if (a->products == PRODUCTS_ROWS)
        return CPU(attention_cached)(a, f);
#pragma omp parallel for schedule(static) reduction(&& : ok)                                       \
    if (heads * a->Lq * a->Lk * (a->D + a->Dv) > PARALLEL_WORK)
    for (int64_t head = 0; head < heads; head++)
        ok = attention_forward_head(a, head / a->H, head % a->H, f) && ok;
    return ok;
}

static bool attention_copy_blocks(const struct block_copy *c)
{
    char *to = (char *)c->to + (c->at ? (size_t)*c->at * c->at_bytes : 0);
    for (int64_t i = 0; i < c->n; i++) {
        size_t row = (size_t)(c->rows ? c->rows[i] : i);
        memcpy(to + (size_t)i * c->to_stride, (const char *)c->from + row * c->from_stride,
               c->bytes);
    }
    return true;
}

KERNELS(attention) = {attention_forward,    CPU(attention_backward),
                      CPU(attention_tiled), CPU(attention_tiled_backward),
                      CPU(attention_rows),  attention_copy_blocks};
