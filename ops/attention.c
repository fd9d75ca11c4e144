#include "ops/attention.h"
#include "ops/attention_call.h"
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/runs.h"

KERNEL_ROWS(attention);

/* The gradient of the weights, to which later operations have added their parts. If sb_keep was
   called on the weights, it always exists. */
static bool attention_open_weight_gradient(sb_tensor *weights,
                                           struct attention_gradient *gradient_of)
{
    const bool keep = weights->keep || (weights->rounded && weights->rounded->keep);
    *gradient_of = (struct attention_gradient){NULL, !weights->grad_current};
    if (!weights->grad_current && !keep)
        return true;
    if (!weights->grad)
        weights->grad =
            tensor_new("attention", weights->device, weights->dtype, weights->rank, weights->dim);
    if (!weights->grad)
        return false;
    weights->grad_current = true;
    gradient_of->data = weights->grad->data;
    return true;
}

/* The weights that the caller keeps are a copy in bf16, whose own gradient lacks that of y. */
static bool attention_round_weight_gradient(const sb_tensor *weights)
{
    sb_tensor *rounded = weights->rounded;
    if (!rounded || !rounded->keep)
        return true;
    if (!rounded->grad)
        rounded->grad =
            tensor_new("attention", rounded->device, rounded->dtype, rounded->rank, rounded->dim);
    rounded->grad_current = rounded->grad != NULL;
    for (int64_t i = 0, n = tensor_size(rounded); rounded->grad && i < n; i++)
        sb_tensor_set(rounded->grad, i, sb_tensor_get(weights->grad, i));
    return rounded->grad;
}

static bool run_backward(const sb_tensor *weights, struct attention_backward *g,
                         const struct attention *a)
{
    const struct attention_kernels *kernels = kernel_row(&attention_rows, weights);
    const int64_t block[4] = {a->B, a->G, attention_block_rows(a), a->Lk};
    sb_tensor *scratch = tensor_new("attention", weights->device, weights->dtype, 4, block);
    sb_tensor *dscores = NULL;
    if (scratch && g->dbias.data)
        dscores = tensor_new("attention", weights->device, dtype_of_sums(weights->dtype), 4,
                             weights->dim);
    bool ok = kernels && scratch && (dscores || !g->dbias.data);
    if (ok) {
        g->scratch = scratch->data;
        g->dscores = dscores ? dscores->data : NULL;
        ok = kernels->backward(a, g);
    }
    sb_tensor_release(scratch);
    sb_tensor_release(dscores);
    return ok;
}

static bool attention_backward(sb_node *node)
{
    const sb_tensor *dy = sb_node_dy(node, 0);
    sb_tensor *weights = node->outputs == 2 ? node->out[1] : sb_node_saved(node, 0);
    struct attention_backward g = {.q = node->in[0]->data,
                                   .k = node->in[1]->data,
                                   .v = node->in[2]->data,
                                   .weights = weights->data,
                                   .dy = dy ? dy->data : NULL,
                                   .dq = attention_gradient_of(node, 0),
                                   .dk = attention_gradient_of(node, 1),
                                   .dv = attention_gradient_of(node, 2)};
    if (attention_bias_of(node))
        g.dbias = attention_gradient_of(node, 3);
    return attention_open_weight_gradient(weights, &g.dweights) &&
           run_backward(weights, &g, sb_node_options(node)) &&
           attention_round_weight_gradient(weights);
}

static const sb_operation operations[] = {
    {"attention", "q k v mask", attention_backward, true, true},
    {"attention", "q k v bias mask", attention_backward, true, true}};

/* Whether tiles have kernels on tensor cores: of f32 without a bias, for heads of up to 128 numbers
   (cuda/attention_mma.cuh). */
static bool attention_on_tensor_cores(const struct attention_call *call)
{
    const sb_tensor *q = call->q;
    return q->dtype == SB_BF16 || (q->dtype == SB_F32 && q->device->kind != DEVICE_CPU &&
                                   !call->options.bias && call->a.D <= 128 && call->a.Dv <= 128);
}

