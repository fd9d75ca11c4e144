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

#include "ops/mask.h"

enum { MASK_TERMS = 8 };

enum mask_kind {
    MASK_BAND,    /* i - before <= j <= i + after: causal and window */
    MASK_LENGTHS, /* j < lengths[b] */
    MASK_DENSE,   /* pairs[b, h, i, j] is true where it allows, or where it blocks */
};

struct mask_term {
    enum mask_kind kind;
    int64_t before, after;
    const int32_t *lengths;
    const uint8_t *pairs;
    int64_t stride[4]; /* of pairs, along (B, H, Lq, Lk); 0 where it stretches */
    bool allows;       /* what true means in pairs */
};

/* No terms: every pair is kept. */
struct mask_terms {
    int count;
    bool dense; /* whether a term is dense */
    struct mask_term term[MASK_TERMS];
};

/* The keys from <= j < to; none when they are equal. */
struct key_range {
    int64_t from, to;
};

/* What is left for the queries first .. last of sentence b before dense terms: the keys from the
   first query's first to the last query's last. Exact for one query. */
static inline struct key_range mask_range(const struct mask_terms *mask, int64_t b, int64_t first,
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

/* The tensors that the mask's terms read, which become inputs of the node; returns how many. */
int mask_tensors(const sb_mask *mask, sb_tensor *tensors[MASK_TERMS]);

#endif
