#include "nn/decoder.h"
#include "autograd/recomputation.h"
#include "nn/decoder_state.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "ops/dropout.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct sb_decoder {
    sb_embedding_layer embedding;
    sb_position_bias bias;
    sb_norm_layer norm; /* pre-norm only */
    bool has_norm, crosses, recomputes;
    int layers;
    sb_decoder_layer *layer;
};

/* The parts of a layer, given complete options. */
static bool add_parts(sb_decoder_layer *layer, sb_parameters *set, const char *name,
                      const sb_transformer_options *o)
{
    const bool rotary = o->positions == SB_POSITIONS_ROTARY;
    const sb_norm_kind kind = o->norm_kind;
    const int64_t C = o->width;
    if (!sb_multi_head_attention_init(&layer->self_attention, set,
                                      name_join(name, "self_attention").text, o, rotary) ||
        !sb_norm_layer_init(&layer->self_norm, set, name_join(name, "self_norm").text, C, kind))
        return false;
    if (layer->crosses &&
        (!sb_multi_head_attention_init(&layer->cross_attention, set,
                                       name_join(name, "cross_attention").text, o, false) ||
         !sb_norm_layer_init(&layer->cross_norm, set, name_join(name, "cross_norm").text, C, kind)))
        return false;
    layer->cross_attention.keys_along = SB_SEQUENCE_SOURCE;
    return sb_feed_forward_init(&layer->feed_forward, set, name_join(name, "feed_forward").text,
                                o) &&
           sb_norm_layer_init(&layer->feed_norm, set, name_join(name, "feed_norm").text, C, kind);
}

bool sb_decoder_layer_init(sb_decoder_layer *layer, sb_parameters *set, const char *name,
                           const sb_transformer_options *options, bool crosses)
{
    struct layer_start start;
    sb_transformer_options o;
    if (!layer_begin(&start, "decoder_layer", layer, sizeof *layer, set, name) ||
        !layer_complete("decoder_layer", USES_LAYER, options, &o))
        return false;
    o.along = SB_SEQUENCE_TARGET;
    *layer = (sb_decoder_layer){.place = o.norm_place, .dropout = o.dropout, .crosses = crosses};
    return layer_end(&start, add_parts(layer, set, name, &o));
}

static sb_tensor *pre_norm(const sb_decoder_layer *l, sb_tensor *x, sb_tensor *memory,
                           const sb_attending *self, const sb_attending *cross)
{
    sb_tensor *h = sb_norm_layer_forward(&l->self_norm, x);
    sb_tensor *branch = sb_multi_head_attention_forward(&l->self_attention, h, h, self);
    if (l->crosses) {
        h = sb_norm_layer_residual(&l->cross_norm, x, branch, l->dropout, SB_SEQUENCE_TARGET, &x);
        branch = sb_multi_head_attention_forward(&l->cross_attention, h, memory, cross);
    }
    h = sb_norm_layer_residual(&l->feed_norm, x, branch, l->dropout, SB_SEQUENCE_TARGET, &x);
    return residual_dropout_along(x, sb_feed_forward_forward(&l->feed_forward, h), l->dropout,
                                  SB_SEQUENCE_TARGET);
}

static sb_tensor *post_norm(const sb_decoder_layer *l, sb_tensor *x, sb_tensor *memory,
                            const sb_attending *self, const sb_attending *cross)
{
    sb_tensor *sum, *branch = sb_multi_head_attention_forward(&l->self_attention, x, x, self);
    x = sb_norm_layer_residual(&l->self_norm, x, branch, l->dropout, SB_SEQUENCE_TARGET, &sum);
    if (l->crosses) {
        branch = sb_multi_head_attention_forward(&l->cross_attention, x, memory, cross);
        x = sb_norm_layer_residual(&l->cross_norm, x, branch, l->dropout, SB_SEQUENCE_TARGET, &sum);
    }
    branch = sb_feed_forward_forward(&l->feed_forward, x);
    return sb_norm_layer_residual(&l->feed_norm, x, branch, l->dropout, SB_SEQUENCE_TARGET, &sum);
}

sb_tensor *sb_decoder_layer_forward(const sb_decoder_layer *layer, sb_tensor *x, sb_tensor *memory,
                                    const sb_attending *self, const sb_attending *cross)
{
    return layer->place == SB_NORM_POST ? post_norm(layer, x, memory, self, cross)
                                        : pre_norm(layer, x, memory, self, cross);
}

static bool init(sb_decoder *d, sb_parameters *set, const char *name, int64_t V,
                 const sb_transformer_options *o, sb_tensor *shared)
{
    if (!sb_embedding_layer_init(&d->embedding, set, name_join(name, "embedding").text, V, o,
                                 shared) ||
        !sb_position_bias_init(&d->bias, set, name, o))
        return false;
    for (int i = 0; i < d->layers; i++)
        if (!sb_decoder_layer_init(&d->layer[i], set, name_layer(name, i).text, o, d->crosses))
            return false;
    d->recomputes = o->recompute;
    d->has_norm = o->norm_place == SB_NORM_PRE;
    return !d->has_norm ||
           sb_norm_layer_init(&d->norm, set, name_join(name, "norm").text, o->width, o->norm_kind);
}

