/*
 * One layer of a transformer: self-attention, cross-attention to a memory if it has one, and
 * feed-forward, each with a residual connection. Without cross-attention it is an encoder's layer;
 * with a causal mask, a language model's. Source: Vaswani et al. 2017, section 3.1; where the norms
 * stand: Xiong et al. 2020.
 */
#ifndef SOFTBACK_NN_TRANSFORMER_LAYER_H
#define SOFTBACK_NN_TRANSFORMER_LAYER_H

#include "attention.h"
#include "feed_forward.h"
#include "norm.h"

typedef struct {
    sb_norm_place place;
    double dropout;
    sb_sequence along;
    bool crosses; /* whether it has cross-attention */
    sb_norm_layer self_norm, cross_norm, feed_norm;
    sb_norm_layer self_branch_norm, cross_branch_norm, feed_branch_norm; /* SB_NORM_SANDWICH */
    sb_multi_head_attention self_attention, cross_attention;
    sb_feed_forward feed_forward;
} sb_transformer_layer;

typedef sb_transformer_layer sb_encoder_layer, sb_decoder_layer;

/* Adds "<name>.self_attention", ".feed_forward", ".self_norm", ".feed_norm", and for
   cross-attention ".cross_attention" and ".cross_norm"; with SB_NORM_SANDWICH also
   ".self_branch_norm", ".feed_branch_norm" and ".cross_branch_norm". */
SB_API bool sb_transformer_layer_init(sb_transformer_layer *layer, sb_parameters *set,
                                      const char *name, const sb_transformer_options *options,
                                      bool crosses);
/*
 * x (B, L, C), memory (B, Lm, C) or NULL without cross-attention -> y (B, L, C), with dropout on
 * each branch.
 *
 * Pre-norm   a = x + self(norm x)    b = a + cross(norm a, memory)    y = b + feed(norm b)
 * Post-norm  a = norm(x + self(x))   b = norm(a + cross(a, memory))   y = norm(b + feed(b))
 * Sandwich   as pre-norm, with norm(self ...), norm(cross ...) and norm(feed ...)
 */
SB_API sb_tensor *sb_transformer_layer_forward(const sb_transformer_layer *layer, sb_tensor *x,
                                               sb_tensor *memory, const sb_attending *self,
                                               const sb_attending *cross);

/* A layer of an encoder: one of a transformer without cross-attention. */
SB_API bool sb_encoder_layer_init(sb_encoder_layer *layer, sb_parameters *set, const char *name,
                                  const sb_transformer_options *options);
SB_API sb_tensor *sb_encoder_layer_forward(const sb_encoder_layer *layer, sb_tensor *x,
                                           const sb_attending *attending);
/* A layer of a decoder: one of a transformer, whose positions belong to the target sequence. */
SB_API bool sb_decoder_layer_init(sb_decoder_layer *layer, sb_parameters *set, const char *name,
                                  const sb_transformer_options *options, bool crosses);
SB_API sb_tensor *sb_decoder_layer_forward(const sb_decoder_layer *layer, sb_tensor *x,
                                           sb_tensor *memory, const sb_attending *self,
                                           const sb_attending *cross);

#endif
