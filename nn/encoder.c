#include "nn/encoder.h"
#include "autograd/recomputation.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "ops/dropout.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct sb_encoder {
    sb_embedding_layer embedding;
    sb_position_bias bias;
    sb_norm_layer norm; /* pre-norm only */
    bool has_norm, recomputes;
    int layers;
    sb_encoder_layer *layer;
};

bool sb_encoder_layer_init(sb_encoder_layer *layer, sb_parameters *set, const char *name,
                           const sb_transformer_options *options)
{
    struct layer_start start;
    sb_transformer_options o;
    if (!layer_begin(&start, "encoder_layer", layer, sizeof *layer, set, name) ||
        !layer_complete("encoder_layer", USES_LAYER, options, &o))
        return false;
    const bool rotary = o.positions == SB_POSITIONS_ROTARY;
    *layer = (sb_encoder_layer){.place = o.norm_place, .dropout = o.dropout, .along = o.along};
    const bool made =
        sb_multi_head_attention_init(&layer->self_attention, set,
                                     name_join(name, "self_attention").text, &o, rotary) &&
        sb_norm_layer_init(&layer->self_norm, set, name_join(name, "self_norm").text, o.width,
                           o.norm_kind) &&
        sb_feed_forward_init(&layer->feed_forward, set, name_join(name, "feed_forward").text, &o) &&
        sb_norm_layer_init(&layer->feed_norm, set, name_join(name, "feed_norm").text, o.width,
                           o.norm_kind);
    return layer_end(&start, made);
}

static sb_tensor *pre_norm(const sb_encoder_layer *l, sb_tensor *x, const sb_attending *attending)
{
    sb_tensor *h = sb_norm_layer_forward(&l->self_norm, x);
    sb_tensor *self = sb_multi_head_attention_forward(&l->self_attention, h, h, attending);
    h = sb_norm_layer_residual(&l->feed_norm, x, self, l->dropout, l->along, &x);
    return residual_dropout_along(x, sb_feed_forward_forward(&l->feed_forward, h), l->dropout,
                                  l->along);
}

static sb_tensor *post_norm(const sb_encoder_layer *l, sb_tensor *x, const sb_attending *attending)
{
    sb_tensor *sum, *self = sb_multi_head_attention_forward(&l->self_attention, x, x, attending);
    x = sb_norm_layer_residual(&l->self_norm, x, self, l->dropout, l->along, &sum);
    sb_tensor *feed = sb_feed_forward_forward(&l->feed_forward, x);
    return sb_norm_layer_residual(&l->feed_norm, x, feed, l->dropout, l->along, &sum);
}

sb_tensor *sb_encoder_layer_forward(const sb_encoder_layer *layer, sb_tensor *x,
                                    const sb_attending *attending)
{
    return layer->place == SB_NORM_POST ? post_norm(layer, x, attending)
                                        : pre_norm(layer, x, attending);
}

static bool init(sb_encoder *e, sb_parameters *set, const char *name, int64_t V,
                 const sb_transformer_options *o)
{
    if (!sb_embedding_layer_init(&e->embedding, set, name_join(name, "embedding").text, V, o,
                                 NULL) ||
        !sb_position_bias_init(&e->bias, set, name, o))
        return false;
    for (int i = 0; i < e->layers; i++)
        if (!sb_encoder_layer_init(&e->layer[i], set, name_layer(name, i).text, o))
            return false;
    e->recomputes = o->recompute;
    e->has_norm = o->norm_place == SB_NORM_PRE;
    return !e->has_norm ||
           sb_norm_layer_init(&e->norm, set, name_join(name, "norm").text, o->width, o->norm_kind);
}

sb_encoder *sb_encoder_new(sb_parameters *set, const char *name, int64_t V,
                           const sb_transformer_options *options)
{
    sb_transformer_options o;
    if (!set || !name)
        return fail_null("encoder", set ? "name" : "set");
    if (!sb_transformer_complete(options, &o))
        return NULL;
    const struct parameters_mark mark = parameters_mark(set);
    sb_encoder *e = memory_new(sizeof *e);
    if (!e)
        return sb_fail("encoder: out of memory");
    e->layers = o.encoder_layers;
    e->layer = memory_new((size_t)e->layers * sizeof *e->layer);
    if (!e->layer)
        sb_fail("encoder: out of memory");
    if (e->layer && init(e, set, name, V, &o))
        return e;
    sb_encoder_free(e);
    parameters_return(set, &mark);
    return NULL;
}

void sb_encoder_free(sb_encoder *encoder)
{
    if (encoder)
        memory_free(encoder->layer);
    memory_free(encoder);
}

/* A layer as a function of x and of the bias, if there is one. */
struct segment {
    const sb_encoder_layer *layer;
    sb_attending attending;
};

static sb_tensor *run_segment(void *context, sb_tensor *const x[])
{
    struct segment s = *(const struct segment *)context;
    if (s.attending.bias)
        s.attending.bias = x[1];
    return sb_encoder_layer_forward(s.layer, x[0], &s.attending);
}

static sb_tensor *run_layer(const sb_encoder *e, int i, sb_tensor *x, const sb_attending *attending)
{
    const struct segment s = {&e->layer[i], *attending};
    if (!e->recomputes || attending->weights)
        return sb_encoder_layer_forward(s.layer, x, attending);
    sb_tensor *in[] = {x, attending->bias};
    return sb_checkpoint(run_segment, &s, sizeof s, attending->bias ? 2 : 1, in);
}

sb_tensor *sb_encoder_forward(const sb_encoder *e, sb_tensor *ids, sb_tensor *lengths,
                              sb_tensor *weights[])
{
    if (!e)
        return fail_null("encoder", "encoder");
    bool ok;
    int64_t L = sb_tensor_dim(ids, 1);
    sb_attending attending = {.mask = sb_mask_lengths(lengths)};
    sb_tensor *x = sb_embedding_layer_forward(&e->embedding, ids, 0);
    attending.bias = sb_position_bias_forward(&e->bias, L, L, &ok);
    if (!x || !attending.mask || !ok)
        return NULL;
    for (int i = 0; i < e->layers; i++) {
        attending.weights = weights ? &weights[i] : NULL;
        x = run_layer(e, i, x, &attending);
    }
    return e->has_norm ? sb_norm_layer_forward(&e->norm, x) : x;
}

sb_tensor *sb_encoder_table(const sb_encoder *encoder)
{
    return encoder ? encoder->embedding.weight : NULL;
}

int sb_encoder_layers(const sb_encoder *encoder)
{
    return encoder ? encoder->layers : 0;
}
