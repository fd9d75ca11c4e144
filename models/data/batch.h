/* A batch: the items of one forward and backward pass, as named tensors. */
#ifndef SOFTBACK_MODELS_DATA_BATCH_H
#define SOFTBACK_MODELS_DATA_BATCH_H

#include "../../ops/context.h"
#include "../text/vocabulary.h"

typedef struct {
    const char *name;  /* "source" */
    sb_tensor *t;      /* axis 0 counts the items */
    sb_sequence along; /* the sequence along axis 1; SB_SEQUENCE_NONE: none */
} sb_batch_part;

enum { SB_BATCH_PARTS = 8 };

/* Batches of one shape have the same parts in the same order. */
typedef struct {
    int64_t items;   /* B: pairs, texts, images, ... */
    int64_t targets; /* the divisor of a mean loss, for the whole batch */
    int parts;
    sb_batch_part part[SB_BATCH_PARTS];
    const char *source_lengths; /* the part that has the lengths of the items' sources, (B) of i32;
                                   shares leave out positions past the longest. NULL: none */
    const char *target_lengths; /* the same for their targets */
    const sb_partition *partition; /* which part of a whole batch this is; NULL: the whole */
} sb_batch;

/* The part of this name; fails when there is none, and when `parts` is not in 0..SB_BATCH_PARTS. */
SB_API sb_tensor *sb_batch_get(const sb_batch *batch, const char *name);

/* An encoded pair, which does not own the arrays. */
typedef struct {
    const int32_t *source, *target;
    int64_t source_length, target_length;
    const sb_vocabulary *vocabulary; /* of the target, which has begin and end; NULL:
                                        SB_SYMBOL_BEGIN and SB_SYMBOL_END */
} sb_encoded_pair;

/*
 * A batch of n >= 1 sentence pairs, padded to common lengths, to be freed with sb_batch_free. All
 * parts are of i32:
 *
 *   source          (B, Ls)  the source's symbols, then padding
 *   source_lengths  (B)
 *   target_in       (B, Lt)  begin, the target's symbols, then padding
 *   target_out      (B, Lt)  the target's symbols, end, then -1
 *   target_lengths  (B)      symbols and end
 *
 * `targets` counts the entries of target_out that are not -1. An empty source gets one symbol of
 * padding.
 */
SB_API sb_batch *sb_batch_new(int64_t n, const sb_encoded_pair pairs[]);
SB_API void sb_batch_free(sb_batch *batch);

#endif
