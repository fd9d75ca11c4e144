/*
 * A cursor: the position in the items of a source, which come in batches.
 *
 * Items come in epochs. Each is shuffled and cut into batches, so that the position
 * (epoch, batch) alone determines the next batch. The items of an endless source are numbered 0, 1,
 * 2, ..., and make one epoch without an end.
 */
#ifndef SOFTBACK_MODELS_DATA_CURSOR_H
#define SOFTBACK_MODELS_DATA_CURSOR_H

#include "models/data/batch.h"
#include "models/data/source.h"

/* ---- the order of an epoch: which pairs make which batch ---- */

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

/* ---- cursors ---- */

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

/* A batch of n items from a number on. */
sb_batch *cursor_batch(const struct cursor *cursor, int64_t first, int64_t n);

/* The functions of a source of batches, whose object is the cursor. */
const sb_batch *cursor_next(void *cursor);
sb_data_position cursor_tell(const void *cursor);
bool cursor_seek(void *cursor, sb_data_position position);
int64_t cursor_batches(const void *cursor);
sb_source cursor_as_source(struct cursor *cursor);

/* The object whose items a source has, where they are these; else NULL, without a message. */
void *cursor_object(const sb_source *source, const struct cursor_items *items);

#endif
