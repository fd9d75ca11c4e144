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
#include "ops/attention_ring.h"
#include <string.h>

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

int64_t ring_key_elements(const struct ring_call *c, int step)
{
    return c->a.B * ring_keys_at(c, step) * c->a.G * c->a.D;
}

int64_t ring_block_elements(const struct ring_call *c, int step)
{
    return c->a.B * ring_keys_at(c, step) * c->a.G * (c->a.D + c->a.Dv);
}

bool ring_open_blocks(const struct ring_call *c, const sb_device *device, sb_dtype dtype,
                      struct ring_blocks *blocks)
{
    int64_t most = 0;
    for (int step = 0; step < c->ranks; step++) {
        const int64_t elements = ring_block_elements(c, step);
        most = elements > most ? elements : most;
    }
    return ring_blocks_new(blocks, "attention", c->ring, device, dtype, most);
}

bool ring_pack(const struct ring_call *c, const void *k, const void *v, struct ring_blocks *blocks)
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

struct ring_part ring_part_at(const struct ring_call *c, int step, int n)
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

/* y before the division: y itself, or a tensor of sums. The caller releases it. */
static sb_tensor *ring_sums_of(sb_tensor *y)
{
    const sb_dtype sums = dtype_of_sums(y->dtype);
    return sums == y->dtype ? sb_tensor_retain(y)
                            : tensor_new("attention", y->device, sums, y->rank, y->dim);
}

static bool ring_forward(const sb_node *node, struct attention_tiled *f)
{
    struct ring_blocks blocks;
    sb_tensor *y = node->out[0], *sums = ring_sums_of(y);
    bool ok = ring_open_blocks(sb_node_options(node), y->device, y->dtype, &blocks) && sums;
    if (ok) {
        f->sums = sums->data;
        ok = ring_forward_round(node, f, &blocks);
    }
    ring_blocks_free(&blocks);
    sb_tensor_release(sums);
    return ok;
}

/* ---- The call ---- */

static const sb_operation operations[] = {
    {"attention", "q k v mask", ring_backward, true, false},
    {"attention", "q k v bias mask", ring_backward, true, false}};

sb_tensor *ring_bias_of(const sb_node *node)
{
    return node->operation == &operations[1] ? node->in[3] : NULL;
}

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
    sb_node *node = attention_call_node(call, operations, 3, &c, sizeof c);
    sb_tensor *y = node ? attention_call_output(call, node) : NULL;
    if (!y)
        return NULL;
    const sb_dtype sums = dtype_of_sums(y->dtype);
    const int64_t rows[4] = {c.a.B, c.a.H, c.a.Lq, 2};
    if (!sb_node_save(node, tensor_new("attention", y->device, sums, 4, rows)) ||
        !attention_call_dropout(call, node))
        return NULL;
    const sb_tensor *bias = call->options.bias;
    struct attention_tiled f = {.q = call->q->data,
                                .k = call->k->data,
                                .v = call->v->data,
                                .bias = bias ? bias->data : NULL,
                                .stats = node->saved[0]->data,
                                .y = y->data};
    return ring_forward(node, &f) ? y : NULL;
}
