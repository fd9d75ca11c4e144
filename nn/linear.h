/* A fully connected layer: y = activation(x W' + b). */
#ifndef SOFTBACK_NN_LINEAR_H
#define SOFTBACK_NN_LINEAR_H

#include "../ops/ops.h"
#include "parameters.h"

typedef struct {
    sb_tensor *weight; /* (out, in), Xavier */
    sb_tensor *bias;   /* (out), zeros; or NULL */
} sb_linear_layer;

/* Adds "<name>.weight" and, with bias, "<name>.bias" to the set. Fails when an argument is NULL, a
   size is below 1, or a name is taken; the layer is then zero, and the set as it was before. */
SB_API bool sb_linear_layer_init(sb_linear_layer *layer, sb_parameters *set, const char *name,
                                 int64_t in, int64_t out, bool bias);
/* The same, of which each rank holds an equal part: with axis 0 of the outputs, from all inputs;
   with axis 1 of the inputs, and all of the bias. */
SB_API bool sb_linear_layer_init_cut(sb_linear_layer *layer, sb_parameters *set, const char *name,
                                     int64_t in, int64_t out, bool bias, sb_cut cut);
/* x (..., in) -> y (..., out) */
SB_API sb_tensor *sb_linear_layer_forward(const sb_linear_layer *layer, sb_tensor *x,
                                          sb_activation activation);
/* The same where ranks hold parts of the inputs: x (..., in / P) -> y (..., out), the sum of what
   they make of x, and the bias. NULL: this rank is alone. */
SB_API sb_tensor *sb_linear_layer_join(const sb_linear_layer *layer, sb_tensor *x,
                                       sb_communicator *ranks);

#endif
