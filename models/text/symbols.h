/* The members of a vocabulary, for the files that build, use and store it. */
#ifndef SOFTBACK_MODELS_TEXT_SYMBOLS_H
#define SOFTBACK_MODELS_TEXT_SYMBOLS_H

#include "models/text/table.h"
#include "models/text/vocabulary.h"
#include <stdatomic.h>

struct sb_vocabulary {
    atomic_int refs;
    sb_units units;
    struct table symbols; /* index + first is the id; the key its text */
    int32_t first, special[SB_SPECIAL_SYMBOLS];
    /*
     * bpe only. The keys are pairs of ids, in the order of learning; merge i makes the symbol that
     * follows the characters and the i merges before it, so the last symbols are the merges.
     */
    struct table merges;
};

/* A vocabulary without symbols. The caller owns it; NULL, with no message, without memory. */
sb_vocabulary *vocabulary_empty(sb_units units);

/* Adds the 256 symbols of bytes; false without memory. */
bool vocabulary_add_bytes(sb_vocabulary *vocabulary);

/* The id that the merge of rank i makes. */
static inline int32_t merge_result(const sb_vocabulary *v, int64_t rank)
{
    return (int32_t)(SB_SPECIAL_SYMBOLS + v->symbols.count - v->merges.count + rank);
}

/* Adds merges to a vocabulary that holds the characters, until it has `size` ids. `words` are
   distinct pieces of text that no merge crosses, each with the number of its uses. */
bool byte_pairs_learn(sb_vocabulary *vocabulary, const struct table *words, const int64_t *uses,
                      int64_t size);

/* Applies the merges to ids of characters, in place; returns how many are left, or -1 without
   memory. */
int64_t byte_pairs_apply(const sb_vocabulary *vocabulary, int32_t *ids, int64_t count);

#endif
