/*
 * Masks: which query may attend to which key. The name of each constructor says what true means;
 * attention gives every blocked pair a weight of exactly zero.
 *
 * A mask applies to the scores (B, H, Lq, Lk) of attention; masked_softmax aligns the axes of x
 * from the right. The open tape owns a mask, like the result of an operation, and the mask retains
 * the tensors that it is made from.
 */
#ifndef SOFTBACK_OPS_MASK_H
#define SOFTBACK_OPS_MASK_H

#include "../tensor/tensor.h"

typedef struct sb_mask sb_mask;

/* From booleans broadcastable to (B, H, Lq, Lk): true where a pair may attend. */
SB_API sb_mask *sb_mask_allow(sb_tensor *allowed);
/* From booleans broadcastable to (B, H, Lq, Lk): true where a pair is blocked. */
SB_API sb_mask *sb_mask_block(sb_tensor *blocked);
/*
 * From numbers that are added to the scores (B, H, Lq, Lk), as other libraries take them: a pair is
 * blocked where the number is -inf. Give the same tensor as the bias of attention if its other
 * numbers count. A bias of -inf alone makes a fully masked query NaN; with the mask it is 0.
 */
SB_API sb_mask *sb_mask_from_bias(sb_tensor *bias);
/* Query i attends to the keys 0..i: the first query is aligned with the first key. */
SB_API sb_mask *sb_mask_causal(void);
/* Query i attends to the keys 0..i + Lk - Lq: the last query is aligned with the last key. Use it
   when the first Lk - Lq keys come from a cache. */
SB_API sb_mask *sb_mask_causal_last(void);
/* Key padding mask: sequence b has lengths[b] keys, in 0..Lk (i32, (B)); later keys are blocked. */
SB_API sb_mask *sb_mask_lengths(sb_tensor *lengths);
/* Sliding window: query i attends to the keys i - before .. i + after; both are at least 0. */
SB_API sb_mask *sb_mask_window(int64_t before, int64_t after);
/*
 * Block-sparse: query i attends to key j where kept[b, h, i / size, j / size], booleans
 * broadcastable to (B, H, blocks of queries, blocks of keys), is true. Tiled attention skips the
 * other blocks.
 */
SB_API sb_mask *sb_mask_blocks(sb_tensor *kept, int64_t size);
/* The same from a list of n kept blocks {row, column}, for Lq queries and Lk keys. */
SB_API sb_mask *sb_mask_block_list(int64_t Lq, int64_t Lk, int64_t size, int64_t n,
                                   const int64_t (*blocks)[2]);
/*
 * Patterns of blocks for Lq queries and Lk keys; block row r attends to block column c
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
/* The pairs that both masks allow. At most eight masks can be combined. */
SB_API sb_mask *sb_mask_and(sb_mask *a, sb_mask *b);

/* The pairs of sequence b and head h as text, one line for each query, '#' where a pair is allowed
   and '.' where it is blocked. Free it with sb_free. */
SB_API char *sb_mask_text(const sb_mask *mask, int64_t b, int64_t h, int64_t Lq, int64_t Lk);

#endif
