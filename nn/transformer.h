/*
 * The sizes and variants of the layers of a transformer. Zero is the default in a whole model and
 * in a single layer: each init fills in defaults, and a NULL pointer stands for all defaults.
 *
 * An init fails when the layer, the set or the name is NULL, when a size or a choice that the layer
 * uses is invalid, or when a name is taken. Then the layer is zero and the set is unchanged.
 */
#ifndef SOFTBACK_NN_TRANSFORMER_H
#define SOFTBACK_NN_TRANSFORMER_H

#include "../ops/ops.h"
#include "../tensor/communicator.h"
#include "norm.h"

typedef enum {
    SB_NORM_PRE,  /* x + f(norm(x)), and a final norm after all layers; trains without warm-up */
    SB_NORM_POST, /* norm(x + f(x)), as published in 2017; needs warm-up */
    SB_NORM_SANDWICH, /* x + norm(f(norm(x))), and a final norm (Ding et al. 2021; Gemma 2) */
} sb_norm_place;

typedef enum {
    SB_POSITIONS_SINUSOIDAL, /* a fixed table added to the embeddings */
    SB_POSITIONS_LEARNED,    /* a learned table added to the embeddings */
    SB_POSITIONS_ROTARY,     /* rotary embedding of queries and keys in self-attention */
    SB_POSITIONS_ALIBI,      /* ALiBi: self-attention has a fixed bias by distance */
    SB_POSITIONS_RELATIVE,   /* self-attention has a learned bias by distance */
    SB_POSITIONS_NONE,
    SB_POSITIONS_HALVES,  /* the sinusoidal table with all sines before all cosines (Marian's) */
    SB_POSITIONS_BUCKETS, /* a learned bias by distance, where far ones share logarithmic buckets
                             (Raffel et al. 2020); a decoder's see earlier positions only */
} sb_positions;

/* Which layers have a bias; norms have one where feed-forward networks do, except for RMS norm. */
typedef enum {
    SB_BIASES_ALL,
    SB_BIASES_QKV, /* only the projections of queries, keys and values */
    SB_BIASES_NONE,
} sb_biases;

typedef enum {
    SB_PRECISION_F32,
    SB_PRECISION_BF16, /* mixed precision: bf16 activations in training; parameters stay f32 */
    SB_PRECISION_TF32, /* f32; in training a GPU rounds the operands of products to TF32 (10 bits of
                          the fraction), except in attention. No effect on the CPU */
} sb_precision;

typedef struct {
    int64_t width;        /* C: of embeddings and layers; default 128 */
    int64_t heads;        /* H: attention heads; default 4 */
    int64_t head_size;    /* D: of queries, keys and values; default C / H, which must be whole */
    int64_t key_heads;    /* heads of keys and values, a divisor of H; default H */
    int64_t key_width;    /* attention: the width of the memory that keys are projected from, in a
                             decoder of cross-attention; default C */
    int64_t value_width;  /* the same of values; default key_width */
    int64_t feed_forward; /* hidden width of the feed-forward network; default 4 C */
    int encoder_layers;   /* default 3 */
    int decoder_layers;   /* default 3 */
    double dropout;       /* of embeddings, branches and attention weights; in [0, 1) */
    double attention_dropout;    /* of attention weights; default dropout; SB_ZERO: none */
    double feed_forward_dropout; /* of the hidden units of feed-forward, in [0, 1) */
    sb_norm_place norm_place;
    sb_norm_kind norm_kind;
    double norm_epsilon; /* of all norms; default that of the operation */
    sb_biases biases;
    bool no_output_bias;      /* of a model's logits; they have none either unless biases is ALL */
    sb_activation activation; /* default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU */
    bool gated;               /* gated feed-forward: (activation(x G') * (x U')) W' */
    sb_score score;           /* of all attention layers */
    double score_scale;       /* the factor of their scores; default 1 / sqrt D, or 1 with
                                 SB_SCORE_COSINE */
    bool qk_norm;             /* a norm of queries and keys in each head, before rotary positions
                                 (QK norm; Qwen3) */
    double temperature;       /* extra divisor of attention scores; default 1 */
    sb_attention_algorithm attention; /* except where attention weights are requested */
    double embedding_scale;           /* the factor of symbols' embeddings; default sqrt C */
    double position_scale;            /* and of learned positions and segments; default sqrt C */
    double output_scale;              /* the factor of what a model's logits are computed of;
                                         default 1 (T5: 1 / sqrt C with tied embeddings) */
    bool embedding_norm;              /* a norm after embeddings and positions, before dropout */
    sb_positions positions;
    int64_t segments; /* embeddings: number of segments (BERT's token types); default 0: none */
    int64_t position_offset; /* learned: rows of the table before that of the first position */
    double rotary_base;      /* default 10000 */
    double rotary_scaling;   /* divides the angles of rotary positions; default 1 */
    int64_t rotary_original; /* scaling by frequency, as sb_rotary_options say; default 0: none */
    double rotary_low_factor, rotary_high_factor; /* of it; default 1 and 4 */
    int64_t rotary_interval;   /* every so many layers, one has no rotary positions (NoPE; SmolLM3:
                                  4); default 0: all have */
    int64_t position_buckets;  /* of SB_POSITIONS_BUCKETS, an even number; default 32 */
    int64_t position_distance; /* from which on all share the last bucket; default 128 */
    sb_precision precision;
    bool recompute;    /* activation checkpointing of each layer, except where attention weights are
                          requested */
    sb_sequence along; /* the sequence of x in a partition; decoders always use the target */
    int64_t positions_longest; /* number of positions with SB_POSITIONS_LEARNED; default 512 */
    bool padded; /* embeddings: the symbol padding_id stands for padding; its row of the table
                    starts at 0 and gets no gradient, also from logits that are
                    tied to it */
    int64_t padding_id;
    sb_communicator *ranks; /* tensor parallelism: each rank holds an equal part of the heads and
                               hidden units; must outlive the model. NULL: none */
} sb_transformer_options;

/* Whether a model's logits have a bias. */
static inline bool sb_transformer_output_bias(const sb_transformer_options *options)
{
    return options->biases == SB_BIASES_ALL && !options->no_output_bias;
}

/* Fills in all defaults and checks the result; fails when sizes do not match. */
SB_API bool sb_transformer_complete(const sb_transformer_options *options,
                                    sb_transformer_options *complete);

#endif
