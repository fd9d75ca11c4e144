/* The share of a batch that one of several ranks takes: some items, and of these maybe pieces of
   their sequences. */
#ifndef SOFTBACK_MODELS_DATA_BATCH_SHARE_H
#define SOFTBACK_MODELS_DATA_BATCH_SHARE_H

#include "models/data/batch.h"

struct batch_share {
    sb_partition place; /* in the whole batch */
    sb_batch batch;     /* its items, maybe none, padded as the whole batch is; `targets` is the
                           whole's, and `partition` is `place` */
};

/* Of B items rank r of P takes those from B r / P to B (r + 1) / P, so that shares differ by one
   item at most, and the last rank's is never empty. To be released before the batch is freed. */
bool batch_share_take(struct batch_share *share, const sb_batch *batch, int rank, int ranks);
void batch_share_release(struct batch_share *share);

/* Leaves of the share's sequences what rank r of P holds of each, zig-zag; in host memory. */
bool batch_share_cut(struct batch_share *share, int rank, int ranks);

#endif
