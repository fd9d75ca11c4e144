/* A call of attention: its operands and options are read and checked once, before an algorithm is
   chosen (composed, tiled, ring, cached). */
#ifndef SOFTBACK_OPS_ATTENTION_CALL_H
#define SOFTBACK_OPS_ATTENTION_CALL_H

#include "autograd/node.h"
#include "ops/attention.h"
#include "ops/ops.h"

struct attention_call {
    const char *who;
    sb_tensor *q, *k, *v;
    bool heads_first;
    struct mask_sizes whole; /* sizes that the mask and the bias refer to: the unsharded scores */
    sb_attention_options options;
    struct attention a; /* what kernels read, except bias, mask, dropout and products */
};

/* Reads the first `keys` positions of k and v; -1: all. `who` opens the messages. Fails also when
   no tape is open. */
bool attention_call_read(struct attention_call *call, const char *who, sb_tensor *q, sb_tensor *k,
                         sb_tensor *v, int64_t keys, const sb_attention_options *options);

/*
 * Score variants that transform q and k run as operations before the node, so the tape computes
 * their gradients; the remaining factor is the node's scale. Cached keys are read in place, so
 * their transformation is left to the kernel (cosine) or goes into the scale (balanced).
 */
bool attention_call_score(struct attention_call *call, bool cached);

/*
 * A node whose inputs are the first n of q, k and v, the bias if there is one, and the tensors of
 * the mask. operations[0] has no bias, operations[1] has one. The node copies `options`, whose
 * first member is call->a, and adds the bias and the mask to the copy.
 */
sb_node *attention_call_node(const struct attention_call *call, const sb_operation operations[2],
                             int n, const void *options, size_t bytes);

/* y, with the shape of q and the head size of v. */
sb_tensor *attention_call_output(const struct attention_call *call, sb_node *node);

/* Draws the dropout of the node. False when the scores do not match the open tape's partition. */
bool attention_call_dropout(const struct attention_call *call, sb_node *node);

/* Draws the dropout, allocates y and the weights, and runs the forward kernel. Returns y, and the
   weights if the options request them. */
sb_tensor *attention_call_forward(const struct attention_call *call, sb_node *node);

/* The strides of (B, L, H, D), or with the heads first of (B, H, L, D). */
struct attention_strides attention_strides_of(bool heads_first, int64_t H, int64_t L, int64_t D);

/* Where the gradient of input i goes. */
struct attention_gradient attention_gradient_of(const sb_node *node, int i);

/* The bias of a node with q, k and v, or NULL. */
sb_tensor *attention_bias_of(const sb_node *node);

/* For the algorithms that go through keys in tiles: the node as attention_call_node makes it, with
   y and room for the statistics, its dropout drawn; what kernels read and write of it. */
sb_node *attention_tiled_node(const struct attention_call *call, const sb_operation operations[2],
                              const void *options, size_t bytes);
struct attention_tiled attention_tiled_forward(const sb_node *node);
struct attention_tiled_backward attention_tiled_gradients(const sb_node *node);

/* The other algorithms: tiled, and ring attention over the ranks of the open tape's context. */
sb_tensor *attention_tiled(const struct attention_call *call);
sb_tensor *attention_ring(struct attention_call *call);

#endif
