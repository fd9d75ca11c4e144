/* Positional encoding as a bias of self-attention scores: ALiBi, or learned relative positions,
   each distance with a bias of its own or in logarithmic buckets. */
#ifndef SOFTBACK_NN_POSITION_BIAS_H
#define SOFTBACK_NN_POSITION_BIAS_H

#include "parameters.h"
#include "transformer.h"

typedef struct {
    sb_positions positions;
    int64_t heads;          /* H */
    sb_communicator *ranks; /* tensor parallelism over these ranks; or NULL */
    sb_dtype dtype;
    sb_sequence along;
    int64_t buckets, distance; /* from which on all share the last bucket */
    sb_tensor *table; /* of this rank's heads: (H, 2 R + 1) with SB_POSITIONS_RELATIVE, (H, buckets)
                         with SB_POSITIONS_BUCKETS; else NULL */
} sb_position_bias;

/* Adds "<name>.distance" for learned biases, one table for all layers. */
SB_API bool sb_position_bias_init(sb_position_bias *bias, sb_parameters *set, const char *name,
                                  const sb_transformer_options *options);
/* The bias (1, H, Lq, Lk) of this rank's heads; NULL for other positions, and on failure, when *ok
   becomes false. With a partition, its rows are this rank's positions and its columns are all
   positions. */
SB_API sb_tensor *sb_position_bias_forward(const sb_position_bias *bias, int64_t Lq, int64_t Lk,
                                           bool *ok);

#endif
