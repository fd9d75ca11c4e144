#include "nn/convolution.h"
#include "nn/layer.h"
#include "tensor/failure.h"

bool sb_convolution_init(sb_convolution *layer, sb_parameters *set, const char *name, int64_t in,
                         int64_t out, int64_t width, bool bias, const sb_unfold_options *options)
{
    struct layer_start start;
    if (!layer_begin(&start, "convolution", layer, sizeof *layer, set, name) ||
        !check_at_least("convolution", "in", in, 1) ||
        !check_at_least("convolution", "width", width, 1))
        return false;
    if (in > INT64_MAX / width)
        return sb_fail("convolution: in is %lld, width is %lld: their product is too large",
                       (long long)in, (long long)width);
    layer->width = width;
    layer->unfold = options ? *options : (sb_unfold_options){0};
    return layer_end(&start,
                     sb_linear_layer_init(&layer->linear, set, name, width * in, out, bias));
}

sb_tensor *sb_convolution_forward(const sb_convolution *layer, sb_tensor *x,
                                  sb_activation activation)
{
    if (!layer)
        return fail_null("convolution", "layer");
    sb_tensor *windows = sb_unfold(x, layer->width, &layer->unfold);
    return sb_linear_layer_forward(&layer->linear, windows, activation);
}
