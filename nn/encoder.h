/* The encoder: layers of self-attention and feed-forward over a source sequence. */
#ifndef SOFTBACK_NN_ENCODER_H
#define SOFTBACK_NN_ENCODER_H

#include "attention.h"
#include "embedding.h"
#include "feed_forward.h"
#include "norm.h"
#include "position_bias.h"

typedef struct {
    sb_norm_place place;
    double dropout;
    sb_sequence along;
    sb_norm_layer self_norm, feed_norm;
    sb_multi_head_attention self_attention;
    sb_feed_forward feed_forward;
} sb_encoder_layer;

/* Adds "<name>.self_attention", ".self_norm", ".feed_forward" and ".feed_norm". */
SB_API bool sb_encoder_layer_init(sb_encoder_layer *layer, sb_parameters *set, const char *name,
                                  const sb_transformer_options *options);
/*
 * x (B, L, C) -> y (B, L, C). Pre-norm:  a = x + self(norm x)    y = a + feed(norm a)
 *                             Post-norm: a = norm(x + self(x))   y = norm(a + feed(a))
 * with dropout on each branch.
 */
SB_API sb_tensor *sb_encoder_layer_forward(const sb_encoder_layer *layer, sb_tensor *x,
                                           const sb_attending *attending);

typedef struct sb_encoder sb_encoder;

/* An encoder for V symbols with its embedding ("<name>.embedding"), its layers
   ("<name>.layers.0", ...) and, pre-norm, a last norm ("<name>.norm"). The set owns the weights. */
SB_API sb_encoder *sb_encoder_new(sb_parameters *set, const char *name, int64_t V,
                                  const sb_transformer_options *options);
SB_API void sb_encoder_free(sb_encoder *encoder);
/* ids (B, L) of i32, lengths (B) of i32 -> the memory (B, L, C). `weights`, unless NULL, receives
   one tensor (B, H, L, L) for each layer. */
SB_API sb_tensor *sb_encoder_forward(const sb_encoder *encoder, sb_tensor *ids, sb_tensor *lengths,
                                     sb_tensor *weights[]);
/* The table of embeddings (V, C), to be shared. */
SB_API sb_tensor *sb_encoder_table(const sb_encoder *encoder);
SB_API int sb_encoder_layers(const sb_encoder *encoder);

#endif
