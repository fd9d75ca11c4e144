#include "nn/transformer_layer.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "ops/dropout.h"
#include "tensor/failure.h"

/* The norm of a sublayer and, with SB_NORM_SANDWICH, that of its branch. */
static bool add_norms(sb_norm_layer *norm, const char *name, sb_norm_layer *branch,
                      const char *branch_name, sb_parameters *set, const sb_transformer_options *o)
{
    const sb_norm_options options = layer_norm_options(o);
    return sb_norm_layer_init_with(norm, set, name, o->width, &options) &&
           (o->norm_place != SB_NORM_SANDWICH ||
            sb_norm_layer_init_with(branch, set, branch_name, o->width, &options));
}

/* The parts of a layer, given complete options. */
static bool add_parts(sb_transformer_layer *layer, sb_parameters *set, const char *name,
                      const sb_transformer_options *o)
{
    sb_transformer_options self = *o; /* whose memory is x */
    self.key_width = self.value_width = o->width;
    if (!sb_multi_head_attention_init(&layer->self_attention, set,
                                      name_join(name, "self_attention").text, &self,
                                      o->positions == SB_POSITIONS_ROTARY) ||
        !add_norms(&layer->self_norm, name_join(name, "self_norm").text, &layer->self_branch_norm,
                   name_join(name, "self_branch_norm").text, set, o))
        return false;
    if (layer->crosses &&
        (!sb_multi_head_attention_init(&layer->cross_attention, set,
                                       name_join(name, "cross_attention").text, o, false) ||
         !add_norms(&layer->cross_norm, name_join(name, "cross_norm").text,
                    &layer->cross_branch_norm, name_join(name, "cross_branch_norm").text, set, o)))
        return false;
    layer->cross_attention.keys_along = SB_SEQUENCE_SOURCE;
    return sb_feed_forward_init(&layer->feed_forward, set, name_join(name, "feed_forward").text,
                                o) &&
           add_norms(&layer->feed_norm, name_join(name, "feed_norm").text, &layer->feed_branch_norm,
                     name_join(name, "feed_branch_norm").text, set, o);
}

static bool layer_init(const char *who, sb_transformer_layer *layer, sb_parameters *set,
                       const char *name, const sb_transformer_options *options, bool crosses)
{
    struct layer_start start;
    sb_transformer_options o;
    if (!layer_begin(&start, who, layer, sizeof *layer, set, name) ||
        !layer_complete(who, USES_LAYER, options, &o))
        return false;
    *layer = (sb_transformer_layer){
        .place = o.norm_place, .dropout = o.dropout, .along = o.along, .crosses = crosses};
    return layer_end(&start, add_parts(layer, set, name, &o));
}

bool sb_transformer_layer_init(sb_transformer_layer *layer, sb_parameters *set, const char *name,
                               const sb_transformer_options *options, bool crosses)
{
    return layer_init("transformer_layer", layer, set, name, options, crosses);
}

bool sb_encoder_layer_init(sb_encoder_layer *layer, sb_parameters *set, const char *name,
                           const sb_transformer_options *options)
{
    return layer_init("encoder_layer", layer, set, name, options, false);
}

bool sb_decoder_layer_init(sb_decoder_layer *layer, sb_parameters *set, const char *name,
                           const sb_transformer_options *options, bool crosses)
{
    sb_transformer_options o = options ? *options : (sb_transformer_options){0};
    o.along = SB_SEQUENCE_TARGET;
    return layer_init("decoder_layer", layer, set, name, &o, crosses);
}

/* A branch, normalised with SB_NORM_SANDWICH. */
static sb_tensor *branch_of(const sb_transformer_layer *l, const sb_norm_layer *norm,
                            sb_tensor *branch)
{
    return l->place == SB_NORM_SANDWICH ? sb_norm_layer_forward(norm, branch) : branch;
}

static sb_tensor *pre_norm(const sb_transformer_layer *l, sb_tensor *x, sb_tensor *memory,
                           const sb_attending *self, const sb_attending *cross)
{
    sb_tensor *h = sb_norm_layer_forward(&l->self_norm, x);
    sb_tensor *branch = sb_multi_head_attention_forward(&l->self_attention, h, h, self);
    branch = branch_of(l, &l->self_branch_norm, branch);
    if (l->crosses) {
        h = sb_norm_layer_residual(&l->cross_norm, x, branch, l->dropout, l->along, &x);
        branch = sb_multi_head_attention_forward(&l->cross_attention, h, memory, cross);
        branch = branch_of(l, &l->cross_branch_norm, branch);
    }
    h = sb_norm_layer_residual(&l->feed_norm, x, branch, l->dropout, l->along, &x);
    branch = branch_of(l, &l->feed_branch_norm, sb_feed_forward_forward(&l->feed_forward, h));
    return residual_dropout_along(x, branch, l->dropout, l->along);
}

static sb_tensor *post_norm(const sb_transformer_layer *l, sb_tensor *x, sb_tensor *memory,
                            const sb_attending *self, const sb_attending *cross)
{
    sb_tensor *sum, *branch = sb_multi_head_attention_forward(&l->self_attention, x, x, self);
    x = sb_norm_layer_residual(&l->self_norm, x, branch, l->dropout, l->along, &sum);
    if (l->crosses) {
        branch = sb_multi_head_attention_forward(&l->cross_attention, x, memory, cross);
        x = sb_norm_layer_residual(&l->cross_norm, x, branch, l->dropout, l->along, &sum);
    }
    branch = sb_feed_forward_forward(&l->feed_forward, x);
    return sb_norm_layer_residual(&l->feed_norm, x, branch, l->dropout, l->along, &sum);
}

sb_tensor *sb_transformer_layer_forward(const sb_transformer_layer *layer, sb_tensor *x,
                                        sb_tensor *memory, const sb_attending *self,
                                        const sb_attending *cross)
{
    if (!layer)
        return fail_null("transformer_layer", "layer");
    return layer->place == SB_NORM_POST ? post_norm(layer, x, memory, self, cross)
                                        : pre_norm(layer, x, memory, self, cross);
}

sb_tensor *sb_encoder_layer_forward(const sb_encoder_layer *layer, sb_tensor *x,
                                    const sb_attending *attending)
{
    return sb_transformer_layer_forward(layer, x, NULL, attending, NULL);
}

sb_tensor *sb_decoder_layer_forward(const sb_decoder_layer *layer, sb_tensor *x, sb_tensor *memory,
                                    const sb_attending *self, const sb_attending *cross)
{
    return sb_transformer_layer_forward(layer, x, memory, self, cross);
}
