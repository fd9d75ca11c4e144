/* The share of a batch that a rank takes: some items (data parallelism), and of these possibly
   pieces of their sequences (sequence parallelism). */
#ifndef SOFTBACK_MODELS_DATA_BATCH_SHARE_H
#define SOFTBACK_MODELS_DATA_BATCH_SHARE_H

#include "models/data/batch.h"

struct batch_share {
    sb_partition place; /* in the whole batch */
    sb_batch batch;     /* its items, possibly none, padded as the whole batch is; `targets` is the
                           whole's, and `partition` is `place` */
};

/* Of B items rank r of P takes those from B r / P to B (r + 1) / P, so that shares differ by one
   item at most, and the last rank's is never empty. To be released before the batch is freed. */
bool batch_share_take(struct batch_share *share, const sb_batch *batch, int rank, int ranks);
void batch_share_release(struct batch_share *share);

/* Reduces each sequence of the share to the zig-zag pieces of rank r of P; in host memory. */
bool batch_share_cut(struct batch_share *share, int rank, int ranks);

#endif
