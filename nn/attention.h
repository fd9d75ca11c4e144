/* Multi-head attention: queries from x, keys and values from a memory (x itself in self-attention),
   attention in each head, and the projection of the joined heads. Ranks may hold parts of it, by
   heads (Shoeybi et al. 2019). */
#ifndef SOFTBACK_NN_ATTENTION_H
#define SOFTBACK_NN_ATTENTION_H

#include "../ops/kv_cache.h"
#include "linear.h"
#include "transformer.h"

typedef struct {
    int64_t heads, key_heads, size; /* H, G, and D = C / H; of the heads those that are here */
    sb_communicator *ranks;         /* of which each has as many; or NULL */
    double dropout;
    sb_score score;
    double temperature;
    sb_attention_algorithm algorithm;
    bool rotary;
    sb_sequence along, keys_along; /* which sequence x is, and the memory */
    sb_linear_layer query, key, value, output;
} sb_multi_head_attention;

/* What one use of the layer may look at. Zero: all of the memory. */
typedef struct {
    sb_mask *mask;
    sb_tensor *bias;     /* added to the scores, broadcastable to (B, H, Lq, Lk) */
    int64_t start;       /* the position of x's first row, for rotary positions */
    sb_kv_cache *cache;  /* keys and values of earlier positions, to which those of this memory are
                            added; only on tapes that do not record */
    bool cached;         /* the cache already holds all keys and values: nothing is added, and the
                            memory may be NULL */
    sb_tensor **weights; /* receives the attention weights (B, H, Lq, Lk) of the heads here */
} sb_attending;

/* Adds "<name>.query", ".key", ".value" and ".output", each with weight and bias. `rotary` turns
   queries and keys by their positions. It is self-attention: x and the memory are one sequence. */
SB_API bool sb_multi_head_attention_init(sb_multi_head_attention *layer, sb_parameters *set,
                                         const char *name, const sb_transformer_options *options,
                                         bool rotary);
/* x (B, Lq, C), memory (B, Lk, C) -> y (B, Lq, C). Source: Vaswani et al. 2017, section 3.2. */
SB_API sb_tensor *sb_multi_head_attention_forward(const sb_multi_head_attention *layer,
                                                  sb_tensor *x, sb_tensor *memory,
                                                  const sb_attending *attending);

#endif
