#include "ops/attention.h"
#include "ops/attention_call.h"
#include "ops/call.h"
#include "ops/example.h"
#include "ops/runs.h"

KERNEL_ROWS(attention);

/* The gradient of the weights, to which later operations have added their parts. If sb_keep was
   called on the weights, it always exists. */
static bool attention_open_weight_gradient(sb_tensor *weights,
                                           struct attention_gradient *gradient_of)
{
    *gradient_of = (struct attention_gradient){NULL, !weights->grad_current};
    if (!weights->grad_current && !weights->keep)
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

static bool attention_backward(sb_node *node);

static const sb_operation operations[] = {
    {"attention", "q k v mask", attention_backward, true, true},
    {"attention", "q k v bias mask", attention_backward, true, true}};

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
    if (node->operation == &operations[1])
        g.dbias = attention_gradient_of(node, 3);
    return attention_open_weight_gradient(weights, &g.dweights) &&
           run_backward(weights, &g, sb_node_options(node));
}

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

static sb_tensor *example_heads_first(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_attention_options o = {.layout = SB_LAYOUT_HEADS_FIRST, .mask = sb_mask_causal_last()};
    return sb_attention(x[0], x[1], x[2], &o);
}

/* q, k, v, a bias and lengths; with dropout where the tape has a stream. */
static sb_tensor *example_biased(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_attention_options o = {.bias = x[3], .temperature = 0.5, .dropout = 0.3};
    sb_mask *lengths = sb_mask_lengths(x[4]);
    o.mask = sb_mask_and(sb_mask_window(4, 1), lengths);
    return sb_attention(x[0], x[1], x[2], &o);
}

static sb_tensor *example_blocked(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_attention_options o = {.mask = sb_mask_block(x[3]), .score = SB_SCORE_BALANCED};
    return sb_attention(x[0], x[1], x[2], &o);
}

/* q, k, v and ln T. */
static sb_tensor *example_cosine(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_attention_options o = {.score = SB_SCORE_COSINE, .log_temperature = x[3]};
    return sb_attention(x[0], x[1], x[2], &o);
}

/* q, k, v and a bias, with few heads of keys. */
static sb_tensor *example_softcap(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_attention_options o = {.bias = x[3], .softcap = 1.5, .mask = sb_mask_causal_last()};
    return sb_attention(x[0], x[1], x[2], &o);
}

/* The loss reads the weights too. */
static sb_tensor *example_weights(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_tensor *weights = NULL;
    sb_attention_options o = {.weights = &weights, .dropout = 0.3, .scale = 0.7};
    sb_tensor *y = sb_attention(x[0], x[1], x[2], &o);
    return sb_matmul(weights, sb_permute(y, 4, (const int[]){0, 2, 1, 3}));
}

/* Tiled: q, k, v, a bias and lengths. */
static sb_tensor *example_tiled(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_attention_options o = {.bias = x[3], .dropout = 0.3, .algorithm = SB_ATTENTION_TILED};
    o.mask = sb_mask_and(sb_mask_causal_last(), sb_mask_lengths(x[4]));
    return sb_attention(x[0], x[1], x[2], &o);
}

static sb_tensor *example_tiled_plain(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_attention_options o = {.layout = SB_LAYOUT_HEADS_FIRST, .algorithm = SB_ATTENTION_TILED};
    return sb_attention(x[0], x[1], x[2], &o);
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
