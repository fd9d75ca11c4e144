#include "nn/norm.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/precision.h"
#include "ops/normalization.h"
#include "tensor/failure.h"

bool sb_norm_layer_init(sb_norm_layer *layer, sb_parameters *set, const char *name, int64_t C,
                        sb_norm_kind kind)
{
    const sb_norm_options options = {.kind = kind};
    return sb_norm_layer_init_with(layer, set, name, C, &options);
}

bool sb_norm_layer_init_with(sb_norm_layer *layer, sb_parameters *set, const char *name, int64_t C,
                             const sb_norm_options *options)
{
    const sb_norm_options plain = {0}, *o = options ? options : &plain;
    const sb_norm_kind kind = o->kind;
    const bool biased = kind == SB_NORM_KIND_LAYER && !o->no_bias;
    const sb_initial one = {SB_INITIAL_CONSTANT, 1}, zero = {SB_INITIAL_CONSTANT, 0};
    struct layer_start start;
    if (!layer_begin(&start, "norm", layer, sizeof *layer, set, name) ||
        !check_at_least("norm", "C", C, 1))
        return false;
    if (kind != SB_NORM_KIND_LAYER && kind != SB_NORM_KIND_RMS)
        return sb_fail("norm: \"%s\": %d is not a kind of norm", name, (int)kind);
    layer->kind = kind;
    layer->epsilon = o->epsilon;
    layer->ranks = o->ranks;
    layer->gain = sb_parameters_add(set, name_join(name, "weight").text, SB_SHAPE(C), one);
    if (layer->gain && biased)
        layer->bias = sb_parameters_add(set, name_join(name, "bias").text, SB_SHAPE(C), zero);
    return layer_end(&start, layer->gain && (layer->bias || !biased));
}

/* The gain or bias in the dtype of x. */
static sb_tensor *norm_weight(const sb_norm_layer *layer, sb_tensor *weight, const sb_tensor *x)
{
    weight = precision_of(weight, x);
    return weight && sb_communicator_size(layer->ranks) > 1 ? sb_to_ranks(weight, layer->ranks)
                                                            : weight;
}

sb_tensor *sb_norm_layer_forward(const sb_norm_layer *layer, sb_tensor *x)
{
    if (!layer)
        return fail_null("norm_layer", "layer");
    sb_tensor *gain = norm_weight(layer, layer->gain, x),
              *bias = norm_weight(layer, layer->bias, x);
    return layer->kind == SB_NORM_KIND_RMS ? sb_rms_norm(x, gain, layer->epsilon)
                                           : sb_layer_norm(x, gain, bias, layer->epsilon);
}

sb_tensor *sb_norm_layer_residual(const sb_norm_layer *layer, sb_tensor *x, sb_tensor *branch,
                                  double p, sb_sequence along, sb_tensor **sum)
{
    if (!layer || !sum)
        return fail_null("norm_layer", layer ? "sum" : "layer");
    if (layer->kind == SB_NORM_KIND_LAYER) {
        sb_tensor *gain = norm_weight(layer, layer->gain, x),
                  *bias = norm_weight(layer, layer->bias, x);
        return residual_layer_norm_along(x, branch, p, along, gain, bias, layer->epsilon, sum);
    }
    *sum = residual_dropout_along(x, branch, p, along);
    return sb_norm_layer_forward(layer, *sum);
}
