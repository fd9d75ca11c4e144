/* Internal functions of batches, for any parts; and the share of a batch that a rank takes: some
   items (data parallelism), and of these possibly pieces of their sequences (sequence
   parallelism). */
#ifndef SOFTBACK_MODELS_DATA_BATCH_PARTS_H
#define SOFTBACK_MODELS_DATA_BATCH_PARTS_H

#include "models/data/batch.h"
#include "nn/parameters.h"

/* The most symbols of a source, or of a target. */
int64_t batch_longest(int64_t n, const sb_encoded_pair pairs[], bool source);

/* Whether every part has its tensor. */
bool batch_is_whole(const sb_batch *batch);

/* Whether a batch from any source can be trained on: each part has a row for each item and, where
   sequences are cut, positions. */
bool batch_check(const sb_batch *batch, bool cut);

/* A part of a new batch of n items: (n) or, along a sequence, (n, L). */
struct batch_form {
    const char *name;
    sb_dtype dtype;
    sb_sequence along;
};

/* A batch with parts that are to be filled, in host memory; a row without a name ends them. L is
   the length, padded: on a device with graphs to a multiple of 8. */
sb_batch *batch_begin(const char *owner, int64_t n, const struct batch_form form[],
                      int64_t source_length, int64_t target_length);
/* The row of an item, and its ids from index `first` on: n of them, then padding. */
void *batch_row(const sb_batch *batch, int part, int64_t item);
void batch_write(const sb_batch *batch, int part, int64_t item, int64_t first, const int32_t *ids,
                 int64_t n, int32_t padding);
/* Moves a filled batch to the device in use; NULL, with nothing to free, after a failure. */
sb_batch *batch_end(sb_batch *batch);

/* Copies all parts to a device, for batch_release; false, with a message, if one fails. */
bool batch_copy(sb_batch *to, const sb_batch *from, const sb_device *device);

/* Releases all parts. */
void batch_release(sb_batch *batch);

/* ---- batch_share.c ---- */

struct batch_share {
    sb_partition place; /* in the whole batch */
    sb_batch batch;     /* its items, possibly none, padded as the whole batch is; `targets` is the
                           whole's, and `partition` is `place` */
};

/* Rank r of P takes the items from B r / P to B (r + 1) / P of B, so that shares differ by one
   item at most, and the last rank's is never empty. To be released before the batch is freed. */
bool batch_share_take(struct batch_share *share, const sb_batch *batch, int rank, int ranks);
void batch_share_release(struct batch_share *share);

/*
 * The number of shares that threads compute of a batch: one for each 512 rows (symbols, with
 * padding), at most 8, while the gradients of the weights fit the cache. It depends on the batch
 * and the weights alone, and so do the results.
 *
 * Measured (Zen 4, two threads, quiet; speed of 2 and 4 shares over none): 1,024 rows of width 64
 * 1.04 and 1.06, of width 128 1.10 and 1.05, 1,536 of width 128 with 10,000 symbols 1.31 and 1.25;
 * one thread 0.99 and 1.01, 1.00 and 0.96, 1.00 and 0.97; 1,024 rows of width 512, with 192 MB of
 * gradients, 0.95 and 0.93.
 */
int batch_shares(const sb_batch *batch, const sb_parameters *weights);

/* Leaves out the positions at which all items of the share have padding, where the batch says their
   lengths; in host memory. */
bool batch_share_trim(struct batch_share *share);

/* Reduces each sequence of the share to the zig-zag pieces of rank r of P; in host memory. */
bool batch_share_cut(struct batch_share *share, int rank, int ranks);

#endif
