/* A fully connected layer: y = activation(x W' + b). */
#ifndef SOFTBACK_NN_LINEAR_H
#define SOFTBACK_NN_LINEAR_H

#include "../ops/ops.h"
#include "parameters.h"

typedef struct {
    sb_tensor *weight; /* (out, in), Xavier */
    sb_tensor *bias;   /* (out), zeros; or NULL */
} sb_linear_layer;

/* Adds "<name>.weight" and, with bias, "<name>.bias" to the set. */
SB_API bool sb_linear_layer_init(sb_linear_layer *layer, sb_parameters *set, const char *name,
                                 int64_t in, int64_t out, bool bias);
/* x (..., in) -> y (..., out) */
SB_API sb_tensor *sb_linear_layer_forward(const sb_linear_layer *layer, sb_tensor *x,
                                          sb_activation activation);

#endif
