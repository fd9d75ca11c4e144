/*
 * Sequence parallelism: attention over a sequence that is distributed over ranks (Liu, Zaharia and
 * Abbeel 2023, "Ring Attention with Blockwise Transformers for Near-Infinite Context").
 *
 * Each rank holds zig-zag pieces of the queries, keys and values. Each rank's block of keys and
 * values travels round the ring; transfers overlap with computation:
 *
 *     rank 0   queries 0 and 7    keys 0 7   then 3 4   then 2 5   then 1 6       (4 ranks,
 *     rank 1   queries 1 and 6    keys 1 6   then 0 7   then 3 4   then 2 5        8 chunks)
 *
 * The online softmax continues from block to block as from tile to tile; at the end y is divided by
 * the sum. In backward, dk and dv of a block travel with it: each rank adds its part, until they
 * return to the owner of the block, which adds the part of its own queries. The order of additions
 * is fixed by the order of ranks, so the bits are reproducible. A rank holds its own piece, two
 * blocks of k and v, and in backward two blocks of dk and dv.
 */
#include "ops/attention_call.h"
#include "ops/call.h"
#include "ops/cast.h"
#include "ops/runs.h"
#include "tensor/communicator.h"
#include "tensor/failure.h"
#include "tensor/storage.h"
#include <string.h>

/* ---- Blocks that travel round the ring ---- */

/*
 * Blocks of elements that travel round a ring of ranks. A rank holds two of them: while it sends
 * one to the next rank, it receives the other from the rank before.
 *
 * Kernels use a block in the memory of their device, but ranks exchange host memory: few builds of
 * MPI can read a device's (Debian's Open MPI is not CUDA-aware). So on a device the two blocks are
 * in pinned host memory, and kernels use a copy of the present one.
 */
struct ring_blocks {
    sb_communicator *ring;
    int64_t most;     /* elements of a block */
    sb_tensor *block; /* for kernels: on the CPU both blocks, else the present one */
    char *staged;     /* both, in host memory; NULL on the CPU */
};

static size_t ring_blocks_bytes(const struct ring_blocks *b, int64_t elements)
{
    return (size_t)elements * sb_dtype_bytes(b->block->dtype);
}

static bool ring_blocks_stage(struct ring_blocks *b)
{
    const uint64_t failures = failure_count();
    b->staged = pool_take(b->block->device->staging, ring_blocks_bytes(b, 2 * b->most));
    if (!b->staged && failure_count() == failures)
        sb_fail("attention: out of memory for blocks of %lld elements", (long long)b->most);
    return b->staged != NULL;
}

/* Makes room for blocks of at most `most` elements. Free it after a failure too. */
static bool ring_blocks_new(struct ring_blocks *b, sb_communicator *ring, const sb_device *device,
                            sb_dtype dtype, int64_t most)
{
    const bool staged = device->kind != DEVICE_CPU;
    *b = (struct ring_blocks){.ring = ring, .most = most};
    b->block = tensor_new("attention", device, dtype, SB_SHAPE(staged ? 1 : 2, most));
    return b->block && (!staged || ring_blocks_stage(b));
}

static void ring_blocks_free(struct ring_blocks *b)
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

/* Where kernels find the block of a step, from this element on. */
static char *ring_blocks_at(const struct ring_blocks *b, int step, int64_t element)
{
    return tensor_element(b->block, ring_blocks_index(b, step, element));
}

/* The same as a tensor of `count` elements, to be released. */
static sb_tensor *ring_blocks_part(const struct ring_blocks *b, int step, int64_t element,
                                   int64_t count)
{
    return tensor_view("attention", b->block, ring_blocks_index(b, step, element), 1, &count);
}

/* What ranks exchange. */
static char *ring_blocks_host(const struct ring_blocks *b, int step)
{
    return b->staged ? b->staged + ring_blocks_bytes(b, step % 2 * b->most)
                     : ring_blocks_at(b, step, 0);
}

