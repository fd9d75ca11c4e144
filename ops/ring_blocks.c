#include "ops/ring_blocks.h"
#include "tensor/failure.h"

static size_t ring_blocks_bytes(const struct ring_blocks *b, int64_t elements)
{
    return (size_t)elements * sb_dtype_bytes(b->block->dtype);
}

static bool ring_blocks_stage(struct ring_blocks *b)
{
    const uint64_t failures = failure_count();
    b->staged = pool_take(b->block->device->staging, ring_blocks_bytes(b, 2 * b->most));
    if (!b->staged && failure_count() == failures)
        sb_fail("%s: out of memory for blocks of %lld elements", b->who, (long long)b->most);
    return b->staged != NULL;
}

bool ring_blocks_new(struct ring_blocks *b, const char *who, sb_communicator *ring,
                     const sb_device *device, sb_dtype dtype, int64_t most)
{
    const bool staged = device->kind != DEVICE_CPU;
    *b = (struct ring_blocks){.ring = ring, .who = who, .most = most};
    b->block = tensor_new(who, device, dtype, SB_SHAPE(staged ? 1 : 2, most));
    return b->block && (!staged || ring_blocks_stage(b));
}

void ring_blocks_free(struct ring_blocks *b)
{
    if (b->staged)
        pool_give(b->block->device->staging, b->staged, ring_blocks_bytes(b, 2 * b->most));
    sb_tensor_release(b->block);
    *b = (struct ring_blocks){.most = 0};
}

/* The index of an element in `block`. */
static int64_t ring_blocks_index(const struct ring_blocks *b, int step, int64_t element)
{
    return (b->staged ? 0 : step % 2 * b->most) + element;
}

char *ring_blocks_at(const struct ring_blocks *b, int step, int64_t element)
{
    return (char *)b->block->data + ring_blocks_bytes(b, ring_blocks_index(b, step, element));
}

sb_tensor *ring_blocks_part(const struct ring_blocks *b, int step, int64_t element, int64_t count)
{
    return tensor_view(b->who, b->block, ring_blocks_index(b, step, element), 1, &count);
}

/* What ranks exchange. */
static char *ring_blocks_host(const struct ring_blocks *b, int step)
{
    return b->staged ? b->staged + ring_blocks_bytes(b, step % 2 * b->most)
                     : ring_blocks_at(b, step, 0);
}

bool ring_blocks_share(const struct ring_blocks *b, int step, int64_t count)
{
    return !b->staged || b->block->device->download(ring_blocks_host(b, step), b->block->data,
                                                    ring_blocks_bytes(b, count));
}

sb_exchange *ring_blocks_start(const struct ring_blocks *b, int step, int64_t count, int64_t next)
{
    const int rank = sb_communicator_rank(b->ring), ranks = sb_communicator_size(b->ring);
    return sb_exchange_start(b->ring, (rank + 1) % ranks, ring_blocks_host(b, step),
                             ring_blocks_bytes(b, count), (rank + ranks - 1) % ranks,
                             ring_blocks_host(b, step + 1), ring_blocks_bytes(b, next));
}

/* The upload must have ended before another block comes into the same host memory. */
bool ring_blocks_finish(const struct ring_blocks *b, sb_exchange *exchange, int step, int64_t next)
{
    const sb_device *device = b->block->device;
    return sb_exchange_finish(exchange) &&
           (!b->staged || (device->upload(b->block->data, ring_blocks_host(b, step + 1),
                                          ring_blocks_bytes(b, next)) &&
                           device->synchronize()));
}
