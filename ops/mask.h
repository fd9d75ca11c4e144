/*
 * Masks: which query may attend to which key. A mask says so with explicit polarity, and the
 * softmax of attention gives every pair that it blocks a weight of exactly zero.
 *
 * Masks speak of the scores (B, H, Lq, Lk) of an attention; masked_softmax aligns its x to that
 * from the right. They belong to the open tape, like the result of an operation; the tensors that
 * they are made from are retained.
 */
#ifndef SOFTBACK_OPS_MASK_H
#define SOFTBACK_OPS_MASK_H

#include "../tensor/tensor.h"

typedef struct sb_mask sb_mask;

/* From booleans broadcastable to (B, H, Lq, Lk): true where a pair may attend. */
SB_API sb_mask *sb_mask_allow(sb_tensor *allowed);
/* From booleans broadcastable to (B, H, Lq, Lk): true where a pair is blocked. */
SB_API sb_mask *sb_mask_block(sb_tensor *blocked);
/* Query i sees the keys 0..i: the first query is aligned with the first key. */
SB_API sb_mask *sb_mask_causal(void);
/* Query i sees the keys 0..i + Lk - Lq: the last query is aligned with the last key, as where the
   first Lk - Lq keys come from a cache. */
SB_API sb_mask *sb_mask_causal_last(void);
/* Sentence b has lengths[b] keys (i32, (B)); later ones are padding and blocked. Each is in
   0..Lk. */
SB_API sb_mask *sb_mask_lengths(sb_tensor *lengths);
/* Query i sees the keys i - before .. i + after; both are at least 0. */
SB_API sb_mask *sb_mask_window(int64_t before, int64_t after);
/*
 * Block-sparse: query i sees key j where kept[b, h, i / size, j / size], booleans broadcastable to
 * (B, H, blocks of queries, blocks of keys), is true. Tiled attention passes over what is not kept.
 */
SB_API sb_mask *sb_mask_blocks(sb_tensor *kept, int64_t size);
/* The same from a list of n kept blocks {row, column}, for Lq queries and Lk keys. */
SB_API sb_mask *sb_mask_block_list(int64_t Lq, int64_t Lk, int64_t size, int64_t n,
                                   const int64_t (*blocks)[2]);
/*
 * Patterns of blocks for Lq queries and Lk keys; block row r sees block column c
 *   local    where |r - c| <= around;
 *   strided  also where c is the last of `stride` columns: c % stride = stride - 1 (Child, Gray,
 *            Radford and Sutskever 2019, "fixed");
 *   global   where |r - c| <= around, or r or c is one of the first `globals` (Beltagy, Peters and
 *            Cohan 2020; Zaheer et al. 2020).
 */
SB_API sb_mask *sb_mask_local(int64_t Lq, int64_t Lk, int64_t size, int64_t around);
SB_API sb_mask *sb_mask_strided(int64_t Lq, int64_t Lk, int64_t size, int64_t around,
                                int64_t stride);
SB_API sb_mask *sb_mask_global(int64_t Lq, int64_t Lk, int64_t size, int64_t around,
                               int64_t globals);
/* Pairs that both allow. At most eight masks can be combined. */
SB_API sb_mask *sb_mask_and(sb_mask *a, sb_mask *b);

/* The kept pairs of sentence b and head h as a picture, one line a query, '#' kept and '.'
   blocked; to be freed with sb_free. */
SB_API char *sb_mask_text(const sb_mask *mask, int64_t b, int64_t h, int64_t Lq, int64_t Lk);

#endif
