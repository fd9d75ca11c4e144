/* A source: where batches come from, one after the other, and a place among them that can be saved.
 */
#ifndef SOFTBACK_MODELS_DATA_SOURCE_H
#define SOFTBACK_MODELS_DATA_SOURCE_H

#include "batch.h"

/* Where the next batch stands. Neither number is negative. */
typedef struct {
    int64_t epoch, batch;
} sb_data_position;

/* Batches are a function of their position alone, so that a resumed run goes on with those that an
   uninterrupted one would have met. */
typedef struct {
    void *object; /* what the functions are given */
    /* The next batch; it belongs to the source and lives until the next call. NULL: a failure. */
    const sb_batch *(*next)(void *object);
    sb_data_position (*tell)(const void *object);
    /* Goes to a position; the last batch lives on. Fails where there is no such batch. */
    bool (*seek)(void *object, sb_data_position position);
    /* A number that changes with what batches are made of. */
    uint64_t (*hash)(const void *object);
    /* How many there are in the epoch of the next one; 0, or no such function: epochs never end. */
    int64_t (*batches)(const void *object);
} sb_source;

#endif
