/* Layer norm or RMS norm over the last axis, with a learned gain (and bias). */
#ifndef SOFTBACK_NN_NORM_H
#define SOFTBACK_NN_NORM_H

#include "../ops/ops.h"
#include "../tensor/communicator.h"
#include "parameters.h"

typedef enum { SB_NORM_KIND_LAYER, SB_NORM_KIND_RMS } sb_norm_kind;

typedef struct {
    sb_norm_kind kind;
    sb_tensor *gain;        /* (C), ones */
    sb_tensor *bias;        /* (C), zeros; or NULL */
    double epsilon;         /* of the operation, which may be set after init; 0: its default */
    sb_communicator *ranks; /* each holds a part of the rows, and the gradients of gain and bias are
                               summed over them; NULL: all rows are here */
} sb_norm_layer;

typedef struct {
    sb_norm_kind kind;
    bool no_bias;
    double epsilon;         /* 0: the default of the operation */
    sb_communicator *ranks; /* that each hold a part of the rows; NULL: none */
} sb_norm_options;

/* Adds "<name>.weight" (the gain) and, for a layer norm, "<name>.bias". Fails as
   sb_linear_layer_init does. */
SB_API bool sb_norm_layer_init(sb_norm_layer *layer, sb_parameters *set, const char *name,
                               int64_t C, sb_norm_kind kind);
SB_API bool sb_norm_layer_init_with(sb_norm_layer *layer, sb_parameters *set, const char *name,
                                    int64_t C, const sb_norm_options *options);
/* x (..., C) -> y (..., C) */
SB_API sb_tensor *sb_norm_layer_forward(const sb_norm_layer *layer, sb_tensor *x);
/* The norm of x + dropout(branch, p), and the sum itself in *sum. `along` is the sequence of x, for
   dropout with a partition. */
SB_API sb_tensor *sb_norm_layer_residual(const sb_norm_layer *layer, sb_tensor *x,
                                         sb_tensor *branch, double p, sb_sequence along,
                                         sb_tensor **sum);

#endif
