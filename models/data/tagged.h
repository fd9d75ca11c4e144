/*
 * Tagged texts: labelled texts with a label for each symbol, instead of one for the text. A batch
 * has them as `label` (B, L), -1 at begin and padding.
 */
#ifndef SOFTBACK_MODELS_DATA_TAGGED_H
#define SOFTBACK_MODELS_DATA_TAGGED_H

#include "models/data/labelled.h"

/* The words of texts, which any of the separators divide ("": none), in one array for memory_free;
   NULL without memory. */
const char **tagged_split(const char *const *texts, int64_t count, const char *separators,
                          int64_t *words);

/* The different labels of texts, in which spaces separate them. */
sb_labels *tagged_labels(const char *const *texts, int64_t count);

/* Pairs of a text and its labels, separated by spaces. Fails where a text has fewer or more of them
   than symbols. All functions of labelled texts serve. */
sb_labelled *tagged_new(const sb_pairs *pairs, sb_vocabulary *vocabulary, const sb_labels *labels,
                        const sb_data_options *options);

/* As sb_labelled_batch_new, with the labels of all texts one after the other. */
sb_batch *tagged_batch_new(int64_t n, const int32_t *const ids[], const int64_t length[],
                           const int64_t label[], const sb_vocabulary *vocabulary);

/* A batch of n texts of labelled or tagged ones, by their numbers, for sb_batch_free. */
sb_batch *labelled_batch(const void *labelled, int64_t n, const int64_t item[]);

#endif
