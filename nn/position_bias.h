/* Positions that enter self-attention as a bias on its scores: ALiBi, or learned by distance. */
#ifndef SOFTBACK_NN_POSITION_BIAS_H
#define SOFTBACK_NN_POSITION_BIAS_H

#include "parameters.h"
#include "transformer.h"

typedef struct {
    sb_positions positions;
    int64_t heads;          /* H */
    sb_communicator *ranks; /* of which each has as many of them; or NULL */
    sb_dtype dtype;
    sb_sequence along;
    sb_tensor *table; /* (H, 2 R + 1), of the heads here, with SB_POSITIONS_RELATIVE, else NULL */
} sb_position_bias;

/* Adds "<name>.distance" for SB_POSITIONS_RELATIVE, one table for all layers. */
SB_API bool sb_position_bias_init(sb_position_bias *bias, sb_parameters *set, const char *name,
                                  const sb_transformer_options *options);
/* The bias (1, H, Lq, Lk) of the heads here, or NULL when positions do not enter this way; *ok
   tells a failure. Where the open tape has a part of the sequence, it is that of the positions
   here to all of them. */
SB_API sb_tensor *sb_position_bias_forward(const sb_position_bias *bias, int64_t Lq, int64_t Lk,
                                           bool *ok);

#endif
