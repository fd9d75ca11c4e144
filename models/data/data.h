/*
 * Training data: encoded pairs that come in batches, in an order fixed by a seed.
 *
 * A built-in task generates its pairs on demand and never ends. Pairs from a file come in
 * epochs: each is shuffled by seed and epoch, sorted by length within stretches of some hundred
 * batches, cut into batches bounded by their number of symbols, and these are shuffled again. So
 * the position (epoch, batch) determines the next batch, and a resumed run continues with the batch
 * that an uninterrupted one would have reached.
 */
#ifndef SOFTBACK_MODELS_DATA_DATA_H
#define SOFTBACK_MODELS_DATA_DATA_H

#include "../text/pairs.h"
#include "../text/task.h"
#include "../text/vocabulary.h"
#include "source.h"

typedef struct sb_data sb_data;

typedef struct {
    uint64_t seed;
    int64_t batch_pairs;   /* the most pairs of a batch; default 64 */
    int64_t batch_symbols; /* the most symbols of a batch with padding, source or target, whichever
                              is more; default 4096 (a single longer pair makes a batch alone) */
    int64_t longest;       /* pairs with a longer source or target are left out; default 512 */
} sb_data_options;

/* The endless pairs of a built-in task ("copy", "reverse", "sort", "addition", "dates"), training
   part, with its vocabularies; 64 pairs a batch. */
SB_API sb_data *sb_data_task(const char *task, uint64_t seed);
SB_API sb_data *sb_data_task_with(sb_task task, const sb_task_options *task_options,
                                  const sb_data_options *options);

/* Pairs of texts, encoded by two vocabularies (which may be one); both are retained, the pairs may
   be freed afterwards. Fails when no pair is short enough. */
SB_API sb_data *sb_data_new(const sb_pairs *pairs, sb_vocabulary *source, sb_vocabulary *target,
                            const sb_data_options *options);
SB_API void sb_data_free(sb_data *data);

SB_API sb_vocabulary *sb_data_source(const sb_data *data);
SB_API sb_vocabulary *sb_data_target(const sb_data *data);
SB_API int64_t sb_data_pairs(const sb_data *data);    /* in an epoch; 0: endless */
SB_API int64_t sb_data_left_out(const sb_data *data); /* pairs that were too long */
/* The most symbols of a source and of a target; 0: endless. */
SB_API int64_t sb_data_longest_source(const sb_data *data);
SB_API int64_t sb_data_longest_target(const sb_data *data);
SB_API int64_t sb_data_batches(const sb_data *data); /* in this epoch, once begun; 0: endless */

/* The next batch; it belongs to the data and lives until the next call. */
SB_API const sb_batch *sb_data_next(sb_data *data);

SB_API sb_data_position sb_data_tell(const sb_data *data);
SB_API bool sb_data_seek(sb_data *data, sb_data_position position);

/* A hash of the pairs, their symbols, and how they are cut into batches. */
SB_API uint64_t sb_data_hash(const sb_data *data);

/* The data as a source of batches, which the data must outlive. */
SB_API sb_source sb_data_as_source(sb_data *data);

#endif