/*
 * Whether attention runs tiled. With few pairs, stored weights are faster. On a tape that does not
 * record the threshold is high: the choice depends on Lq Lk, which includes padding, and the result
 * of a sequence must not depend on the padding of its batch. Tensor cores are used for tiles only.
 */
static bool attention_wants_tiles(const struct attention_call *call)
{
    const sb_attention_options *o = &call->options;
    const double pairs = (double)call->a.Lq * (double)call->a.Lk;
    const double many = 512.0 * 512.0, very_many = 0x1p22;
    if (o->algorithm != SB_ATTENTION_AUTOMATIC)
        return o->algorithm == SB_ATTENTION_TILED;
    if (attention_on_tensor_cores(call))
        return !o->weights;
    return !o->weights && pairs >= (tape_open()->mode == SB_RECORD ? many : very_many);
}

/* ---- soft-capped scores, composed of other operations: the capped scores become the bias of
   attention between queries and keys of zeros ---- */

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

/* x with its last axis of size 1, as zeros. */
static sb_tensor *softcap_stand_in(const sb_tensor *x)
{
    int64_t dim[4] = {0};
    for (int i = 0; i < x->rank; i++)
        dim[i] = i == x->rank - 1 ? 1 : x->dim[i];
    return call_zeros("attention", x, x->rank, dim);
}

/* s with 0 for blocked pairs: a NaN there would give 0 * NaN in the gradient of tanh. A mask on
   equal scores gives weights that are 0 for exactly these pairs. */
static sb_tensor *softcap_kept_scores(sb_tensor *s, sb_mask *mask)
{
    if (!s || !mask)
        return s;
    sb_tensor *equal = call_zeros("attention", s, s->rank, s->dim);
    sb_tensor *kept = sb_cast(sb_masked_softmax(equal, mask, 1), SB_BOOL);
    return sb_where(kept, s, call_zeros("attention", s, SB_SCALAR));
}

static sb_tensor *attention_softcapped(const struct attention_call *call)
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

/* ---- the call ---- */

/* Attention in the dtype of its operands. */
static sb_tensor *attention_attend(sb_tensor *const in[3], const sb_attention_options *options)
{
    struct attention_call call;
    if (!attention_call_read(&call, "attention", in[0], in[1], in[2], -1, options) ||
        !attention_call_score(&call, false))
        return NULL;
    if (options->softcap != 0)
        return attention_softcapped(&call);
    if (context_open()->ring)
        return attention_ring(&call);
    if (attention_wants_tiles(&call))
        return attention_tiled(&call);
    call.a.products = tape_open()->mode == SB_RECORD ? PRODUCTS_FAST : PRODUCTS_FIXED;
    sb_node *node = attention_call_node(&call, operations, 3, &call.a, sizeof call.a);
    return attention_call_forward(&call, node);
}

sb_tensor *sb_attention(sb_tensor *q, sb_tensor *k, sb_tensor *v,
                        const sb_attention_options *options)
{
    sb_attention_options o = options ? *options : (sb_attention_options){0};
    sb_tensor *in[] = {q, k, v, o.bias, o.log_temperature};
    if (o.weights)
        *o.weights = NULL;
    const bool widened = call_widen("attention", &attention_rows, 5, in);
    o.bias = in[3];
    o.log_temperature = in[4];
    sb_tensor *y = attention_attend(in, &o);
    if (o.weights)
        *o.weights = call_round(widened, *o.weights);
    if (widened && y)
        call_store(5, in);
    return call_round(widened, y);
}

EXAMPLE(example_plain, sb_attention(x[0], x[1], x[2], NULL))

/* Attention of q, k and v with these options, which may have other inputs. */
#define EXAMPLE_WITH(name, ...)                                                                    \
    EXAMPLE(name, sb_attention(x[0], x[1], x[2], &(sb_attention_options){__VA_ARGS__}))

EXAMPLE_WITH(example_heads_first, .layout = SB_LAYOUT_HEADS_FIRST, .mask = sb_mask_causal_last())
/* A bias and lengths; with dropout where the tape has a stream. */
EXAMPLE_WITH(example_biased, .bias = x[3], .temperature = 0.5, .dropout = 0.3,
             .mask = sb_mask_and(sb_mask_window(4, 1), sb_mask_lengths(x[4])))
