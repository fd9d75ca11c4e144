/* A batch of encoded sentence pairs, padded to common lengths. */
#ifndef SOFTBACK_MODELS_DATA_BATCH_H
#define SOFTBACK_MODELS_DATA_BATCH_H

#include "../../tensor/tensor.h"

typedef struct {
    int64_t pairs;             /* B */
    sb_tensor *source;         /* (B, Ls) i32: the source's symbols, then padding */
    sb_tensor *source_lengths; /* (B) i32 */
    sb_tensor *target_in;      /* (B, Lt) i32: begin, the target's symbols, then padding */
    sb_tensor *target_out;     /* (B, Lt) i32: the target's symbols, end, then -1 */
    sb_tensor *target_lengths; /* (B) i32: symbols and end */
    int64_t targets;           /* entries of target_out that count, over the whole batch */
} sb_batch;

/* An encoded pair; the arrays belong to whoever made it. */
typedef struct {
    const int32_t *source, *target;
    int64_t source_length, target_length;
} sb_encoded_pair;

/* A batch of n >= 1 pairs, to be freed with sb_batch_free. A source may be empty: it then holds one
   symbol of padding. */
SB_API sb_batch *sb_batch_new(int64_t n, const sb_encoded_pair pairs[]);
SB_API void sb_batch_free(sb_batch *batch);

#endif
