/*
 * The encoder: layers of self-attention and feed-forward over a source sequence. The decoder:
 * layers of causal self-attention, cross-attention to the encoder's memory, and feed-forward, over
 * a target sequence; and its state for incremental decoding. Without a memory it is a decoder-only
 * language model.
 */
#ifndef SOFTBACK_NN_STACK_H
#define SOFTBACK_NN_STACK_H

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

typedef struct sb_decoder sb_decoder;

/* A decoder for a vocabulary of V symbols. `shared`, unless NULL, is an embedding table (V, C) to
   use instead of a new one. Parameters are named as in the encoder. */
SB_API sb_decoder *sb_decoder_new(sb_parameters *set, const char *name, int64_t V,
                                  const sb_transformer_options *options, bool crosses,
                                  sb_tensor *shared);
SB_API void sb_decoder_free(sb_decoder *decoder);
SB_API sb_tensor *sb_decoder_table(const sb_decoder *decoder);
SB_API int sb_decoder_layers(const sb_decoder *decoder);

/* Receives the attention weights of each layer; arrays may be NULL. */
typedef struct {
    sb_tensor **self;  /* (B, H, Lt, Lt) for each layer */
    sb_tensor **cross; /* (B, H, Lt, Ls) for each layer */
} sb_decoder_weights;

/* ids (B, Lt) of i32; memory (B, Ls, C) with lengths (B) of i32, or both NULL -> (B, Lt, C). */
SB_API sb_tensor *sb_decoder_forward(const sb_decoder *decoder, sb_tensor *ids, sb_tensor *memory,
                                     sb_tensor *lengths, const sb_decoder_weights *weights);

/* The state of incremental decoding for B sequences: the key/value caches of self-attention and of
   cross-attention in each layer. */
typedef struct sb_decoder_state sb_decoder_state;

SB_API sb_decoder_state *sb_decoder_state_new(const sb_decoder *decoder);
SB_API void sb_decoder_state_free(sb_decoder_state *state);
/* The number of positions in the state. */
SB_API int64_t sb_decoder_state_length(const sb_decoder_state *state);
/* For beam search: sequence i becomes a copy of the former sequence rows[i], for i in 0..n-1; n may
   differ from B. If this runs out of memory, the state can only be freed. */
SB_API bool sb_decoder_state_reorder(sb_decoder_state *state, int64_t n, const int32_t *rows);

/* Like sb_decoder_forward for the next positions, on a tape that does not record: ids (B, L) of the
   new positions -> (B, L, C). The memory is read in the first step only and may be NULL later;
   lengths (B) belong to the present sequences. A step that fails leaves the state unchanged. */
SB_API sb_tensor *sb_decoder_step(const sb_decoder *decoder, sb_decoder_state *state,
                                  sb_tensor *ids, sb_tensor *memory, sb_tensor *lengths,
                                  const sb_decoder_weights *weights);

#endif
