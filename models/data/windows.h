/*
 * Windows over documents: what a language model learns from, as batches.
 *
 * A document is the stream begin, its symbols, end; a piece of one lacks what was cut off. An epoch
 * cuts every stream into windows of up to `length` symbols, so that each symbol behind the first of
 * a stream is predicted once, from those before it in its window. Where the cuts lie differs from
 * epoch to epoch, unless windows are fixed. Windows are shuffled and batched as pairs are
 * (data.h): the position (epoch, batch) alone says what comes next.
 *
 * Parts of a batch, of i32: target_in (B, L), what is read; target_out (B, L), what is to be
 * predicted at each place, -1 behind the end of a window; target_lengths (B).
 */
#ifndef SOFTBACK_MODELS_DATA_WINDOWS_H
#define SOFTBACK_MODELS_DATA_WINDOWS_H

#include "../text/documents.h"
#include "../text/vocabulary.h"
#include "source.h"

typedef struct sb_windows sb_windows;

typedef struct {
    uint64_t seed;
    int64_t length;        /* the most symbols of a window; default 128 */
    int64_t batch_windows; /* the most windows of a batch; default 64 */
    int64_t batch_symbols; /* the most symbols of a batch with padding; default 4096 (a single
                              longer window makes a batch alone) */
    bool fixed;            /* the same windows in each epoch, from the start of each document */
} sb_windows_options;

/* Encodes documents, which may be freed afterwards, by a vocabulary, which is retained. Options may
   be NULL. Fails where no document has two symbols. */
SB_API sb_windows *sb_windows_new(const sb_documents *documents, sb_vocabulary *vocabulary,
                                  const sb_windows_options *options);
SB_API void sb_windows_free(sb_windows *windows);

SB_API sb_vocabulary *sb_windows_vocabulary(const sb_windows *windows);
SB_API int64_t sb_windows_symbols(const sb_windows *windows); /* predicted in an epoch */
SB_API int64_t sb_windows_bytes(const sb_windows *windows);   /* of the documents */
SB_API int64_t sb_windows_unknown(const sb_windows *windows); /* symbols without an id */
SB_API int64_t sb_windows_batches(const sb_windows *windows); /* in this epoch, once begun */

/* The next batch; it belongs to the windows and lives until the next call. */
SB_API const sb_batch *sb_windows_next(sb_windows *windows);
SB_API sb_data_position sb_windows_tell(const sb_windows *windows);
SB_API bool sb_windows_seek(sb_windows *windows, sb_data_position position);

/* A number that changes with the symbols and how they are cut into batches. */
SB_API uint64_t sb_windows_hash(const sb_windows *windows);

/* The windows as a source of batches; they must outlive it. */
SB_API sb_source sb_windows_as_source(sb_windows *windows);

/* A batch of n >= 1 windows: window i reads ids[i][0 .. length[i] - 1] and predicts what follows
   each, ids[i][1 .. length[i]]. To be freed with sb_batch_free. */
SB_API sb_batch *sb_window_batch_new(int64_t n, const int32_t *const ids[], const int64_t length[]);

#endif
