/* The outputs that differ from their targets, the worst first. */
#ifndef SOFTBACK_MODELS_TRANSLATION_ERRORS_H
#define SOFTBACK_MODELS_TRANSLATION_ERRORS_H

#include "models/text/pairs.h"
#include "models/text/vocabulary.h"

struct translation_error {
    int64_t pair, distance; /* edit distance to the expected text, in symbols */
};

/* Of outputs for the first n pairs; *wrong: how many. An array for memory_free, or NULL. */
struct translation_error *translation_errors(const sb_vocabulary *vocabulary, const sb_pairs *pairs,
                                             char *const outputs[], int64_t n, int64_t *wrong);

#endif
