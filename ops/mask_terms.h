/*
 * A mask as kernels read it: a list of terms, made of plain numbers and pointers. A pair is kept
 * when all terms allow it. Kernels compute the softmax of a row only over the keys that are kept.
 *
 * Terms without a dense pattern keep one range of keys in each row, and kernels skip the other
 * keys. Dense terms select keys within this range. A new kind of term needs one more case in
 * mask_range, or where dense terms are read (ops/cpu/masked_row.h).
 */
#ifndef SOFTBACK_OPS_MASK_TERMS_H
#define SOFTBACK_OPS_MASK_TERMS_H
#include "ops/kernel.h"
#include "ops/mask.h"
#include "ops/runs.h"

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
    int64_t stride[4]; /* of pairs, along its four axes; 0 on broadcast axes */
    bool allows;       /* what true means in pairs */
    int64_t size;      /* queries and keys of a block */
    /* The positions of the first query and the first key within the unsharded scores. */
    int64_t query, key;
};

/* No terms: every pair is kept. */
struct mask_terms {
    int count;
    bool dense; /* whether a term has pairs */
    struct mask_term term[MASK_TERMS];
};

/* The row and the column of the block of query i and key j. */
KERNEL_INLINE int64_t mask_block_row(const struct mask_term *term, int64_t i)
{
    return (term->query + i) / term->size;
}

KERNEL_INLINE int64_t mask_block_column(const struct mask_term *term, int64_t j)
{
    return (term->key + j) / term->size;
}

/* Whether the pairs of a block are kept. */
KERNEL_INLINE bool mask_block_kept(const struct mask_term *term, int64_t b, int64_t h, int64_t row,
                                   int64_t column)
{
    const int64_t *s = term->stride;
    return term->pairs[b * s[0] + h * s[1] + row * s[2] + column * s[3]] != 0;
}

/* Whether any block, and whether every block, of a range of queries and keys is kept. */
KERNEL_INLINE void mask_blocks_kept(const struct mask_term *term, int64_t b, int64_t h,
                                    const int64_t query[2], const int64_t key[2], bool *any,
                                    bool *every)
{
    *any = false;
    *every = true;
    const int64_t last_row = mask_block_row(term, query[1]);
    const int64_t last_column = mask_block_column(term, key[1]);
    for (int64_t row = mask_block_row(term, query[0]); row <= last_row; row++)
        for (int64_t column = mask_block_column(term, key[0]); column <= last_column; column++) {
            bool kept = mask_block_kept(term, b, h, row, column);
            *any |= kept;
            *every &= kept;
        }
}

/* The keys from <= j < to; none when they are equal. */
struct key_range {
    int64_t from, to;
};

/* The keys that the queries first .. last of sequence b keep before dense terms: from the first key
   of the first query to the last key of the last query. Exact for one query. */
KERNEL_INLINE struct key_range mask_range(const struct mask_terms *mask, int64_t b, int64_t first,
                                          int64_t last, int64_t Lk)
{
    struct key_range range = {0, Lk};
    for (int n = 0; n < mask->count; n++) {
        const struct mask_term *term = &mask->term[n];
        int64_t from = term->kind == MASK_BAND ? first - term->before : 0;
        int64_t to = term->kind == MASK_BAND      ? last + term->after + 1
                     : term->kind == MASK_LENGTHS ? term->lengths[b] - term->key
                                                  : Lk;
        range.from = from > range.from ? from : range.from;
        range.to = to < range.to ? to : range.to;
    }
    if (range.to <= range.from)
        range.from = range.to = 0;
    return range;
}

/* The sizes of scores (B, H, Lq, Lk). */
struct mask_sizes {
    int64_t B, H, Lq, Lk;
};

/* The terms for the queries from `query` on and the keys from `key` on. `row` is the row of the
   first query in a dense pattern. */
struct mask_terms mask_part(const struct mask_terms *mask, int64_t row, int64_t query, int64_t key);

/* The mask's terms for scores of these sizes, where dense patterns have only the `rows` queries of
   this rank. Fails, with `who` opening the message, when the mask does not match the sizes. NULL
   gives no terms, but fails after a mask could not be made because no tape was open. */
bool mask_resolve(const char *who, const sb_mask *mask, struct mask_sizes sizes, int64_t rows,
                  struct mask_terms *terms);

/* The tensors that the mask's terms read, which become inputs of the node; returns how many. */
int mask_tensors(const sb_mask *mask, sb_tensor *tensors[MASK_TERMS]);

struct run; /* ops/runs.h */

/*
 * q with zeros in the queries that the mask blocks entirely, on a tape that records: NaN there then
 * reaches no gradient of what q is multiplied by. `whole` are the sizes of the unsharded scores,
 * and q has two runs of their queries. Its shape is that of an operand of attention. Returns q
 * itself where every query has a key, and NULL for NULL.
 */
sb_tensor *mask_keep_queries(const char *who, const sb_mask *mask, struct mask_sizes whole,
                             const struct run *run, bool heads_first, sb_tensor *q);

#endif
