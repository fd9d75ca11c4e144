#include "nn/encoder.h"
#include "nn/stack.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct sb_encoder {
    struct stack stack;
};

sb_encoder *sb_encoder_new(sb_parameters *set, const char *name, int64_t V,
                           const sb_transformer_options *options)
{
    sb_transformer_options o;
    if (!set || !name)
        return fail_null("encoder", set ? "name" : "set");
    if (!sb_transformer_complete(options, &o))
        return NULL;
    sb_encoder *e = memory_new(sizeof *e);
    if (!e)
        return sb_fail("encoder: out of memory");
    if (stack_init(&e->stack, set, name, V, o.encoder_layers, &o, false, NULL))
        return e;
    memory_free(e);
    return NULL;
}

void sb_encoder_free(sb_encoder *encoder)
{
    if (encoder)
        stack_clear(&encoder->stack);
    memory_free(encoder);
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
