/* The input layer of a model: scaled token embeddings plus positional encodings, and maybe a norm.
 */
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
    double scale, position_scale; /* of rows of the two tables below */
    int64_t offset;               /* the row of the first learned position */
    sb_tensor *weight;   /* (V, C), normal with standard deviation 1/sqrt C; its rows are multiplied
                            by sqrt C, or as the options say */
    sb_tensor *position; /* (offset + longest, C) with SB_POSITIONS_LEARNED, else NULL; its rows are
                            multiplied by sqrt C too, or as the options say */
    sb_tensor *segment;  /* (segments, C) or NULL; its rows are multiplied as those of positions */
    bool has_norm;
    sb_norm_layer norm; /* of their sum */
} sb_embedding_layer;

/*
 * Adds "<name>.weight", unless `shared` is another layer's table to use instead,
 * "<name>.positions" for learned positions, "<name>.segments" and "<name>.norm" if the options have
 * them. Fails as described in transformer.h, when the shared table is not (V, C), and when
 * padding_id is not below V.
 */
SB_API bool sb_embedding_layer_init(sb_embedding_layer *layer, sb_parameters *set, const char *name,
                                    int64_t V, const sb_transformer_options *options,
                                    sb_tensor *shared);
/* ids (B, L) of i32, the first at position `start` -> x (B, L, C). Source: Vaswani et al. 2017,
   section 3.4. */
SB_API sb_tensor *sb_embedding_layer_forward(const sb_embedding_layer *layer, sb_tensor *ids,
                                             int64_t start);
/* The embeddings x (B, L, C) of ids (B, L) of several segments, such as a question and an answer:
   segments (B, L) of i32, or NULL: all are of segment 0. Source: Devlin et al. 2019. */
SB_API sb_tensor *sb_embedding_layer_forward_segments(const sb_embedding_layer *layer,
                                                      sb_tensor *ids, sb_tensor *segments,
                                                      int64_t start);

#endif
