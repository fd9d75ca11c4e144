/* Internal functions of batches, for any parts. */
#ifndef SOFTBACK_MODELS_DATA_BATCH_PARTS_H
#define SOFTBACK_MODELS_DATA_BATCH_PARTS_H

#include "models/data/batch.h"

/* Whether every part has its tensor. */
bool batch_is_whole(const sb_batch *batch);

/* Whether a batch from any source can be trained on: each part has a row for each item and, where
   sequences are cut, positions. */
bool batch_check(const sb_batch *batch, bool cut);

/* The padded length of sequences: a multiple of 8 on a device with graphs, which records one graph
   for each shape. */
int64_t batch_padded(int64_t length);

/* Moves all parts to a device; a part that fails becomes NULL. */
void batch_move(sb_batch *batch, const sb_device *device);

/* Copies all parts to a device, for batch_release; false, with a message, if one fails. */
bool batch_copy(sb_batch *to, const sb_batch *from, const sb_device *device);

/* Releases all parts. */
void batch_release(sb_batch *batch);

#endif
