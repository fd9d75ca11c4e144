/* The inside of batches, whatever their parts are. */
#ifndef SOFTBACK_MODELS_DATA_BATCH_PARTS_H
#define SOFTBACK_MODELS_DATA_BATCH_PARTS_H

#include "models/data/batch.h"

/* Whether every part has its tensor. */
bool batch_is_whole(const sb_batch *batch);

/* Whether a batch that may be anybody's can be trained on: parts of as many items as there are, and
   where sequences are cut, with positions. */
bool batch_check(const sb_batch *batch, bool cut);

/* Releases all parts. */
void batch_release(sb_batch *batch);

#endif
