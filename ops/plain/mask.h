/* A mask, pair by pair (ops/mask_terms.h). */
#ifndef SOFTBACK_OPS_PLAIN_MASK_H
#define SOFTBACK_OPS_PLAIN_MASK_H

#include "ops/mask_terms.h"

static inline bool mask_term_allows(const struct mask_term *t, int64_t b,
                                    int64_t h, int64_t i, int64_t j)
{
    const int64_t *s = t->stride;
    switch (t->kind) {
    case MASK_BAND:
        return i - t->before <= j && j <= i + t->after;
    case MASK_LENGTHS:
        return t->key + j < t->lengths[b];
    case MASK_DENSE:
        return (t->pairs[b * s[0] + h * s[1] + i * s[2] + j * s[3]] != 0) ==
               t->allows;
    case MASK_BLOCKS:
        return mask_block_kept(t, b, h, mask_block_row(t, i),
                               mask_block_column(t, j));
    }
    return false;
}

/* Whether query i of head h in sentence b may see key j: all terms allow it. */
static inline bool mask_allows(const struct mask_terms *mask, int64_t b,
                               int64_t h, int64_t i, int64_t j)
{
    for (int n = 0; n < mask->count; n++)
        if (!mask_term_allows(&mask->term[n], b, h, i, j))
            return false;
    return true;
}

#endif