/* Copies `count` elements that kernels have written from their device to host memory. */
static bool ring_blocks_share(const struct ring_blocks *b, int step, int64_t count)
{
    return !b->staged || b->block->device->download(ring_blocks_host(b, step), b->block->data,
                                                    ring_blocks_bytes(b, count));
}

/* Starts to send `count` elements of the block of a step, and to receive `next` elements as the
   block of the next step. */
static sb_exchange *ring_blocks_start(const struct ring_blocks *b, int step, int64_t count,
                                      int64_t next)
{
    const int rank = sb_communicator_rank(b->ring), ranks = sb_communicator_size(b->ring);
    return sb_exchange_start(b->ring, (rank + 1) % ranks, ring_blocks_host(b, step),
                             ring_blocks_bytes(b, count), (rank + ranks - 1) % ranks,
                             ring_blocks_host(b, step + 1), ring_blocks_bytes(b, next));
}

/* Waits until the block of the next step, of `next` elements, is there for kernels. Its upload must
   have ended before another block comes into the same host memory. */
static bool ring_blocks_finish(const struct ring_blocks *b, sb_exchange *exchange, int step,
                               int64_t next)
{
    const sb_device *device = b->block->device;
    return sb_exchange_finish(exchange) &&
           (!b->staged || (device->upload(b->block->data, ring_blocks_host(b, step + 1),
                                          ring_blocks_bytes(b, next)) &&
                           device->synchronize()));
}

/* ---- What forward and backward share ---- */

/* Options of the node. */
struct ring_call {
    struct attention a; /* of this rank's queries; its mask refers to the unsharded sequence */
    int64_t Lq, Lk;     /* of the unsharded sequence */
    bool heads_first;
    size_t element, sum; /* bytes of an element, and of a sum */
    sb_communicator *ring;
    int rank, ranks; /* in it */
};

/* A part: a run of queries with a run of keys. */
struct ring_part {
    struct attention a;
    int64_t q, y;  /* where its queries begin in q, and in y */
    int64_t k, v;  /* where its keys begin in the block of a step */
    int64_t bias;  /* where it begins in the bias */
    int64_t stats; /* where its queries begin in the statistics */
};

/* at[elements], of a size in bytes; NULL of NULL. */
static void *ring_moved(const void *at, int64_t elements, size_t bytes)
{
    return at ? (char *)at + elements * (int64_t)bytes : NULL;
}

/* Finds the runs of positions that a rank holds; returns their number of positions. */
static int64_t ring_runs_of(const struct ring_call *c, int64_t length, int rank, struct run run[2])
{
    int64_t here;
    const sb_piece piece = sb_piece_zigzag(length, c->ranks, rank, &here);
    piece_runs(&piece, here, run);
    return here;
}

/* The rank whose keys are processed in a step. */
static int ring_owner_at(const struct ring_call *c, int step)
{
    return (c->rank + c->ranks - step % c->ranks) % c->ranks;
}

/* ---- Blocks: k followed by v of a rank, or dk followed by dv ---- */

static int64_t ring_keys_at(const struct ring_call *c, int step)
{
    struct run run[2];
    return ring_runs_of(c, c->Lk, ring_owner_at(c, step), run);
}

/* The elements of the block of a step: k followed by v of its owner, or dk followed by dv. */
static int64_t ring_key_elements(const struct ring_call *c, int step)
{
    return c->a.B * ring_keys_at(c, step) * c->a.G * c->a.D;
}

static int64_t ring_block_elements(const struct ring_call *c, int step)
{
    return c->a.B * ring_keys_at(c, step) * c->a.G * (c->a.D + c->a.Dv);
}

