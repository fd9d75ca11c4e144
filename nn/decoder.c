#include "nn/decoder.h"
#include "nn/decoder_state.h"
#include "nn/device_position.h"
#include "nn/stack.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct sb_decoder {
    struct stack stack;
};

sb_decoder *sb_decoder_new(sb_parameters *set, const char *name, int64_t V,
                           const sb_transformer_options *options, bool crosses, sb_tensor *shared)
{
    sb_transformer_options o;
    if (!set || !name)
        return fail_null("decoder", set ? "name" : "set");
    if (!sb_transformer_complete(options, &o))
        return NULL;
    o.along = SB_SEQUENCE_TARGET;
    sb_decoder *d = memory_new(sizeof *d);
    if (!d)
        return sb_fail("decoder: out of memory");
    if (stack_init(&d->stack, set, name, V, o.decoder_layers, &o, crosses, shared))
        return d;
    memory_free(d);
    return NULL;
}

void sb_decoder_free(sb_decoder *decoder)
{
    if (decoder)
        stack_clear(&decoder->stack);
    memory_free(decoder);
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
