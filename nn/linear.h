/* A fully connected layer: y = activation(x W' + b). */
#ifndef SOFTBACK_NN_LINEAR_H
#define SOFTBACK_NN_LINEAR_H

#include "../ops/ops.h"
#include "parameters.h"

typedef struct {
    sb_tensor *weight;          /* (out, in), Xavier */
    sb_tensor *bias;            /* (out), zeros; or NULL */
    sb_tensor *lora_a, *lora_b; /* adapters (nn/lora.h); or NULL */
    double lora_scale;
} sb_linear_layer;

/* Adds "<name>.weight" and, with bias, "<name>.bias" to the set, and the adapters that
   sb_parameters_lora asked for. Fails when an argument is NULL, a
   size is below 1, or a name is taken; then the layer is zero and the set is unchanged. */
SB_API bool sb_linear_layer_init(sb_linear_layer *layer, sb_parameters *set, const char *name,
                                 int64_t in, int64_t out, bool bias);
/* Adds a linear layer with tensor parallelism, where each rank holds an equal part of the weight:
   of its outputs with axis 0 (column parallel), of its inputs with axis 1 (row parallel, with all
   of the bias). */
SB_API bool sb_linear_layer_init_cut(sb_linear_layer *layer, sb_parameters *set, const char *name,
                                     int64_t in, int64_t out, bool bias, sb_cut cut);
/* x (..., in) -> y (..., out) */
SB_API sb_tensor *sb_linear_layer_forward(const sb_linear_layer *layer, sb_tensor *x,
                                          sb_activation activation);
/* The output of a row-parallel layer: x (..., in / P) -> y (..., out), the sum over ranks plus the
   bias. `ranks` is NULL for a single rank. */
SB_API sb_tensor *sb_linear_layer_join(const sb_linear_layer *layer, sb_tensor *x,
                                       sb_communicator *ranks);

#endif
