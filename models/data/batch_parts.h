/* Internal functions of batches, for any parts. */
#ifndef SOFTBACK_MODELS_DATA_BATCH_PARTS_H
#define SOFTBACK_MODELS_DATA_BATCH_PARTS_H

#include "models/data/batch.h"

/* Whether every part has its tensor. */
bool batch_is_whole(const sb_batch *batch);

/* Whether a batch from any source can be trained on: each part has a row for each item and, where
   sequences are cut, positions. */
bool batch_check(const sb_batch *batch, bool cut);

/* Releases all parts. */
void batch_release(sb_batch *batch);

#endif
