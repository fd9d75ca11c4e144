/* The input layer of a model: scaled token embeddings plus positional encodings. */
#ifndef SOFTBACK_NN_EMBEDDING_H
#define SOFTBACK_NN_EMBEDDING_H

#include "parameters.h"
#include "transformer.h"

typedef struct {
    int64_t C;
    double dropout;
    sb_positions positions;
    sb_precision precision;
    sb_sequence along;
    bool padded; /* the row padding_id of the weight gets no gradient */
    int64_t padding_id;
    sb_tensor *weight; /* (V, C), normal with standard deviation 1/sqrt C; the output is multiplied
                          by sqrt C */
    sb_tensor *position; /* (longest, C) with SB_POSITIONS_LEARNED, else NULL */
} sb_embedding_layer;

/*
 * Adds "<name>.weight", unless `shared` is another layer's table to use instead, and
 * "<name>.positions" for learned positions. Fails as described in transformer.h, when the shared
 * table is not (V, C), and when padding_id is not below V.
 */
SB_API bool sb_embedding_layer_init(sb_embedding_layer *layer, sb_parameters *set, const char *name,
                                    int64_t V, const sb_transformer_options *options,
                                    sb_tensor *shared);
/* ids (B, L) of i32, the first at position `start` -> x (B, L, C). Source: Vaswani et al. 2017,
   section 3.4. */
SB_API sb_tensor *sb_embedding_layer_forward(const sb_embedding_layer *layer, sb_tensor *ids,
                                             int64_t start);

#endif