sb_decoder *sb_decoder_new(sb_parameters *set, const char *name, int64_t V,
                           const sb_transformer_options *options, bool crosses, sb_tensor *shared)
{
    sb_transformer_options o;
    if (!set || !name)
        return fail_null("decoder", set ? "name" : "set");
    if (!sb_transformer_complete(options, &o))
        return NULL;
    o.along = SB_SEQUENCE_TARGET;
    const struct parameters_mark mark = parameters_mark(set);
    sb_decoder *d = memory_new(sizeof *d);
    if (!d)
        return sb_fail("decoder: out of memory");
    d->crosses = crosses;
    d->layers = o.decoder_layers;
    d->layer = memory_new((size_t)d->layers * sizeof *d->layer);
    if (!d->layer)
        sb_fail("decoder: out of memory");
    if (d->layer && init(d, set, name, V, &o, shared))
        return d;
    sb_decoder_free(d);
    parameters_return(set, &mark);
    return NULL;
}

void sb_decoder_free(sb_decoder *decoder)
{
    if (decoder)
        memory_free(decoder->layer);
    memory_free(decoder);
}

sb_tensor *sb_decoder_table(const sb_decoder *decoder)
{
    return decoder ? decoder->embedding.weight : NULL;
}

int sb_decoder_layers(const sb_decoder *decoder)
{
    return decoder ? decoder->layers : 0;
}

/* `held`: whether a state has the keys and values of the memory already. */
static bool memory_fits(const sb_decoder *d, const sb_tensor *memory, const sb_tensor *lengths,
                        bool held)
{
    if (!d)
        return fail_null("decoder", "decoder");
    if (d->crosses && ((!memory && !held) || !lengths))
        return fail_null("decoder", memory || held ? "lengths" : "memory");
    if (!d->crosses && memory)
        return sb_fail("decoder: it has no cross-attention and takes no memory");
    return true;
}

/* A layer as a function of x and of the memory and the bias, if there are such. */
struct segment {
    const sb_decoder_layer *layer;
    sb_attending self, cross;
};

static sb_tensor *run_segment(void *context, sb_tensor *const x[])
{
    struct segment s = *(const struct segment *)context;
    sb_tensor *memory = s.layer->crosses ? x[1] : NULL;
    if (s.self.bias)
        s.self.bias = x[s.layer->crosses ? 2 : 1];
    return sb_decoder_layer_forward(s.layer, x[0], memory, &s.self, &s.cross);
}

static sb_tensor *run_layer(const sb_decoder *d, int i, sb_tensor *x, sb_tensor *memory,
                            const sb_attending *self, const sb_attending *cross)
{
    const struct segment s = {&d->layer[i], *self, *cross};
    if (!d->recomputes || self->cache || self->weights || cross->weights)
        return sb_decoder_layer_forward(s.layer, x, memory, self, cross);
    sb_tensor *in[3] = {x};
    int n = 1;
    if (d->crosses)
        in[n++] = memory;
    if (self->bias)
        in[n++] = self->bias;
    return sb_checkpoint(run_segment, &s, sizeof s, n, in);
}

/* The new positions `start`... of all layers, given what self and cross may look at; with a state,
   each layer has caches of its own. */
static sb_tensor *run(const sb_decoder *d, sb_tensor *x, sb_tensor *memory, sb_attending self,
                      sb_attending cross, sb_decoder_state *state,
                      const sb_decoder_weights *weights)
{
    for (int i = 0; i < d->layers; i++) {
        self.cache = state ? state->self[i] : NULL;
        cross.cache = state && d->crosses ? state->cross[i] : NULL;
        self.weights = weights && weights->self ? &weights->self[i] : NULL;
        cross.weights = weights && weights->cross ? &weights->cross[i] : NULL;
        x = run_layer(d, i, x, memory, &self, &cross);
    }
    return d->has_norm ? sb_norm_layer_forward(&d->norm, x) : x;
}

sb_tensor *sb_decoder_forward(const sb_decoder *d, sb_tensor *ids, sb_tensor *memory,
                              sb_tensor *lengths, const sb_decoder_weights *weights)
{
    if (!memory_fits(d, memory, lengths, false))
        return NULL;
    bool ok;
    int64_t L = sb_tensor_dim(ids, 1);
    sb_attending self = {.mask = sb_mask_causal()};
    sb_attending cross = {.mask = d->crosses ? sb_mask_lengths(lengths) : NULL};
    sb_tensor *x = sb_embedding_layer_forward(&d->embedding, ids, 0);
    self.bias = sb_position_bias_forward(&d->bias, L, L, &ok);
    if (!x || !ok || !self.mask || (d->crosses && !cross.mask))
        return NULL;
    return run(d, x, memory, self, cross, NULL, weights);
}

sb_tensor *sb_decoder_step(const sb_decoder *d, sb_decoder_state *state, sb_tensor *ids,
                           sb_tensor *memory, sb_tensor *lengths, const sb_decoder_weights *weights)
{
    if (!memory_fits(d, memory, lengths, state && state->length > 0))
        return NULL;
    if (!state || state->decoder != d)
        return state ? sb_fail("decoder: the state is of another decoder")
                     : fail_null("decoder", "state");
    bool ok;
    int64_t L = sb_tensor_dim(ids, 1);
    sb_attending self = {.mask = sb_mask_causal_last(), .start = state->length};
    sb_attending cross = {.mask = d->crosses ? sb_mask_lengths(lengths) : NULL,
                          .cached = state->length > 0};
    sb_tensor *x = sb_embedding_layer_forward(&d->embedding, ids, state->length);
    self.bias = sb_position_bias_forward(&d->bias, L, state->length + L, &ok);
    if (!x || !ok || !self.mask || (d->crosses && !cross.mask))
        return NULL;
    sb_tensor *y = run(d, x, memory, self, cross, state, weights);
    if (!y)
        return decoder_state_take_back(state);
    state->length += L;
    return y;
}

sb_decoder_state *sb_decoder_state_new(const sb_decoder *decoder)
{
    if (!decoder)
        return fail_null("decoder_state", "decoder");
    return decoder_state_new(decoder, decoder->layers, decoder->crosses);
}
