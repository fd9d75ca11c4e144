#include "nn/feed_forward.h"
#include "nn/name.h"

bool sb_feed_forward_init(sb_feed_forward *layer, sb_parameters *set, const char *name,
                          const sb_transformer_options *options)
{
    int64_t C = options->width, F = options->feed_forward;
    *layer = (sb_feed_forward){.activation = options->activation};
    return sb_linear_layer_init(&layer->up, set, name_join(name, "up").text, C, F, true) &&
           (!options->gated ||
            sb_linear_layer_init(&layer->gate, set, name_join(name, "gate").text, C, F, true)) &&
           sb_linear_layer_init(&layer->down, set, name_join(name, "down").text, F, C, true);
}

sb_tensor *sb_feed_forward_forward(const sb_feed_forward *layer, sb_tensor *x)
{
    sb_tensor *hidden = sb_linear_layer_forward(&layer->up, x, layer->activation);
    if (layer->gate.weight)
        hidden = sb_multiply(hidden, sb_linear_layer_forward(&layer->gate, x, SB_IDENTITY));
    return sb_linear_layer_forward(&layer->down, hidden, SB_IDENTITY);
}
