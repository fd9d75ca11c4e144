/* The order of an epoch: which pairs make which batch. */
#ifndef SOFTBACK_MODELS_DATA_EPOCH_H
#define SOFTBACK_MODELS_DATA_EPOCH_H

#include "models/data/batch.h"

struct epoch_limits {
    int64_t pairs, symbols; /* the most of a batch; symbols with padding, of the longer side */
};

/* Batch b holds the pairs order[begin[b]] .. order[begin[b + 1] - 1]. */
struct epoch {
    int64_t batches;
    int64_t *order; /* of all pairs */
    int64_t *begin; /* batches + 1 */
    int64_t *batch; /* the batches in the order in which they come */
};

enum { MOST_EPOCHS = 1 << 19 }; /* each draws from its own 2^28 random numbers */

/* Plans an epoch of n pairs from these arguments alone; to be freed with epoch_free. */
bool epoch_plan(struct epoch *epoch, int64_t n, const sb_encoded_pair pairs[],
                struct epoch_limits limits, uint64_t seed, int64_t number);
void epoch_free(struct epoch *epoch);

#endif
