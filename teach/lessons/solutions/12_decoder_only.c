/* Lesson 12, a decoder from layers: a solution. */
#include "lesson.h"

static sb_tensor *linear(const sb_linear_layer *layer, sb_tensor *x)
{
    return sb_linear_layer_forward(layer, x, SB_ACTIVATION_IDENTITY);
}

sb_tensor *decoder_block(const struct decoder_layers *layers, sb_tensor *x)
{
    const sb_attention_options causal = {.mask = sb_mask_causal()};
    sb_tensor *h = sb_norm_layer_forward(&layers->attention_norm, x);
    sb_tensor *q = linear(&layers->query, h), *k = linear(&layers->key, h);
    sb_tensor *v = linear(&layers->value, h);
    x = sb_add(x, linear(&layers->output, sb_attention(q, k, v, &causal)));
    h = sb_norm_layer_forward(&layers->forward_norm, x);
    h = sb_linear_layer_forward(&layers->wide, h, SB_ACTIVATION_RELU);
    return sb_add(x, linear(&layers->narrow, h));
}