/* Makes room for blocks of any rank. */
static bool ring_open_blocks(const struct ring_call *c, const sb_device *device, sb_dtype dtype,
                             struct ring_blocks *blocks)
{
    int64_t most = 0;
    for (int step = 0; step < c->ranks; step++) {
        const int64_t elements = ring_block_elements(c, step);
        most = elements > most ? elements : most;
    }
    return ring_blocks_new(blocks, c->ring, device, dtype, most);
}

/* Copies this rank's keys and values into the block of step 0. */
static bool ring_pack(const struct ring_call *c, const void *k, const void *v,
                      struct ring_blocks *blocks)
{
    const sb_device *device = blocks->block->device;
    const int64_t keys = ring_key_elements(c, 0), all = ring_block_elements(c, 0);
    return device->copy(ring_blocks_at(blocks, 0, 0), k, (size_t)keys * c->element) &&
           device->copy(ring_blocks_at(blocks, 0, keys), v, (size_t)(all - keys) * c->element) &&
           ring_blocks_share(blocks, 0, all);
}

/* ---- Parts ---- */

/* The part whose keys are in a block of L positions. */
static struct attention ring_attention_of(const struct ring_call *c, const struct run *q,
                                          const struct run *k, int64_t L)
{
    struct attention part = c->a;
    part.Lq = q->count;
    part.Lk = k->count;
    part.k = attention_strides_of(c->heads_first, part.G, L, part.D);
    part.v = attention_strides_of(c->heads_first, part.G, L, part.Dv);
    part.mask = mask_part(&c->a.mask, q->here, q->first, k->first);
    struct place *place = &part.dropout.place;
    place->flat = false;
    place->axis[2] = (struct place_axis){q->count, c->Lq, q->first, q->count, 0};
    place->axis[3] = (struct place_axis){k->count, c->Lk, k->first, k->count, 0};
    return part;
}

/* Part n = 0..3 of a step. */
static struct ring_part ring_part_at(const struct ring_call *c, int step, int n)
{
    struct run queries[2], keys[2];
    ring_runs_of(c, c->Lq, c->rank, queries);
    const int64_t L = ring_runs_of(c, c->Lk, ring_owner_at(c, step), keys);
    const struct run *q = &queries[n / 2], *k = &keys[n % 2];
    const struct attention a = ring_attention_of(c, q, k, L);
    return (struct ring_part){
        .a = a,
        .q = q->here * a.q.row,
        .y = q->here * a.y.row,
        .k = k->here * a.k.row,
        .v = ring_key_elements(c, step) + k->here * a.v.row,
        .bias = q->here * a.bias[2] + k->first * a.bias[3],
        .stats = 2 * a.B * a.H * q->here, /* those of a run are contiguous */
    };
}

/* ---- Forward ---- */

static bool ring_forward_step(const sb_node *node, const struct attention_tiled *f, int step,
                              const struct ring_blocks *blocks)
{
    const struct ring_call *c = sb_node_options(node);
    const struct attention_kernels *kernels = kernel_row(&attention_rows, node->out[0]);
    bool ok = kernels != NULL;
    for (int n = 0; ok && n < 4; n++) {
        const struct ring_part part = ring_part_at(c, step, n);
        struct attention_tiled of = {.q = ring_moved(f->q, part.q, c->element),
                                     .k = ring_blocks_at(blocks, step, part.k),
                                     .v = ring_blocks_at(blocks, step, part.v),
                                     .bias = ring_moved(f->bias, part.bias, c->element),
                                     .stats = ring_moved(f->stats, part.stats, c->sum),
                                     .y = ring_moved(f->y, part.y, c->element),
                                     .sums = ring_moved(f->sums, part.y, c->sum),
                                     .begun = step > 0 || n % 2 > 0,
                                     .goes_on = step + 1 < c->ranks || n % 2 == 0};
        ok = part.a.Lq == 0 || kernels->tiled(&part.a, &of) ||
             sb_fail("attention: out of memory for tiles");
    }
    return ok;
}

