#include "nn/linear.h"
#include "nn/name.h"
#include "nn/precision.h"

bool sb_linear_layer_init(sb_linear_layer *layer, sb_parameters *set, const char *name, int64_t in,
                          int64_t out, bool bias)
{
    const sb_initial xavier = {SB_INITIAL_XAVIER, 0}, zero = {SB_INITIAL_CONSTANT, 0};
    *layer = (sb_linear_layer){0};
    layer->weight =
        sb_parameters_add(set, name_join(name, "weight").text, SB_SHAPE(out, in), xavier);
    if (layer->weight && bias)
        layer->bias = sb_parameters_add(set, name_join(name, "bias").text, SB_SHAPE(out), zero);
    return layer->weight && (layer->bias || !bias);
}

sb_tensor *sb_linear_layer_forward(const sb_linear_layer *layer, sb_tensor *x,
                                   sb_activation activation)
{
    sb_tensor *weight = precision_of(layer->weight, x);
    return sb_linear_activation(x, weight, precision_of(layer->bias, x), activation);
}
