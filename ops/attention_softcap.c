/* Attention with soft-capped scores, composed of other operations: the capped scores become the
   bias of attention between queries and keys of zeros. */
#include "ops/attention_call.h"
#include "ops/check.h"
#include "ops/runs.h"

static bool softcap_may_run(const struct attention_call *call)
{
    if (context_open()->ring)
        return sb_fail("%s: softcap is not available with sequence parallelism; split the batch or "
                       "the heads instead",
                       call->who);
    if (call->options.algorithm == SB_ATTENTION_TILED)
        return sb_fail("%s: softcap is not available with SB_ATTENTION_TILED; it stores the "
                       "scores, as SB_ATTENTION_COMPOSED does",
                       call->who);
    return true;
}

/* q or k as (B, heads, L, D). */
static sb_tensor *softcap_heads_first(const struct attention_call *call, sb_tensor *x,
                                      int64_t heads, int64_t L)
{
    if (x->rank == 4 && !call->heads_first)
        return sb_permute(x, 4, (const int[]){0, 2, 1, 3});
    return sb_reshape(x, SB_SHAPE(call->a.B, heads, L, call->a.D));
}

/* The keys of G heads for all H heads: each serves H / G of them. */
static sb_tensor *softcap_keys(const struct attention_call *call)
{
    const struct attention *a = &call->a;
    sb_tensor *k = softcap_heads_first(call, call->k, a->G, a->Lk);
    if (a->G == a->H)
        return k;
    k = sb_reshape(k, SB_SHAPE(a->B, a->G, 1, a->Lk, a->D));
    k = sb_expand(k, SB_SHAPE(a->B, a->G, a->H / a->G, a->Lk, a->D));
    return sb_reshape(k, SB_SHAPE(a->B, a->H, a->Lk, a->D));
}

static sb_tensor *softcap_zeros(const sb_tensor *like, int rank, const int64_t *dim)
{
    sb_tensor *t = tensor_new("attention", like->device, like->dtype, rank, dim);
    if (t)
        tensor_zero(t);
    return sb_tape_own(t);
}

/* x with its last axis of size 1, as zeros. */
static sb_tensor *softcap_stand_in(const sb_tensor *x)
{
    int64_t dim[4] = {0};
    for (int i = 0; i < x->rank; i++)
        dim[i] = i == x->rank - 1 ? 1 : x->dim[i];
    return softcap_zeros(x, x->rank, dim);
}

/* s with 0 for blocked pairs: a NaN there would give 0 * NaN in the gradient of tanh. A mask on
   equal scores gives weights that are 0 for exactly these pairs. */
static sb_tensor *softcap_kept_scores(sb_tensor *s, sb_mask *mask)
{
    if (!s || !mask)
        return s;
    sb_tensor *weights = sb_masked_softmax(softcap_zeros(s, s->rank, s->dim), mask, 1);
    return sb_where(sb_cast(weights, SB_BOOL), s, softcap_zeros(s, SB_SCALAR));
}

sb_tensor *attention_softcapped(const struct attention_call *call)
{
    const struct attention *a = &call->a;
    const double cap = call->options.softcap;
    sb_attention_options o = call->options;
    if (!softcap_may_run(call))
        return NULL;
    sb_tensor *q = softcap_heads_first(call, call->q, a->H, a->Lq);
    sb_tensor *k = softcap_keys(call);
    sb_tensor *s = sb_scale(sb_matmul_nt(q, k), a->scale / cap);
    s = sb_scale(sb_tanh(softcap_kept_scores(s, o.mask)), cap);
    o = (sb_attention_options){.layout = o.layout,
                               .mask = o.mask,
                               .bias = o.bias ? sb_add(s, o.bias) : s,
                               .dropout = o.dropout,
                               .weights = o.weights,
                               .algorithm = SB_ATTENTION_COMPOSED,
                               .queries = o.queries,
                               .keys = o.keys,
                               .heads = o.heads};
    if (!o.bias)
        return NULL;
    return sb_attention(softcap_stand_in(call->q), softcap_stand_in(call->k), call->v, &o);
}
