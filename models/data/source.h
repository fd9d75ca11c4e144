/* A source of batches, one after the other; its position can be saved and restored. */
#ifndef SOFTBACK_MODELS_DATA_SOURCE_H
#define SOFTBACK_MODELS_DATA_SOURCE_H

#include "batch.h"

/* The position of the next batch. Neither number is negative. */
typedef struct {
    int64_t epoch, batch;
} sb_data_position;

/* A batch depends only on its position, so that a resumed run continues with the batches that an
   uninterrupted one would have reached. */
typedef struct {
    void *object; /* the argument of the functions */
    /* The next batch; it belongs to the source and lives until the next call. NULL: a failure. */
    const sb_batch *(*next)(void *object);
    sb_data_position (*tell)(const void *object);
    /* Goes to a position; the last batch stays valid. Fails when there is no such batch. */
    bool (*seek)(void *object, sb_data_position position);
    /* A hash of the data that batches are made of. */
    uint64_t (*hash)(const void *object);
    /* The batches of the current epoch; 0, or a NULL function: epochs never end. */
    int64_t (*batches)(const void *object);
} sb_source;

#endif
