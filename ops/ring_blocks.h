/*
 * Blocks of elements that travel round a ring of ranks. A rank holds two of them: while it sends
 * one to the next rank, it receives the other from the rank before.
 *
 * Kernels use a block in the memory of their device, but ranks exchange host memory: few builds of
 * MPI can read a device's (Debian's Open MPI is not CUDA-aware). So on a device the two blocks are
 * in pinned host memory, and kernels use a copy of the present one.
 */
#ifndef SOFTBACK_OPS_RING_BLOCKS_H
#define SOFTBACK_OPS_RING_BLOCKS_H

#include "tensor/communicator.h"
#include "tensor/storage.h"

struct ring_blocks {
    sb_communicator *ring;
    const char *who;  /* for messages */
    int64_t most;     /* elements of a block */
    sb_tensor *block; /* for kernels: on the CPU both blocks, else the present one */
    char *staged;     /* both, in host memory; NULL on the CPU */
};

/* Makes room for blocks of at most `most` elements. Free it after a failure too. */
bool ring_blocks_new(struct ring_blocks *b, const char *who, sb_communicator *ring,
                     const sb_device *device, sb_dtype dtype, int64_t most);
void ring_blocks_free(struct ring_blocks *b);

/* Where kernels find the block of a step, from this element on. */
char *ring_blocks_at(const struct ring_blocks *b, int step, int64_t element);

/* The same as a tensor of `count` elements, to be released. */
sb_tensor *ring_blocks_part(const struct ring_blocks *b, int step, int64_t element, int64_t count);

/* Copies `count` elements that kernels have written from their device to host memory. */
bool ring_blocks_share(const struct ring_blocks *b, int step, int64_t count);

/* Starts to send `count` elements of the block of a step, and to receive `next` elements as the
   block of the next step. */
sb_exchange *ring_blocks_start(const struct ring_blocks *b, int step, int64_t count, int64_t next);

/* Waits until the block of the next step, of `next` elements, is there for kernels. */
bool ring_blocks_finish(const struct ring_blocks *b, sb_exchange *exchange, int step, int64_t next);

#endif
