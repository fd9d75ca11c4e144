/*
 * The sizes and variants that all layers of a transformer share. Zero is the default, for a whole
 * model as for one layer: each init completes its options by itself, and NULL stands for zeros.
 *
 * An init fails when the layer, the set or the name is NULL, when a size or a choice that the layer
 * uses cannot be, or when a name is taken. The layer is then zero, and the set as it was before.
 */
#ifndef SOFTBACK_NN_TRANSFORMER_H
#define SOFTBACK_NN_TRANSFORMER_H

#include "../ops/ops.h"
#include "../tensor/communicator.h"
#include "norm.h"

typedef enum {
    SB_NORM_PRE,  /* x + f(norm(x)), with a last norm after all layers: trains without care */
    SB_NORM_POST, /* norm(x + f(x)): as published in 2017; wants a warm-up */
} sb_norm_place;

typedef enum {
    SB_POSITIONS_SINUSOIDAL, /* a fixed table added to the embeddings */
    SB_POSITIONS_LEARNED,    /* a learned table added to the embeddings */
    SB_POSITIONS_ROTARY,     /* queries and keys of self-attention are turned */
    SB_POSITIONS_ALIBI,      /* self-attention is biased by distance */
    SB_POSITIONS_RELATIVE,   /* self-attention has a learned bias by distance */
    SB_POSITIONS_NONE,
} sb_positions;

typedef enum {
    SB_PRECISION_F32,
    SB_PRECISION_BF16, /* training hands bf16 from layer to layer; parameters stay f32 */
} sb_precision;

typedef struct {
    int64_t width;        /* C: of embeddings and layers; default 128 */
    int64_t heads;        /* H: attention heads, a divisor of the width; default 4 */
    int64_t key_heads;    /* heads of keys and values, a divisor of H; default H */
    int64_t feed_forward; /* hidden width of the feed-forward part; default 4 C */
    int encoder_layers;   /* default 3 */
    int decoder_layers;   /* default 3 */
    double dropout;       /* of embeddings, branches and attention weights; in [0, 1) */
    sb_norm_place norm_place;
    sb_norm_kind norm_kind;
    sb_activation activation;         /* default (SB_IDENTITY): SB_RELU */
    bool gated;                       /* the feed-forward part is (activation(x U') * (x G')) W' */
    sb_score score;                   /* of all attentions */
    double temperature;               /* what their scores are divided by besides; default 1 */
    sb_attention_algorithm attention; /* of all attentions but where weights are asked for */
    sb_positions positions;
    sb_precision precision;
    bool recompute; /* of a layer only its result is kept, and the rest computed again in backward;
                       not where weights are asked for */
    sb_sequence along; /* of a batch that is cut over ranks: the sequence that positions are of;
                          a decoder takes the target's by itself */
    int64_t longest;   /* of SB_POSITIONS_LEARNED: how many positions there are; default 512 */
    sb_communicator *ranks; /* over which heads and hidden units are cut, each rank holding an equal
                               part of both; it must outlive the model. NULL: all are here */
} sb_transformer_options;

/* The same with every default filled in, checked: false, with a message, when sizes do not fit. */
SB_API bool sb_transformer_complete(const sb_transformer_options *options,
                                    sb_transformer_options *complete);

#endif
