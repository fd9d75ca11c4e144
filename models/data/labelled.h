/*
 * Labelled texts: what a classifier learns from, as batches.
 *
 * Texts come in epochs, shuffled and batched as pairs are (data.h): the position (epoch, batch)
 * alone says what comes next. Parts of a batch:
 *
 *   text     (B, L) i32  begin, the text's symbols, then padding
 *   lengths  (B) i32     symbols and begin
 *   pooling  (B, L) f32  1 / length where there are symbols, else 0: the weights of their mean
 *   label    (B) i32     the numbers of the labels; -1 where a text has none
 */
#ifndef SOFTBACK_MODELS_DATA_LABELLED_H
#define SOFTBACK_MODELS_DATA_LABELLED_H

#include "../text/labels.h"
#include "../text/pairs.h"
#include "../text/vocabulary.h"
#include "data.h"

typedef struct sb_labelled sb_labelled;

/* Pairs of text and label, of which the vocabulary is retained and the others may be freed
   afterwards. Options may be NULL; texts longer than `longest` are left out. Batches number labels
   as `labels` does: give those of the model, as sb_trainer_for and sb_evaluate refuse other
   numbers. Fails where a label is none of `labels` and when no text is short enough. */
SB_API sb_labelled *sb_labelled_new(const sb_pairs *pairs, sb_vocabulary *vocabulary,
                                    const sb_labels *labels, const sb_data_options *options);
SB_API void sb_labelled_free(sb_labelled *labelled);

SB_API int64_t sb_labelled_count(const sb_labelled *labelled);    /* texts of an epoch */
SB_API int64_t sb_labelled_left_out(const sb_labelled *labelled); /* texts that were too long */

/* The next batch; it belongs to the object and lives until the next call. */
SB_API const sb_batch *sb_labelled_next(sb_labelled *labelled);
SB_API sb_data_position sb_labelled_tell(const sb_labelled *labelled);
SB_API bool sb_labelled_seek(sb_labelled *labelled, sb_data_position position);

/* The data as a source of batches; the object must outlive it. */
SB_API sb_source sb_labelled_as_source(sb_labelled *labelled);

/* A batch of n >= 1 texts as ids; labels may be NULL: -1. "Begin" is put before each text, unless
   the vocabulary is one of ids (NULL: it is not). To be freed with sb_batch_free. */
SB_API sb_batch *sb_labelled_batch_new(int64_t n, const int32_t *const ids[],
                                       const int64_t length[], const int64_t label[],
                                       const sb_vocabulary *vocabulary);

#endif
