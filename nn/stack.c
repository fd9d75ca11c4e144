/* The encoder and the decoder, and the stack that they share: an embedding, layers, and except with
   post-norm a final norm. */
#include "nn/stack.h"
#include "autograd/recomputation.h"
#include "nn/decoder_state.h"
#include "nn/device_position.h"
#include "nn/embedding.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/position_bias.h"
#include "nn/transformer_layer.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct stack {
    sb_embedding_layer embedding;
    sb_position_bias bias;
    sb_norm_layer norm; /* except with post-norm */
    bool has_norm, crosses, recomputes;
    int layers;
    sb_transformer_layer *layer;
};

/* The inputs of one use of a stack. Arrays have one entry for each layer, and may be NULL. */
struct stack_use {
    sb_attending self, cross; /* of all layers; without caches and weights */
    sb_tensor *segments;      /* of the ids; or NULL */
    sb_tensor *memory;        /* for cross-attention */
    sb_kv_cache **self_caches, **cross_caches;
    sb_tensor **self_weights, **cross_weights; /* receive the weights of attention */
};

static bool add_parts(struct stack *s, sb_parameters *set, const char *name, int64_t V,
                      const sb_transformer_options *o, sb_tensor *shared)
{
    if (!sb_embedding_layer_init(&s->embedding, set, name_join(name, "embedding").text, V, o,
                                 shared) ||
        !sb_position_bias_init(&s->bias, set, name, o))
        return false;
    for (int i = 0; i < s->layers; i++) {
        sb_transformer_options own = *o;
        if (o->rotary_interval && (i + 1) % o->rotary_interval == 0)
            own.positions = SB_POSITIONS_NONE;
        if (!sb_transformer_layer_init(&s->layer[i], set, name_layer(name, i).text, &own,
                                       s->crosses))
            return false;
    }
    const sb_norm_options norm = layer_norm_options(o);
    return !s->has_norm ||
           sb_norm_layer_init_with(&s->norm, set, name_join(name, "norm").text, o->width, &norm);
}

static void stack_free(struct stack *stack)
{
    if (stack)
        memory_free(stack->layer);
    memory_free(stack);
}

/*
 * A stack with "<name>.embedding" for V symbols (unless `shared` is a table to use instead), the
 * layers "<name>.layers.0", ..., and "<name>.norm". On failure the set is unchanged.
 */
static struct stack *stack_new(const char *who, sb_parameters *set, const char *name, int64_t V,
                               const sb_transformer_options *options, bool decodes, bool crosses,
                               sb_tensor *shared)
{
    sb_transformer_options o;
    if (!set || !name)
        return fail_null(who, set ? "name" : "set");
    if (!sb_transformer_complete(options, &o))
        return NULL;
    o.along = decodes ? SB_SEQUENCE_TARGET : o.along;
    const struct parameters_mark mark = parameters_mark(set);
    const int layers = decodes ? o.decoder_layers : o.encoder_layers;
    struct stack *s = memory_new(sizeof *s);
    if (!s)
        return sb_fail("%s: out of memory", who);
    *s = (struct stack){.has_norm = o.norm_place != SB_NORM_POST,
                        .crosses = crosses,
                        .recomputes = o.recompute,
                        .layers = layers,
                        .layer = memory_new((size_t)layers * sizeof *s->layer)};
    if (!s->layer)
        sb_fail("transformer: out of memory");
    else if (add_parts(s, set, name, V, &o, shared))
        return s;
    parameters_return(set, &mark);
    stack_free(s);
    return NULL;
}

/* A layer as a function of x and, if there are any, of the memory and the bias, for
   recomputation. */
struct segment {
    const sb_transformer_layer *layer;
    sb_attending self, cross;
};

static sb_tensor *run_segment(void *context, sb_tensor *const x[])
{
    struct segment s = *(const struct segment *)context;
    sb_tensor *memory = s.layer->crosses ? x[1] : NULL;
    if (s.self.bias)
        s.self.bias = x[s.layer->crosses ? 2 : 1];
    return sb_transformer_layer_forward(s.layer, x[0], memory, &s.self, &s.cross);
}

static sb_tensor *run_layer(const struct stack *stack, int i, sb_tensor *x, sb_tensor *memory,
                            const sb_attending *self, const sb_attending *cross)
{
    const struct segment s = {&stack->layer[i], *self, *cross};
    if (!stack->recomputes || self->cache || self->weights || cross->weights)
        return sb_transformer_layer_forward(s.layer, x, memory, self, cross);
    sb_tensor *in[3] = {x};
    int n = 1;
    if (stack->crosses)
        in[n++] = memory;
    if (self->bias)
        in[n++] = self->bias;
    return sb_recompute(run_segment, &s, sizeof s, n, in);
}

/* ids (B, L) of i32, the last L of `length` positions -> (B, L, C). */
static sb_tensor *stack_forward(const struct stack *stack, sb_tensor *ids, int64_t length,
                                struct stack_use *use)
{
    bool ok;
    const int64_t L = sb_tensor_dim(ids, 1);
    sb_tensor *x =
        sb_embedding_layer_forward_segments(&stack->embedding, ids, use->segments, use->self.start);
    use->self.bias = sb_position_bias_forward(&stack->bias, L, length, &ok);
    if (!x || !ok || !use->self.mask || (stack->crosses && !use->cross.mask))
        return NULL;
    for (int i = 0; i < stack->layers; i++) {
        use->self.cache = use->self_caches ? use->self_caches[i] : NULL;
        use->cross.cache = use->cross_caches ? use->cross_caches[i] : NULL;
        use->self.weights = use->self_weights ? &use->self_weights[i] : NULL;
        use->cross.weights = use->cross_weights ? &use->cross_weights[i] : NULL;
        x = run_layer(stack, i, x, use->memory, &use->self, &use->cross);
    }
    return stack->has_norm ? sb_norm_layer_forward(&stack->norm, x) : x;
}

