/* Multi-head attention: queries from x, keys and values from a memory (x itself in self-attention;
   values may have a source of their own), attention in each head, and an output projection of the
   concatenated heads. With tensor parallelism each rank holds some heads (Shoeybi et al. 2019). */
#ifndef SOFTBACK_NN_ATTENTION_H
#define SOFTBACK_NN_ATTENTION_H

#include "../ops/kv_cache.h"
#include "linear.h"
#include "norm.h"
#include "transformer.h"

typedef struct {
    int64_t heads, key_heads, size; /* this rank's H and G; head size D */
    sb_communicator *ranks;         /* tensor parallelism over these ranks; or NULL */
    double dropout;
    sb_score score;
    double scale, temperature;
    sb_attention_algorithm algorithm;
    bool rotary;
    sb_rotary_options angles;      /* of rotary positions */
    sb_sequence along, keys_along; /* the sequences of x and of the memory */
    sb_linear_layer query, key, value, output;
    bool qk_norm;
    sb_norm_layer query_norm, key_norm; /* with gains (D) for all heads */
} sb_multi_head_attention;

/* The inputs of one use of the layer. Zero: attends to all of the memory. */
typedef struct {
    sb_mask *mask;
    sb_tensor *values;  /* (B, Lk, value_width): the source of the values; NULL: the memory */
    sb_tensor *bias;    /* added to the scores, broadcastable to (B, H, Lq, Lk) */
    int64_t start;      /* position of the first row of x, for rotary positions */
    sb_kv_cache *cache; /* keys and values of earlier positions, to which those of the memory are
                           appended; only on tapes that do not record */
    bool cached; /* the cache holds all keys and values: nothing is appended, and the memory may be
                    NULL */
    sb_tensor **weights; /* receives the attention weights (B, H, Lq, Lk) of this rank's heads */
} sb_attending;

/* Adds "<name>.query", ".key", ".value" and ".output", each with weight and, as the options say,
   bias; with qk_norm also ".query_norm" and ".key_norm". `rotary` applies rotary positions to
   queries and keys; then x and the memory must be one sequence. The options key_width and
   value_width are the widths of the memory and of the source of the values (kdim and vdim in
   PyTorch). */
SB_API bool sb_multi_head_attention_init(sb_multi_head_attention *layer, sb_parameters *set,
                                         const char *name, const sb_transformer_options *options,
                                         bool rotary);
/* x (B, Lq, C), memory (B, Lk, key_width) -> y (B, Lq, C). Fails when a tensor does not have three
   axes, when sizes, batches or lengths differ, and as sb_attention. Source: Vaswani et al. 2017,
   section 3.2. On a CUDA device one product computes the projections that have the same input. */
SB_API sb_tensor *sb_multi_head_attention_forward(const sb_multi_head_attention *layer,
                                                  sb_tensor *x, sb_tensor *memory,
                                                  const sb_attending *attending);

#endif