/* The kernels of a step run while the block of the next step comes. */
static bool ring_forward_round(const sb_node *node, const struct attention_tiled *f,
                               struct ring_blocks *blocks)
{
    const struct ring_call *c = sb_node_options(node);
    bool ok = ring_pack(c, f->k, f->v, blocks);
    for (int step = 0; ok && step < c->ranks; step++) {
        const bool last = step + 1 == c->ranks;
        const int64_t count = ring_block_elements(c, step), next = ring_block_elements(c, step + 1);
        sb_exchange *coming = last ? NULL : ring_blocks_start(blocks, step, count, next);
        ok = (last || coming) && ring_forward_step(node, f, step, blocks);
        ok = (!coming || ring_blocks_finish(blocks, coming, step, next)) && ok;
    }
    return ok;
}

static bool ring_forward(const sb_node *node, struct attention_tiled *f)
{
    struct ring_blocks blocks;
    sb_tensor *y = node->out[0], *sums = call_sums("attention", y); /* y before the division */
    bool ok = ring_open_blocks(sb_node_options(node), y->device, y->dtype, &blocks) && sums;
    if (ok) {
        f->sums = sums->data;
        ok = ring_forward_round(node, f, &blocks);
    }
    ring_blocks_free(&blocks);
    sb_tensor_release(sums);
    return ok;
}

/*
 * ---- Backward ----
 *
 * Gradients are added in the dtype of sums: directly to dx, or to a tensor of that dtype, which is
 * rounded once at the end.
 */

/* What the parts add to: dx of input i, zeroed if it is fresh, or a tensor of zeros. NULL when no
   gradient is needed. */
static bool ring_open_gradient(const sb_node *node, int i, sb_tensor **sum)
{
    sb_tensor *dx = sb_node_dx(node, i);
    *sum = NULL;
    if (!dx)
        return true;
    *sum = call_sums("attention", dx);
    return *sum && (!sb_node_fresh(node, i) || tensor_zero(dx)) &&
           (*sum == dx || tensor_zero(*sum));
}

static bool ring_close_gradient(const sb_node *node, int i, const sb_tensor *sum)
{
    sb_tensor *dx = sum ? sb_node_dx(node, i) : NULL;
    return sum == dx || cast_elements(false, tensor_size(dx), sum, dx);
}

/* Keys are not split into slabs for threads: slabs need memory that grows with the length. */
static bool ring_backward_part(const struct attention *part, struct attention_tiled_backward *g,
                               const sb_tensor *y)
{
    const struct attention_kernels *kernels = kernel_row(&attention_rows, y);
    sb_tensor *delta = tensor_new("attention", y->device, dtype_of_sums(y->dtype),
                                  SB_SHAPE(part->B, part->H, part->Lq));
    if (delta)
        g->delta = delta->data;
    g->slabs = 1;
    const bool ok = delta && (kernels->tiled_backward(part, g) ||
                              sb_fail("attention: out of memory for tiles"));
    sb_tensor_release(delta);
    return ok;
}

static struct attention_gradient ring_gradient(const void *at, int64_t elements, size_t bytes)
{
    return (struct attention_gradient){ring_moved(at, elements, bytes), false};
}

/* Adds to the block's gradients, and to those of the queries and the bias. */
static bool ring_backward_step(const sb_node *node, const struct attention_tiled_backward *all,
                               int step, const struct ring_blocks *blocks,
                               const struct ring_blocks *gradients)
{
    const struct ring_call *c = sb_node_options(node);
    bool ok = true;
    for (int n = 0; ok && n < 4; n++) {
        const struct ring_part part = ring_part_at(c, step, n);
        char *dk = all->dk.data ? ring_blocks_at(gradients, step, part.k) : NULL;
        char *dv = all->dv.data ? ring_blocks_at(gradients, step, part.v) : NULL;
        struct attention_tiled_backward g = {
            .q = ring_moved(all->q, part.q, c->element),
            .k = ring_blocks_at(blocks, step, part.k),
            .v = ring_blocks_at(blocks, step, part.v),
            .bias = ring_moved(all->bias, part.bias, c->element),
            .stats = ring_moved(all->stats, part.stats, c->sum),
            .y = ring_moved(all->y, part.y, c->element),
            .dy = ring_moved(all->dy, part.y, c->element),
            .part = true,
            .dq = ring_gradient(all->dq.data, part.q, c->sum),
            .dk = {dk, false},
            .dv = {dv, false},
            .dbias = ring_gradient(all->dbias.data, part.bias, c->sum),
        };
        ok = part.a.Lq == 0 || part.a.Lk == 0 || ring_backward_part(&part.a, &g, node->out[0]);
    }
    return ok;
}