EXAMPLE_WITH(example_blocked, .mask = sb_mask_block(x[3]), .score = SB_SCORE_BALANCED)
/* ln T. */
EXAMPLE_WITH(example_cosine, .score = SB_SCORE_COSINE, .log_temperature = x[3])
/* A bias, with few heads of keys. */
EXAMPLE_WITH(example_softcap, .bias = x[3], .softcap = 1.5, .mask = sb_mask_causal_last())
/* A bias and lengths. */
EXAMPLE_WITH(example_tiled, .bias = x[3], .dropout = 0.3, .algorithm = SB_ATTENTION_TILED,
             .mask = sb_mask_and(sb_mask_causal_last(), sb_mask_lengths(x[4])))
EXAMPLE_WITH(example_tiled_plain, .layout = SB_LAYOUT_HEADS_FIRST, .algorithm = SB_ATTENTION_TILED)

/* The loss reads the weights too. */
static sb_tensor *example_weights(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_tensor *weights = NULL;
    sb_attention_options o = {.weights = &weights, .dropout = 0.3, .scale = 0.7};
    sb_tensor *y = sb_attention(x[0], x[1], x[2], &o);
    return sb_matmul(weights, sb_permute(y, 4, (const int[]){0, 2, 1, 3}));
}

OPERATION(attention,
          {"attention",
           example_plain,
           {"1x1 1x1 1x1", "3x2 5x2 5x3", "2x4x3 2x7x3 2x7x1", "2x3x2x4 2x5x2x4 2x5x2x3",
            "1x2x4x2 1x3x2x2 1x3x2x5", "=2x3x4 2x3x4 =2x3x4", "65x1 2x1 2x1", "2x1 65x1 65x2",
            "1x7 64x7 =64x1"}},
          {"attention",
           example_heads_first,
           {"2x2x3x4 2x1x5x4 2x1x5x3", "1x4x3x2 1x2x3x2 1x2x3x2"}},
          {"attention",
           example_biased,
           {"2x4x2x3 2x5x1x3 2x5x1x2 4x5 i6:2", "1x3x2x2 1x9x2x2 1x9x2x2 2x1x9 i10:1",
            "2x3x2x2 2x3x2x2 2x3x2x2 2x2x3x3 i4:2", "2x7x1 2x7x1 2x7x1 . i8:2",
            "2x2x1x2 =2x2x1x2 2x2x1x2 =2x1 i3:2"}},
          {"attention", example_blocked, {"2x3x2x4 2x5x2x4 2x5x2x3 b:2x1x3x5", "4x2 7x2 7x2 b:7"}},
          {"attention",
           example_cosine,
           {"2x3x2x4 2x5x2x4 2x5x2x3 .", "1x2x4x2 1x3x2x2 1x3x2x2 4", "3x2 3x2 3x2 1"}},
          {"attention",
           example_tiled,
           {"2x4x2x3 2x5x1x3 2x5x1x2 4x5 i6:2", "1x3x2x2 1x9x2x2 1x9x2x2 2x1x9 i10:1",
            "2x3x2x2 2x3x2x2 2x3x2x2 2x2x3x3 i4:2", "2x7x1 2x7x1 2x7x1 . i8:2",
            "2x2x1x2 =2x2x1x2 2x2x1x2 =2x1 i3:2", "1x2x1x1 1x300x1x1 1x300x1x2 300 i301:1"}},
          {"attention",
           example_tiled_plain,
           {"1x1 1x1 1x1", "3x2 5x2 5x3", "1x4x3x2 1x2x3x2 1x2x3x2", "=2x3x4 2x3x4 =2x3x4",
            "65x1 2x1 2x1"}},
          {"attention",
           example_softcap,
           {"2x3x4x2 2x5x2x2 2x5x2x3 3x5", "3x2 3x2 3x2 .", "2x3x4 2x7x4 2x7x1 2x1x3x7"}},
          {"attention", example_weights, {"1x3x2x2 1x3x1x2 1x3x1x2", "2x5x1x3 2x5x1x3 2x5x1x2"}});
