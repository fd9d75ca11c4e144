/*
 * The key/value cache of incremental decoding: each step appends its keys and values, and attention
 * reads them in place. Step t costs a + b t: the projections are constant, attention reads t
 * positions.
 *
 * A cache works on tapes that do not record; it saves nothing for backward. Self-attention appends
 * one or a few positions in each step; cross-attention appends all positions once.
 */
#ifndef SOFTBACK_OPS_KV_CACHE_H
#define SOFTBACK_OPS_KV_CACHE_H

#include "ops.h"

typedef struct sb_kv_cache sb_kv_cache;

/* An empty cache; the first append determines its sizes. The caller frees it. */
SB_API sb_kv_cache *sb_kv_cache_new(void);
SB_API void sb_kv_cache_free(sb_kv_cache *cache); /* NULL is allowed */

/* The number of positions and of sequences in the cache; 0 for NULL. */
SB_API int64_t sb_kv_cache_length(const sb_kv_cache *cache);
SB_API int64_t sb_kv_cache_batch(const sb_kv_cache *cache);

/*
 * Appends the next L positions: k (B, L, G, D), v (B, L, G, Dv). A full cache doubles its capacity,
 * so an append takes amortised constant time. Fails, and leaves the cache unchanged, when the open
 * tape records, when sizes, dtype or device differ from the cache's, and when memory runs out.
 */
SB_API bool sb_kv_cache_append(sb_kv_cache *cache, sb_tensor *k, sb_tensor *v);

/* For beam search: sequence i becomes a copy of the former sequence rows[i], for i in 0..n-1; n may
   differ from the present batch. Fails, and leaves the cache unchanged, when a row does not exist.
 */
SB_API bool sb_kv_cache_reorder(sb_kv_cache *cache, int64_t n, const int32_t *rows);

/* Removes all positions from `length` on; 0 empties the cache. The capacity stays. */
SB_API bool sb_kv_cache_truncate(sb_kv_cache *cache, int64_t length);

/*
 * sb_attention with the cached keys and values, which are read in place. `layout` applies to q and
 * the result only. The result of a row depends neither on the rest of the batch nor on the
 * capacity: alone and in a batch, its bits are the same. Not differentiable.
 *
 * Shape     q (B, Lq, H, D), the cache's k (B, Lk, G, D), v (B, Lk, G, Dv) -> y (B, Lq, H, Dv)
 * Fails     as sb_attention; the open tape records; the cache is empty
 */
SB_API sb_tensor *sb_attention_cached(sb_tensor *q, const sb_kv_cache *cache,
                                      const sb_attention_options *options);

#endif
