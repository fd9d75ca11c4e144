/* What sb_attention and sb_attention_cached share: reading shapes and options, and running the
   forward kernel. */
#ifndef SOFTBACK_OPS_ATTENTION_CALL_H
#define SOFTBACK_OPS_ATTENTION_CALL_H

#include "autograd/node.h"
#include "ops/attention.h"
#include "ops/ops.h"

/* q, k or v: where its rows lie, and how many. `dim` is its shape as users see it. */
struct attention_operand {
    const char *name;
    int rank;
    int64_t dim[4];
    int64_t B, L, H, D;
    struct attention_strides stride;
};

/* How (B, L, H, D) lies in memory, or with the heads first (B, H, L, D). */
struct attention_strides attention_strides_of(bool heads_first, int64_t H, int64_t L, int64_t D);

/* A tensor of 2 to 4 axes as an operand; false, with a message, for any other. */
bool attention_operand(const char *who, const char *name, const sb_tensor *t, sb_layout layout,
                       struct attention_operand *operand);

/* Checks that the operands fit each other, and the options them. Fills in all of `a` but the bias,
   the mask, the dropout and how products are made. */
bool attention_describe(const char *who, const struct attention_operand *q,
                        const struct attention_operand *k, const struct attention_operand *v,
                        const sb_attention_options *options, struct attention *a);

/* q divided by the learned temperature, if there is one. */
sb_tensor *attention_over_temperature(sb_tensor *q, const sb_attention_options *options);

/*
 * A node with the n operands, the bias if there is one, and the tensors that the mask reads as its
 * inputs, and with a copy of `a` as its options, completed by the bias and the mask. `a` is the
 * first part of `bytes` bytes.
 */
sb_node *attention_node(const sb_operation *operation, int n, sb_tensor *const operands[],
                        const sb_attention_options *options, const struct attention *a,
                        size_t bytes);

/* The same where `a` has some of the queries and keys of a whole: the bias and dense patterns of
   the mask have the queries that are here, and all keys. */
sb_node *attention_node_of(const sb_operation *operation, int n, sb_tensor *const operands[],
                           const sb_attention_options *options, const struct attention *a,
                           size_t bytes, struct mask_sizes whole);

/* y, of the shape that q has, with the size of a head of v. */
sb_tensor *attention_output(sb_node *node, const struct attention_operand *q);

/* Draws the dropout. False where the pairs do not fit the open tape's share. */
bool attention_dropout(const char *who, const sb_attention_options *options, struct attention *a);

/* Draws the dropout, makes y and the weights, and runs the forward kernel. f has q, k, v and the
   bias. Returns y, and the weights if the options ask for them. */
sb_tensor *attention_forward(sb_node *node, struct attention_forward f,
                             const struct attention_operand *q,
                             const sb_attention_options *options);

/* Where the gradient of input i goes. */
struct attention_gradient attention_gradient_of(const sb_node *node, int i);

/* sb_attention by the other algorithm, in attention_tiled.c. */
sb_tensor *attention_tiled(sb_tensor *const operands[3], const struct attention_operand *q,
                           const sb_attention_options *options, const struct attention *a);

/* The same over the ranks of the open tape's ring, in attention_ring.c. */
sb_tensor *attention_ring(sb_tensor *const operands[3], const struct attention_operand *q,
                          const sb_attention_options *options, const struct attention *a);

#endif