/* ---- the encoder ---- */

struct sb_encoder {
    struct stack stack;
};

sb_encoder *sb_encoder_new(sb_parameters *set, const char *name, int64_t V,
                           const sb_transformer_options *options)
{
    return (sb_encoder *)stack_new("encoder", set, name, V, options, false, false, NULL);
}

void sb_encoder_free(sb_encoder *encoder)
{
    stack_free((struct stack *)encoder);
}

sb_tensor *sb_encoder_forward(const sb_encoder *encoder, sb_tensor *ids, sb_tensor *lengths,
                              sb_tensor *weights[])
{
    return sb_encoder_forward_segments(encoder, ids, NULL, lengths, weights);
}

sb_tensor *sb_encoder_forward_segments(const sb_encoder *encoder, sb_tensor *ids,
                                       sb_tensor *segments, sb_tensor *lengths,
                                       sb_tensor *weights[])
{
    if (!encoder)
        return fail_null("encoder", "encoder");
    struct stack_use use = {
        .self = {.mask = sb_mask_lengths(lengths)}, .segments = segments, .self_weights = weights};
    return stack_forward(&encoder->stack, ids, sb_tensor_dim(ids, 1), &use);
}

sb_tensor *sb_encoder_table(const sb_encoder *encoder)
{
    return encoder ? encoder->stack.embedding.weight : NULL;
}

int sb_encoder_layers(const sb_encoder *encoder)
{
    return encoder ? encoder->stack.layers : 0;
}

/* ---- the decoder ---- */

struct sb_decoder {
    struct stack stack;
};

sb_decoder *sb_decoder_new(sb_parameters *set, const char *name, int64_t V,
                           const sb_transformer_options *options, bool crosses, sb_tensor *shared)
{
    return (sb_decoder *)stack_new("decoder", set, name, V, options, true, crosses, shared);
}

void sb_decoder_free(sb_decoder *decoder)
{
    stack_free((struct stack *)decoder);
}

sb_tensor *sb_decoder_table(const sb_decoder *decoder)
{
    return decoder ? decoder->stack.embedding.weight : NULL;
}

int sb_decoder_layers(const sb_decoder *decoder)
{
    return decoder ? decoder->stack.layers : 0;
}

/* `held`: whether a state already has the keys and values of the memory. */
static bool memory_fits(const sb_decoder *d, const sb_tensor *memory, const sb_tensor *lengths,
                        bool held)
{
    if (!d)
        return fail_null("decoder", "decoder");
    const bool crosses = d->stack.crosses;
    if (crosses && ((!memory && !held) || !lengths))
        return fail_null("decoder", memory || held ? "lengths" : "memory");
    if (!crosses && memory)
        return sb_fail("decoder: it has no cross-attention and takes no memory");
    return true;
}

/* The attention of the new positions from `start` on to earlier positions and to the memory. */
static struct stack_use use_of(const sb_decoder *d, sb_mask *causal, int64_t start,
                               sb_tensor *memory, sb_tensor *lengths,
                               const sb_decoder_weights *weights)
{
    return (struct stack_use){
        .self = {.mask = causal, .start = start},
        .cross = {.mask = d->stack.crosses ? sb_mask_lengths(lengths) : NULL, .cached = start > 0},
        .memory = memory,
        .self_weights = weights ? weights->self : NULL,
        .cross_weights = weights ? weights->cross : NULL};
}

sb_tensor *sb_decoder_forward(const sb_decoder *d, sb_tensor *ids, sb_tensor *memory,
                              sb_tensor *lengths, const sb_decoder_weights *weights)
{
    if (!memory_fits(d, memory, lengths, false))
        return NULL;
    struct stack_use use = use_of(d, sb_mask_causal(), 0, memory, lengths, weights);
    return stack_forward(&d->stack, ids, sb_tensor_dim(ids, 1), &use);
}

sb_tensor *sb_decoder_step(const sb_decoder *d, sb_decoder_state *state, sb_tensor *ids,
                           sb_tensor *memory, sb_tensor *lengths, const sb_decoder_weights *weights)
{
    if (!memory_fits(d, memory, lengths, state && state->length > 0))
        return NULL;
    if (!state || state->decoder != d)
        return state ? sb_fail("decoder: the state is of another decoder")
                     : fail_null("decoder", "state");
    const struct device_position *position = device_position_open();
    const int64_t length = state->length + (position ? 0 : sb_tensor_dim(ids, 1));
    sb_mask *mask = position ? sb_mask_lengths(position->lengths) : sb_mask_causal_last();
    struct stack_use use = use_of(d, mask, state->length, memory, lengths, weights);
    use.self_caches = state->self;
    use.cross_caches = state->cross;
    decoder_state_follow(state, position ? position->at : NULL);
    sb_tensor *y = stack_forward(&d->stack, ids, length, &use);
    decoder_state_follow(state, NULL);
    if (!y)
        return decoder_state_take_back(state);
    state->length = length;
    return y;
}

int64_t decoder_table_size(const sb_decoder *decoder, int64_t room)
{
    const sb_position_bias *bias = &decoder->stack.bias;
    const bool any = bias->table || bias->positions == SB_POSITIONS_ALIBI;
    return any ? room * room * bias->heads : 0;
}

sb_decoder_state *sb_decoder_state_new(const sb_decoder *decoder)
{
    if (!decoder)
        return fail_null("decoder_state", "decoder");
    return decoder_state_new(decoder, decoder->stack.layers, decoder->stack.crosses);
}
