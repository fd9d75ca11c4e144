/*
 * A cursor: the position in the items of a source, which come in batches.
 *
 * Items come in epochs. Each is shuffled and cut into batches (epoch.h), so that the position
 * (epoch, batch) alone determines the next batch. The items of an endless source are numbered 0, 1,
 * 2, ..., and make one epoch without an end.
 */
#ifndef SOFTBACK_MODELS_DATA_CURSOR_H
#define SOFTBACK_MODELS_DATA_CURSOR_H

#include "models/data/epoch.h"
#include "models/data/source.h"

/* What a source says of its items; `source` is its object. */
struct cursor_items {
    const char *name; /* in messages: "data" for "data_seek: ..." */
    /* The lengths of an epoch's items, and how many there are; they belong to the source, and live
       until the next call. NULL: a failure. An endless source has no such function. */
    const sb_encoded_pair *(*list)(void *source, int64_t epoch, int64_t *count);
    /* A batch of n items, by their numbers. */
    sb_batch *(*batch)(const void *source, int64_t n, const int64_t item[]);
    uint64_t (*hash)(const void *source); /* of all items, and of how they are cut into batches */
};

struct cursor {
    const struct cursor_items *items;
    void *source;
    struct epoch_limits limits;
    uint64_t seed;
    sb_data_position next;
    sb_batch *batch; /* the last one */
    struct epoch epoch;
    int64_t planned; /* one more than the number of the epoch; 0: none is planned */
};

void cursor_close(struct cursor *cursor);

/* The functions of a source of batches, whose object is the cursor. */
const sb_batch *cursor_next(void *cursor);
sb_data_position cursor_tell(const void *cursor);
bool cursor_seek(void *cursor, sb_data_position position);
int64_t cursor_batches(const void *cursor);
sb_source cursor_as_source(struct cursor *cursor);

#endif
