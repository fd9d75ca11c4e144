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

/* What the forward of one head reads. */
struct forward_head {
    struct rows q, k, v;
    bool finite; /* the values that the mask keeps are */
    const real *bias;
    real *scratch;
};

/* The scores of a long block are computed in the place of its weights. */
static bool attention_forward_block(const struct forward_head *head, struct block *x, real *weights,
                                    real *y)
{
    const struct attention *a = x->a;
    struct short_pairs pairs;
    struct short_bits bits;
    block_shorten(x, &bits);
    real *s = x->is_short ? pairs.of : weights;
    bool ok = pair_products(x, a->D, head->q, head->k, s);
    softmax_rows(x, head->bias, s);
    if (x->is_short)
        short_save(x, s, weights);
    const real *m = dropped(x, s, x->is_short ? s : head->scratch);
    return ok && add_over_keys(x, head->finite, a->Dv, m, head->v, true, y, a->y.row);
}

static bool attention_forward_head(const struct attention *a, int64_t b, int64_t h,
                                   const struct attention_forward *f)
{
    int64_t g = h / (a->H / a->G), head = b * a->H + h;
    struct rows v = rows_of(f->v, a->v, b, g);
    struct key_range seen = mask_range(&a->mask, b, 0, a->Lq - 1, a->Lk);
    struct rows seen_v = {v.at + seen.from * v.step, v.step};
    const struct forward_head of = {
        .q = rows_of(f->q, a->q, b, h),
        .k = rows_of(f->k, a->k, b, g),
        .v = v,
        .finite = !a->mask.count || all_finite(seen.to - seen.from, a->Dv, seen_v),
        .bias = f->bias,
        .scratch = f->scratch ? (real *)f->scratch + head * attention_block_rows(a) * a->Lk : NULL,
    };
    bool ok = true;
    for (int64_t i = 0; ok && i < a->Lq; i += ATTENTION_BLOCK) {
        struct block x = block_at(a, b, h, i);
        ok = attention_forward_block(&of, &x, (real *)f->weights + (head * a->Lq + i) * a->Lk,
                                     row_in(f->y, a->y, b, h, i));
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

static bool attention_copy_blocks(const struct block_copy copy[2])
{
    for (const struct block_copy *c = copy; c < copy + 2; c++) {
        char *to = (char *)c->to + (c->at ? (size_t)*c->at * c->at_bytes : 0);
        for (int64_t i = 0; i < c->n; i++) {
            size_t row = (size_t)(c->rows ? c->rows[i] : i);
            memcpy(to + (size_t)i * c->to_stride, (const char *)c->from + row * c->from_stride,
                   c->bytes);
        }
    }
    return true;
}

KERNELS(attention) = {attention_forward,    CPU(attention_backward),
                      CPU(attention_tiled), CPU(attention_tiled_backward),
                      CPU(attention_rows),  attention_copy_blocks};
