/* A convolution along a sequence: y_t = activation(sum_k W_k x_{t stride + k dilation - left} + b),
   as the product of unfolded windows and one weight. */
#ifndef SOFTBACK_NN_CONVOLUTION_H
#define SOFTBACK_NN_CONVOLUTION_H

#include "linear.h"

typedef struct {
    int64_t width; /* of the window */
    sb_unfold_options unfold;
    sb_linear_layer linear; /* of weight (out, width in): the W_k side by side */
} sb_convolution;

/* Adds "<name>.weight" and, with bias, "<name>.bias", as sb_linear_layer_init. The options give
   stride, dilation and padding: a causal convolution has left = dilation (width - 1). Fails also
   when the width is below 1. */
SB_API bool sb_convolution_init(sb_convolution *layer, sb_parameters *set, const char *name,
                                int64_t in, int64_t out, int64_t width, bool bias,
                                const sb_unfold_options *options);
/* x (B, L, in) -> y (B, L', out), L' as in sb_unfold. Source: LeCun et al. 1989; the product:
   Chellapilla, Puri and Simard 2006. */
SB_API sb_tensor *sb_convolution_forward(const sb_convolution *layer, sb_tensor *x,
                                         sb_activation activation);

#endif