/* ---- Blocks of dk and dv ---- */

/* Adds a gradient of this rank's keys to dx of input i, or writes it when dx is fresh. */
static bool ring_settle_one(const sb_node *node, int i, bool fresh, int step, int64_t element,
                            const struct ring_blocks *gradients)
{
    sb_tensor *dx = sb_node_dx(node, i);
    if (!dx)
        return true;
    sb_tensor *sum = ring_blocks_part(gradients, step, element, tensor_size(dx));
    const bool ok = sum && cast_elements(fresh, tensor_size(dx), sum, dx);
    sb_tensor_release(sum);
    return ok;
}

/* Stores dk and dv of this rank's keys: in step 0 its own part, at last the other ranks' parts. */
static bool ring_settle(const sb_node *node, int step, const struct ring_blocks *gradients)
{
    const struct ring_call *c = sb_node_options(node);
    const bool first = step == 0;
    return ring_settle_one(node, 1, first && sb_node_fresh(node, 1), step, 0, gradients) &&
           ring_settle_one(node, 2, first && sb_node_fresh(node, 2), step, ring_key_elements(c, 0),
                           gradients);
}

/* Adds the gradients of one step. The block of step 1 starts at zero on this rank. */
static bool ring_add_step(const sb_node *node, const struct attention_tiled_backward *g, int step,
                          const struct ring_blocks *blocks, const struct ring_blocks *gradients)
{
    const struct ring_call *c = sb_node_options(node);
    const int64_t count = ring_block_elements(c, step);
    const sb_device *device = gradients->block->device;
    if (step <= 1 && !device->zero(ring_blocks_at(gradients, step, 0), (size_t)count * c->sum))
        return false;
    return ring_backward_step(node, g, step, blocks, gradients) &&
           (step > 0 ? ring_blocks_share(gradients, step, count)
                     : ring_settle(node, step, gradients));
}

/* dk and dv of a block follow its k and v, one step behind. */
static bool ring_backward_round(const sb_node *node, const struct attention_tiled_backward *g,
                                struct ring_blocks *blocks, struct ring_blocks *gradients)
{
    const struct ring_call *c = sb_node_options(node);
    sb_exchange *home = NULL;
    bool ok = ring_pack(c, g->k, g->v, blocks);
    for (int step = 0; ok && step < c->ranks; step++) {
        const bool last = step + 1 == c->ranks;
        const int64_t count = ring_block_elements(c, step), next = ring_block_elements(c, step + 1);
        sb_exchange *coming = last ? NULL : ring_blocks_start(blocks, step, count, next);
        ok = (!home || ring_blocks_finish(gradients, home, step - 1, count)) && (last || coming);
        home = NULL;
        ok = ok && ring_add_step(node, g, step, blocks, gradients);
        ok = (!coming || ring_blocks_finish(blocks, coming, step, next)) && ok;
        if (ok && step > 0)
            ok = (home = ring_blocks_start(gradients, step, count, next)) != NULL;
    }
    if (home)
        ok = ring_blocks_finish(gradients, home, c->ranks - 1, ring_block_elements(c, 0)) && ok;
    return ok && (c->ranks == 1 || ring_settle(node, c->ranks, gradients));
}

