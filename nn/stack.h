/* The stack that encoders and decoders share: an embedding, layers, and except with
   post-norm a final norm. */
#ifndef SOFTBACK_NN_STACK_H
#define SOFTBACK_NN_STACK_H

#include "nn/embedding.h"
#include "nn/position_bias.h"
#include "nn/transformer_layer.h"

struct stack {
    sb_embedding_layer embedding;
    sb_position_bias bias;
    sb_norm_layer norm; /* except with post-norm */
    bool has_norm, crosses, recomputes;
    int layers;
    sb_transformer_layer *layer;
};

/* The inputs of one use of a stack. Arrays have one entry for each layer, and may be NULL. */
struct stack_use {
    sb_attending self, cross; /* of all layers; without caches and weights */
    sb_tensor *segments;      /* of the ids; or NULL */
    sb_tensor *memory;        /* for cross-attention */
    sb_kv_cache **self_caches, **cross_caches;
    sb_tensor **self_weights, **cross_weights; /* receive the weights of attention */
};

/*
 * Adds "<name>.embedding" for V symbols (unless `shared` is a table to use instead), the layers
 * "<name>.layers.0", ..., and "<name>.norm". The options are complete. On failure the stack is zero
 * and the set is unchanged.
 */
bool stack_init(struct stack *stack, sb_parameters *set, const char *name, int64_t V, int layers,
                const sb_transformer_options *options, bool crosses, sb_tensor *shared);
void stack_clear(struct stack *stack);

/* ids (B, L) of i32, the last L of `length` positions -> (B, L, C). */
sb_tensor *stack_forward(const struct stack *stack, sb_tensor *ids, int64_t length,
                         struct stack_use *use);

#endif
