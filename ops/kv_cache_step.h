/* A cache in a decoding step that a CUDA graph repeats: the position is read on the device. */
#ifndef SOFTBACK_OPS_KV_CACHE_STEP_H
#define SOFTBACK_OPS_KV_CACHE_STEP_H

#include "ops/kv_cache.h"

/* The capacity in positions. kv_cache_reserve makes room for this many more; false when out of
   memory. The cache is not empty. */
int64_t kv_cache_room(const sb_kv_cache *cache);
bool kv_cache_reserve(sb_kv_cache *cache, int64_t positions);

/*
 * From now on sb_kv_cache_append writes one position, whose number is the element of `position`
 * (i32, on the device) when the kernel runs, and sb_attention_cached reads the whole capacity, so
 * its mask must exclude later positions. The length stays as it was: kv_cache_advance adds the
 * positions that were written. NULL ends this.
 */
void kv_cache_follow(sb_kv_cache *cache, const sb_tensor *position);
void kv_cache_advance(sb_kv_cache *cache, int64_t positions);

/* Reorders n caches in place, without the host: of each `slots` sequences, sequence i becomes what
   sequence from[i] of these was, in the first *position positions. Both are on the device. */
bool kv_caches_rearrange(int n, sb_kv_cache *const cache[], int64_t slots, const sb_tensor *from,
                         const sb_tensor *position);

#endif
