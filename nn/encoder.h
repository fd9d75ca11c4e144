/* The encoder: layers of self-attention and feed-forward over a source sequence. */
#ifndef SOFTBACK_NN_ENCODER_H
#define SOFTBACK_NN_ENCODER_H

#include "transformer_layer.h"

typedef struct sb_encoder sb_encoder;

/* An encoder for a vocabulary of V symbols: an embedding ("<name>.embedding"), layers
   ("<name>.layers.0", ...) and, with pre-norm, a final norm ("<name>.norm"). The set owns the
   weights. */
SB_API sb_encoder *sb_encoder_new(sb_parameters *set, const char *name, int64_t V,
                                  const sb_transformer_options *options);
SB_API void sb_encoder_free(sb_encoder *encoder);
/* ids (B, L) of i32, lengths (B) of i32 -> the memory (B, L, C). `weights`, unless NULL, receives
   one tensor (B, H, L, L) for each layer. */
SB_API sb_tensor *sb_encoder_forward(const sb_encoder *encoder, sb_tensor *ids, sb_tensor *lengths,
                                     sb_tensor *weights[]);
/* The memory of ids of several segments, (B, L) of i32; NULL: all are of segment 0. */
SB_API sb_tensor *sb_encoder_forward_segments(const sb_encoder *encoder, sb_tensor *ids,
                                              sb_tensor *segments, sb_tensor *lengths,
                                              sb_tensor *weights[]);
/* The embedding table (V, C), for weight sharing. */
SB_API sb_tensor *sb_encoder_table(const sb_encoder *encoder);
SB_API int sb_encoder_layers(const sb_encoder *encoder);

#endif
