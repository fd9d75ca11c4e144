/* Internal functions of descriptions, for files and comparisons. */
#ifndef SOFTBACK_MODELS_DESCRIPTION_PARTS_H
#define SOFTBACK_MODELS_DESCRIPTION_PARTS_H

#include "models/description.h"

/* A number in the fewest digits from which the same bits are read. */
struct number_text {
    char text[40];
};
struct number_text number_text(double number);

/* The name of the i-th vocabulary, and the vocabulary; NULL past the last. */
const char *description_vocabulary_at(const sb_description *description, int64_t i,
                                      sb_vocabulary **vocabulary);

/* All labels, and how many there are. */
const char *const *description_labels(const sb_description *description, int64_t *count);

/* Whether both have the same labels, and vocabularies of the same names, which give the same
   symbols the same ids. */
bool description_same_words(const sb_description *a, const sb_description *b);

/* Whether two vocabularies have the same symbols. */
bool description_same_vocabulary(const sb_vocabulary *a, const sb_vocabulary *b);

#endif
