/* A call of attention: its operands and options are read and checked once, before the ways to
   compute it part (composed, tiled, over ranks, with a cache). */
#ifndef SOFTBACK_OPS_ATTENTION_CALL_H
#define SOFTBACK_OPS_ATTENTION_CALL_H

#include "autograd/node.h"
#include "ops/attention.h"
#include "ops/ops.h"

struct attention_call {
    const char *who;
    sb_tensor *q, *k, *v;
    int rank;       /* of q, as its user sees it */
    int64_t dim[4]; /* the same */
    bool heads_first;
    struct mask_sizes whole; /* what the mask and the bias speak of; with ranks more than is here */
    sb_attention_options options;
    struct attention a; /* what kernels read: all but the bias, the mask, the dropout, products */
};

/* Of k and v the first `keys` positions count; -1: all. Fails in the name of `who`, and when no
   tape is open. */
bool attention_call_read(struct attention_call *call, const char *who, sb_tensor *q, sb_tensor *k,
                         sb_tensor *v, int64_t keys, const sb_attention_options *options);

/*
 * The variants of the score that act on q and k are operations before the node, whose gradients the
 * tape finds; the rest of the factor is the node's scale. Keys in a cache are read where they lie,
 * so that what a score does to them is left to the kernel (cosine) or goes into the scale
 * (balanced).
 */
bool attention_call_score(struct attention_call *call, bool cached);

/*
 * A node with the n first of q, k, v, the bias if there is one, and the tensors that the mask reads
 * as its inputs. `operations` are without and with a bias. Its options are a copy of `options`,
 * whose first part is call->a, completed by the bias and the mask.
 */
sb_node *attention_call_node(const struct attention_call *call, const sb_operation operations[2],
                             int n, const void *options, size_t bytes);

/* y, of the shape that q has, with the size of a head of v. */
sb_tensor *attention_call_output(const struct attention_call *call, sb_node *node);

/* Draws the dropout of the node. False where the pairs do not fit the open tape's partition. */
bool attention_call_dropout(const struct attention_call *call, sb_node *node);

/* Draws the dropout, makes y and the weights, and runs the forward kernel. Returns y, and the
   weights if the options ask for them. */
sb_tensor *attention_call_forward(const struct attention_call *call, sb_node *node);

/* How (B, L, H, D) lies in memory, or with the heads first (B, H, L, D). */
struct attention_strides attention_strides_of(bool heads_first, int64_t H, int64_t L, int64_t D);

/* Where the gradient of input i goes. */
struct attention_gradient attention_gradient_of(const sb_node *node, int i);

/* The ways besides composed: in attention_tiled.c, and over the ranks of the open tape's context in
   attention_ring.c. */
sb_tensor *attention_tiled(const struct attention_call *call);
sb_tensor *attention_ring(struct attention_call *call);

#endif