static bool ring_backward_into(const sb_node *node, const sb_tensor *dq, const sb_tensor *dbias)
{
    const struct ring_call *c = sb_node_options(node);
    const sb_tensor *y = node->out[0];
    struct attention_tiled_backward g = attention_tiled_gradients(node);
    g.dq = (struct attention_gradient){dq ? dq->data : NULL, false};
    g.dbias = (struct attention_gradient){dbias ? dbias->data : NULL, false};
    struct ring_blocks blocks, gradients;
    const bool opened = ring_open_blocks(c, y->device, y->dtype, &blocks);
    const bool ok = ring_open_blocks(c, y->device, dtype_of_sums(y->dtype), &gradients) && opened &&
                    ring_backward_round(node, &g, &blocks, &gradients);
    ring_blocks_free(&blocks);
    ring_blocks_free(&gradients);
    return ok;
}

static bool ring_backward(sb_node *node)
{
    sb_tensor *dq, *dbias = NULL;
    const bool ok = ring_open_gradient(node, 0, &dq) &&
                    (!attention_bias_of(node) || ring_open_gradient(node, 3, &dbias)) &&
                    ring_backward_into(node, dq, dbias) && ring_close_gradient(node, 0, dq) &&
                    ring_close_gradient(node, 3, dbias);
    sb_tensor_release(dq);
    sb_tensor_release(dbias);
    return ok;
}

static const sb_operation operations[] = {
    {"attention", "q k v mask", ring_backward, true, false},
    {"attention", "q k v bias mask", ring_backward, true, false}};

/* ---- The call ---- */

/* Checks that this rank holds its zig-zag piece of a sequence; finds the unsharded length. */
static bool ring_check_piece(const struct ring_call *c, const char *what, const sb_piece *piece,
                             int64_t here, int64_t *length)
{
    int64_t count;
    const sb_piece own = sb_piece_zigzag(piece->of, c->ranks, c->rank, &count);
    *length = piece->of;
    return (count == here && memcmp(&own, piece, sizeof own) == 0) ||
           sb_fail("attention: %lld %s are not rank %d's zig-zag piece of %lld on %d ranks",
                   (long long)here, what, c->rank, (long long)piece->of, c->ranks);
}

/* Checks operands and options for sequence parallelism; fails when they are not supported. */
static bool ring_check_call(const struct attention_call *call, struct ring_call *c)
{
    const sb_attention_options *o = &call->options;
    const sb_partition *partition = context_open()->partition;
    if (o->weights)
        return sb_fail("attention: weights are not available with sequence parallelism");
    return ring_check_piece(c, "queries", partition_piece(partition, o->queries), c->a.Lq,
                            &c->Lq) &&
           ring_check_piece(c, "keys", partition_piece(partition, o->keys), c->a.Lk, &c->Lk);
}

sb_tensor *attention_ring(struct attention_call *call)
{
    sb_communicator *ring = context_open()->ring;
    if (call->q->dtype == SB_DUAL)
        return sb_fail("attention: dual numbers are not available with sequence parallelism");
    struct ring_call c = {.a = call->a,
                          .heads_first = call->heads_first,
                          .element = sb_dtype_bytes(call->q->dtype),
                          .sum = sb_dtype_bytes(dtype_of_sums(call->q->dtype)),
                          .ring = ring,
                          .rank = sb_communicator_rank(ring),
                          .ranks = sb_communicator_size(ring)};
    if (!ring_check_call(call, &c))
        return NULL;
    call->whole.Lq = c.Lq;
    call->whole.Lk = c.Lk;
    sb_node *node = attention_tiled_node(call, operations, &c, sizeof c);
    if (!node)
        return NULL;
    struct attention_tiled f = attention_tiled_forward(node);
    return ring_forward(node, &f) ? node->out[0] : NULL;
}
