/*
 * Keys and values of the positions so far, for decoding step by step: those of a step are appended
 * in place, and attention reads them where they lie. A step costs a + b t: projections are
 * constant, attention goes over all t positions.
 *
 * A cache serves tapes that do not record; it keeps nothing for backward. Self-attention appends
 * one position (or a few) a step; cross-attention appends all of them once.
 */
#ifndef SOFTBACK_OPS_KV_CACHE_H
#define SOFTBACK_OPS_KV_CACHE_H

#include "ops.h"

typedef struct sb_kv_cache sb_kv_cache;

/* An empty cache; the first append gives it its sizes. The caller frees it. */
SB_API sb_kv_cache *sb_kv_cache_new(void);
SB_API void sb_kv_cache_free(sb_kv_cache *cache); /* NULL is allowed */

/* How many positions and sequences it holds; 0 on NULL. */
SB_API int64_t sb_kv_cache_length(const sb_kv_cache *cache);
SB_API int64_t sb_kv_cache_batch(const sb_kv_cache *cache);

/*
 * Copies the next L positions behind those it holds: k (B, L, G, D), v (B, L, G, Dv). The room
 * doubles when it is full, so that appending costs the same at any length, on average. Fails,
 * leaving the cache as it was, when a tape that records is open, when sizes, dtype or device are
 * not the cache's, and when there is no memory.
 */
SB_API bool sb_kv_cache_append(sb_kv_cache *cache, sb_tensor *k, sb_tensor *v);

/* Sequence i becomes what sequence rows[i] was, for i in 0..n-1, as beam search wants it; n may
   differ from the batch so far. Fails, leaving the cache as it was, on a row that is not there. */
SB_API bool sb_kv_cache_reorder(sb_kv_cache *cache, int64_t n, const int32_t *rows);

/* Forgets all positions from `length` on; the room stays. 0 empties it. */
SB_API bool sb_kv_cache_truncate(sb_kv_cache *cache, int64_t length);

/*
 * sb_attention with the keys and values that the cache holds, read in place. `layout` speaks of q
 * and the result only. A row's result depends on neither the rest of the batch nor on the room: the
 * same bits come alone and in a batch. Not differentiable.
 *
 * Shape     q (B, Lq, H, D), the cache's k (B, Lk, G, D), v (B, Lk, G, Dv) -> y (B, Lq, H, Dv)
 * Fails     as sb_attention; a tape that records is open; the cache is empty
 */
SB_API sb_tensor *sb_attention_cached(sb_tensor *q, const sb_kv_cache *cache,
                                      const sb_attention_options *options);

#endif
