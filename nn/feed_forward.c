#include "nn/feed_forward.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "ops/dropout.h"
#include "tensor/failure.h"

bool sb_feed_forward_init(sb_feed_forward *layer, sb_parameters *set, const char *name,
                          const sb_transformer_options *options)
{
    struct layer_start start;
    sb_transformer_options o;
    if (!layer_begin(&start, "feed_forward", layer, sizeof *layer, set, name) ||
        !layer_complete("feed_forward", USES_FEED_FORWARD, options, &o))
        return false;
    if (o.feed_forward_dropout > 0 && sb_communicator_size(o.ranks) > 1)
        return sb_fail("feed_forward: feed_forward_dropout is %g, but %d ranks hold parts of the "
                       "hidden units; it must be 0 there",
                       o.feed_forward_dropout, sb_communicator_size(o.ranks));
    const int64_t C = o.width, F = o.feed_forward;
    const bool bias = o.biases == SB_BIASES_ALL;
    const sb_cut out = {o.ranks, 0}, in = {o.ranks, 1};
    *layer = (sb_feed_forward){.activation = o.activation,
                               .ranks = o.ranks,
                               .dropout = o.feed_forward_dropout,
                               .along = o.along};
    const bool made =
        (!o.gated || sb_linear_layer_init_cut(&layer->gate, set, name_join(name, "gate").text, C, F,
                                              bias, out)) &&
        sb_linear_layer_init_cut(&layer->up, set, name_join(name, "up").text, C, F, bias, out) &&
        sb_linear_layer_init_cut(&layer->down, set, name_join(name, "down").text, F, C, bias, in);
    return layer_end(&start, made);
}

sb_tensor *sb_feed_forward_forward(const sb_feed_forward *layer, sb_tensor *x)
{
    if (!layer)
        return fail_null("feed_forward", "layer");
    if (sb_communicator_size(layer->ranks) > 1)
        x = sb_to_ranks(x, layer->ranks);
    const bool gated = layer->gate.weight;
    const sb_linear_layer *first = gated ? &layer->gate : &layer->up;
    sb_tensor *hidden = sb_linear_layer_forward(first, x, layer->activation);
    if (gated)
        hidden =
            sb_multiply(hidden, sb_linear_layer_forward(&layer->up, x, SB_ACTIVATION_IDENTITY));
    if (layer->dropout > 0)
        hidden = dropout_along(hidden, layer->dropout, layer->along);
    return sb_linear_layer_join(&layer->down, hidden, layer->ranks);
}
