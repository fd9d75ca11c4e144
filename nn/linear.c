#include "nn/linear.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/precision.h"
#include "tensor/failure.h"

bool sb_linear_layer_init(sb_linear_layer *layer, sb_parameters *set, const char *name, int64_t in,
                          int64_t out, bool bias)
{
    return sb_linear_layer_init_cut(layer, set, name, in, out, bias, (sb_cut){NULL, 0});
}

bool sb_linear_layer_init_cut(sb_linear_layer *layer, sb_parameters *set, const char *name,
                              int64_t in, int64_t out, bool bias, sb_cut cut)
{
    const sb_initial xavier = {SB_INITIAL_XAVIER, 0}, zero = {SB_INITIAL_CONSTANT, 0};
    struct layer_start start;
    if (!layer_begin(&start, "linear", layer, sizeof *layer, set, name) ||
        !check_at_least("linear", "in", in, 1) || !check_at_least("linear", "out", out, 1))
        return false;
    layer->weight =
        sb_parameters_add_cut(set, name_join(name, "weight").text, SB_SHAPE(out, in), xavier, cut);
    const int ranks = sb_communicator_size(cut.ranks);
    cut.ranks = cut.axis == 0 ? cut.ranks : NULL;
    if (layer->weight && bias)
        layer->bias =
            sb_parameters_add_cut(set, name_join(name, "bias").text, SB_SHAPE(out), zero, cut);
    return layer_end(&start, layer->weight && (layer->bias || !bias) &&
                                 lora_init(layer, set, name, in, out, ranks));
}

sb_tensor *sb_linear_layer_forward(const sb_linear_layer *layer, sb_tensor *x,
                                   sb_activation activation)
{
    if (!layer)
        return fail_null("linear_layer", "layer");
    if (layer->lora_a)
        return lora_forward(layer, x, activation);
    sb_tensor *weight = precision_of(layer->weight, x);
    return sb_linear_activation(x, weight, precision_of(layer->bias, x), activation);
}

sb_tensor *sb_linear_layer_join(const sb_linear_layer *layer, sb_tensor *x, sb_communicator *ranks)
{
    if (!layer)
        return fail_null("linear_layer", "layer");
    if (sb_communicator_size(ranks) == 1)
        return sb_linear_layer_forward(layer, x, SB_ACTIVATION_IDENTITY);
    sb_tensor *y = sb_from_ranks(sb_linear(x, precision_of(layer->weight, x), NULL), ranks);
    return layer->bias ? sb_add(y, precision_of(layer->bias, x)) : y;
}
