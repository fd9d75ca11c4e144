/* Ring attention: what its forward and its backward share. */
#ifndef SOFTBACK_OPS_ATTENTION_RING_H
#define SOFTBACK_OPS_ATTENTION_RING_H

#include "ops/attention_call.h"
#include "ops/ring_blocks.h"
#include "ops/runs.h"

/* Options of the node. */
struct ring_call {
    struct attention a; /* of this rank's queries; its mask refers to the unsharded sequence */
    int64_t Lq, Lk;     /* of the unsharded sequence */
    bool heads_first;
    size_t element, sum; /* bytes of an element, and of a sum */
    sb_communicator *ring;
    int rank, ranks; /* in it */
};

/* The elements of the block of a step: k followed by v of its owner, or dk followed by dv. */
int64_t ring_key_elements(const struct ring_call *c, int step);
int64_t ring_block_elements(const struct ring_call *c, int step);

/* Makes room for blocks of any rank. */
bool ring_open_blocks(const struct ring_call *c, const sb_device *device, sb_dtype dtype,
                      struct ring_blocks *blocks);

/* Copies this rank's keys and values into the block of step 0. */
bool ring_pack(const struct ring_call *c, const void *k, const void *v, struct ring_blocks *blocks);

/* A part: a run of queries with a run of keys. */
struct ring_part {
    struct attention a;
    int64_t q, y;  /* where its queries begin in q, and in y */
    int64_t k, v;  /* where its keys begin in the block of a step */
    int64_t bias;  /* where it begins in the bias */
    int64_t stats; /* where its queries begin in the statistics */
};

/* Part n = 0..3 of a step. */
struct ring_part ring_part_at(const struct ring_call *c, int step, int n);

/* at[elements], of a size in bytes; NULL of NULL. */
static inline void *ring_moved(const void *at, int64_t elements, size_t bytes)
{
    return at ? (char *)at + elements * (int64_t)bytes : NULL;
}

bool ring_backward(sb_node *node);

/* The bias of a node, or NULL. */
sb_tensor *ring_bias_of(const sb_node *node);

#endif
