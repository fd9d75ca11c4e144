/* The feed-forward network of a layer: y = activation(x U' + a) W' + b, or gated, where the gate
   gets the activation: y = (activation(x G' + g) * (x U' + a)) W' + b. With tensor parallelism each
   rank holds some hidden units (Shoeybi et al. 2019). */
#ifndef SOFTBACK_NN_FEED_FORWARD_H
#define SOFTBACK_NN_FEED_FORWARD_H

#include "linear.h"
#include "transformer.h"

typedef struct {
    sb_activation activation;
    sb_communicator *ranks;         /* tensor parallelism over these ranks; or NULL */
    sb_linear_layer up, gate, down; /* gate.weight is NULL unless gated */
    double dropout;                 /* of the hidden units */
    sb_sequence along;              /* whose positions x has */
} sb_feed_forward;

/* Adds, if gated, "<name>.gate", and "<name>.up" and "<name>.down". */
SB_API bool sb_feed_forward_init(sb_feed_forward *layer, sb_parameters *set, const char *name,
                                 const sb_transformer_options *options);
/* x (..., C) -> y (..., C). Source: Vaswani et al. 2017; gated: Shazeer 2020. */
SB_API sb_tensor *sb_feed_forward_forward(const sb_feed_forward *layer, sb_tensor *x);

#endif
