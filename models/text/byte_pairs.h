/* Byte-pair merges: learning them, and applying them. */
#ifndef SOFTBACK_MODELS_TEXT_BYTE_PAIRS_H
#define SOFTBACK_MODELS_TEXT_BYTE_PAIRS_H

#include "models/text/symbols.h"

/* Adds merges to a vocabulary that holds the characters, until it has `size` ids. `words` are
   distinct pieces of text that no merge crosses, each with the number of its uses. */
bool byte_pairs_learn(sb_vocabulary *vocabulary, const struct table *words, const int64_t *uses,
                      int64_t size);

/* Applies the merges to ids of characters, in place; returns how many are left, or -1 without
   memory. */
int64_t byte_pairs_apply(const sb_vocabulary *vocabulary, int32_t *ids, int64_t count);

#endif
