/*
 * A mask as kernels read it: a list of terms, plain numbers and pointers, all of which must allow a
 * pair. Kernels compute the softmax of a row only over the keys that are kept.
 *
 * The terms without a dense pattern leave one range of keys in each row, and kernels do not visit
 * the others. Dense terms pick from this range. A further kind of term is one more case in
 * mask_range, or where dense terms are read (ops/cpu/masked_row.h).
 */
#ifndef SOFTBACK_OPS_MASK_TERMS_H
#define SOFTBACK_OPS_MASK_TERMS_H

#include "ops/kernel.h"
#include "ops/mask.h"

enum { MASK_TERMS = 8 };

enum mask_kind {
    MASK_BAND,    /* i - before <= j <= i + after: causal and window */
    MASK_LENGTHS, /* j < lengths[b] */
    MASK_DENSE,   /* pairs[b, h, i, j] is true where it allows, or where it blocks */
    MASK_BLOCKS,  /* pairs[b, h, i / size, j / size] is true where it allows */
};

struct mask_term {
    enum mask_kind kind;
    int64_t before, after;
    const int32_t *lengths;
    const uint8_t *pairs;
    int64_t stride[4]; /* of pairs, along its four axes; 0 where it stretches */
    bool allows;       /* what true means in pairs */
    int64_t size;      /* queries and keys of a block */
};

/* No terms: every pair is kept. */
struct mask_terms {
    int count;
    bool dense; /* whether a term has pairs */
    struct mask_term term[MASK_TERMS];
};

/* The byte of a block: whether its pairs are kept. */
KERNEL_INLINE bool mask_block_kept(const struct mask_term *term, int64_t b, int64_t h, int64_t row,
                                   int64_t column)
{
    const int64_t *s = term->stride;
    return term->pairs[b * s[0] + h * s[1] + row * s[2] + column * s[3]] != 0;
}

/* Whether any block, or every one, of those that some queries and keys lie in is kept. */
KERNEL_INLINE void mask_blocks_kept(const struct mask_term *term, int64_t b, int64_t h,
                                    const int64_t query[2], const int64_t key[2], bool *any,
                                    bool *every)
{
    *any = false;
    *every = true;
    for (int64_t row = query[0] / term->size; row <= query[1] / term->size; row++)
        for (int64_t column = key[0] / term->size; column <= key[1] / term->size; column++) {
            bool kept = mask_block_kept(term, b, h, row, column);
            *any |= kept;
            *every &= kept;
        }
}

/* The keys from <= j < to; none when they are equal. */
struct key_range {
    int64_t from, to;
};

/* What is left for the queries first .. last of sentence b before dense terms: the keys from the
   first query's first to the last query's last. Exact for one query. */
KERNEL_INLINE struct key_range mask_range(const struct mask_terms *mask, int64_t b, int64_t first,
                                          int64_t last, int64_t Lk)
{
    struct key_range range = {0, Lk};
    for (int n = 0; n < mask->count; n++) {
        const struct mask_term *term = &mask->term[n];
        int64_t from = term->kind == MASK_BAND ? first - term->before : 0;
        int64_t to = term->kind == MASK_BAND      ? last + term->after + 1
                     : term->kind == MASK_LENGTHS ? term->lengths[b]
                                                  : Lk;
        range.from = from > range.from ? from : range.from;
        range.to = to < range.to ? to : range.to;
    }
    if (range.to <= range.from)
        range.from = range.to = 0;
    return range;
}

/* Of scores (B, H, Lq, Lk). */
struct mask_sizes {
    int64_t B, H, Lq, Lk;
};

/* The mask's terms for scores of these sizes. False, with a message in the name of `who`, when it
   does not fit. NULL gives no terms, unless it stands for a mask that could not be made because no
   tape was open. */
bool mask_resolve(const char *who, const sb_mask *mask, struct mask_sizes sizes,
                  struct mask_terms *terms);

/* Whether a tape is open for a mask; every constructor asks first. */
bool mask_may_be_made(const char *who);

/* The tensors that the mask's terms read, which become inputs of the node; returns how many. */
int mask_tensors(const sb_mask *mask, sb_tensor *tensors[MASK_TERMS]);

#endif
