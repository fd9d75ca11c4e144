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
#include "ops/runs.h"
#include "ops/slice.h"
#include <string.h>

/* Options of the node. */
struct ring_call {
    struct attention a; /* of this rank's queries; its mask refers to the unsharded sequence */
    int64_t Lq, Lk;     /* of the unsharded sequence */
    bool heads_first;
    size_t element; /* bytes */
    sb_communicator *ring;
    int rank, ranks; /* in it */
};

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

static size_t ring_key_bytes(const struct ring_call *c, int64_t L)
{
    return (size_t)(c->a.B * L * c->a.G * c->a.D) * c->element;
}

static size_t ring_block_bytes(const struct ring_call *c, int64_t L)
{
    return (size_t)(c->a.B * L * c->a.G * (c->a.D + c->a.Dv)) * c->element;
}

/* Two blocks, each large enough for any rank. */
static sb_tensor *ring_blocks_new(const struct ring_call *c, const sb_tensor *like)
{
    int64_t most = 0;
    struct run run[2];
    for (int rank = 0; rank < c->ranks; rank++) {
        const int64_t L = ring_runs_of(c, c->Lk, rank, run);
        most = L > most ? L : most;
    }
    const int64_t elements = c->a.B * most * c->a.G * (c->a.D + c->a.Dv);
    return tensor_new("attention", like->device, like->dtype, SB_SHAPE(2, elements));
}

static char *ring_block_at(const sb_tensor *blocks, int step)
{
    const size_t bytes = tensor_bytes(blocks) / 2;
    return (char *)blocks->data + (step % 2 ? bytes : 0);
}

/* Sends the block of `step` to the next rank and receives the block of the next step. */
static sb_exchange *ring_start(const struct ring_call *c, const sb_tensor *blocks, int step)
{
    struct run run[2];
    const int64_t L = ring_runs_of(c, c->Lk, ring_owner_at(c, step), run);
    const int64_t next = ring_runs_of(c, c->Lk, ring_owner_at(c, step + 1), run);
    const int after = (c->rank + 1) % c->ranks, before = (c->rank + c->ranks - 1) % c->ranks;
    return sb_exchange_start(c->ring, after, ring_block_at(blocks, step), ring_block_bytes(c, L),
                             before, ring_block_at(blocks, step + 1), ring_block_bytes(c, next));
}

/* Copies this rank's keys and values into a block. */
static void ring_pack(const struct ring_call *c, const void *keys, const void *values, char *block)
{
    const size_t k = ring_key_bytes(c, c->a.Lk), all = ring_block_bytes(c, c->a.Lk);
    memcpy(block, keys, k);
    memcpy(block + k, values, all - k);
}

/* ---- A part: a run of queries with a run of keys ---- */

/* The part whose keys are in a block of L positions. */
static struct attention ring_part_of(const struct ring_call *c, const struct run *q,
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

static void *ring_moved(const struct ring_call *c, const void *at, int64_t elements)
{
    return at ? (char *)at + elements * (int64_t)c->element : NULL;
}

/* Where the part begins in the bias, and in its gradient. */
static void *ring_bias_at(const struct ring_call *c, const void *bias, const struct run *q,
                          const struct run *k)
{
    return ring_moved(c, bias, q->here * c->a.bias[2] + k->first * c->a.bias[3]);
}

/* The statistics of a run of queries are contiguous. */
static void *ring_stats_at(const struct ring_call *c, const sb_tensor *stats, const struct run *q)
{
    return ring_moved(c, stats->data, 2 * c->a.B * c->a.H * q->here);
}

/* ---- Forward ---- */

static bool ring_forward_block(const sb_node *node, const struct attention_tiled *f, int step,
                               const char *block)
{
    const struct ring_call *c = sb_node_options(node);
    const struct attention_kernels *kernels = kernel_row(&attention_rows, node->out[0]);
    struct run q[2], k[2];
    ring_runs_of(c, c->Lq, c->rank, q);
    const int64_t L = ring_runs_of(c, c->Lk, ring_owner_at(c, step), k);
    const char *values = block + ring_key_bytes(c, L);
    bool ok = true;
    for (int n = 0; ok && n < 4; n++) {
        const struct run *query = &q[n / 2], *key = &k[n % 2];
        const struct attention part = ring_part_of(c, query, key, L);
        struct attention_tiled of = {.q = ring_moved(c, f->q, query->here * part.q.row),
                                     .k = ring_moved(c, block, key->here * part.k.row),
                                     .v = ring_moved(c, values, key->here * part.v.row),
                                     .bias = ring_bias_at(c, f->bias, query, key),
                                     .stats = ring_stats_at(c, node->saved[0], query),
                                     .y = ring_moved(c, f->y, query->here * part.y.row),
                                     .begun = step > 0 || n % 2 > 0,
                                     .goes_on = step + 1 < c->ranks || n % 2 == 0};
        ok = part.Lq == 0 || kernels->tiled(&part, &of) ||
             sb_fail("attention: out of memory for tiles");
    }
    return ok;
}

static bool ring_forward(const sb_node *node, const struct attention_tiled *f)
{
    const struct ring_call *c = sb_node_options(node);
    sb_tensor *blocks = ring_blocks_new(c, node->in[0]);
    bool ok = blocks != NULL;
    if (ok)
        ring_pack(c, f->k, f->v, ring_block_at(blocks, 0));
    for (int step = 0; ok && step < c->ranks; step++) {
        const bool last = step + 1 == c->ranks;
        sb_exchange *coming = last ? NULL : ring_start(c, blocks, step);
        ok = (last || coming) && ring_forward_block(node, f, step, ring_block_at(blocks, step));
        ok = (!coming || sb_exchange_finish(coming)) && ok;
    }
    sb_tensor_release(blocks);
    return ok;
}

/* ---- Backward ---- */

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

/* Adds to the block's gradients, and to those of the queries and the bias. */
static bool ring_backward_block(const sb_node *node, const struct attention_tiled_backward *all,
                                int step, const char *block, char *gradients)
{
    const struct ring_call *c = sb_node_options(node);
    struct run q[2], k[2];
    ring_runs_of(c, c->Lq, c->rank, q);
    const int64_t L = ring_runs_of(c, c->Lk, ring_owner_at(c, step), k);
    const size_t values = ring_key_bytes(c, L);
    bool ok = true;
    for (int n = 0; ok && n < 4; n++) {
        const struct run *query = &q[n / 2], *key = &k[n % 2];
        const struct attention part = ring_part_of(c, query, key, L);
        const int64_t i = query->here * part.q.row, o = query->here * part.y.row;
        const int64_t j = key->here * part.k.row, e = key->here * part.v.row;
        struct attention_tiled_backward g = {
            .q = ring_moved(c, all->q, i),
            .k = ring_moved(c, block, j),
            .v = ring_moved(c, block + values, e),
            .bias = ring_bias_at(c, all->bias, query, key),
            .stats = ring_stats_at(c, node->saved[0], query),
            .y = ring_moved(c, all->y, o),
            .dy = ring_moved(c, all->dy, o),
            .part = true,
            .dq = {ring_moved(c, all->dq.data, i), false},
            .dk = {all->dk.data ? ring_moved(c, gradients, j) : NULL, false},
            .dv = {all->dv.data ? ring_moved(c, gradients + values, e) : NULL, false},
            .dbias = {ring_bias_at(c, all->dbias.data, query, key), false},
        };
        ok = part.Lq == 0 || part.Lk == 0 || ring_backward_part(&part, &g, node->out[0]);
    }
    return ok;
}

/* Adds a gradient to dx of input i, or writes it when dx is fresh. */
static bool ring_settle_one(const sb_node *node, int i, bool fresh, const void *gradient)
{
    const sb_tensor *dx = sb_node_dx(node, i);
    const struct slice_kernels *kernels = dx ? kernel_row(&slice_rows, dx) : NULL;
    const struct runs all = {1, dx ? tensor_size(dx) : 0, 0, 0};
    if (!dx)
        return true;
    return kernels && (fresh ? kernels->copy(sb_dtype_bytes(dx->dtype), all, gradient, dx->data)
                             : kernels->add(all, gradient, dx->data));
}

/* Stores dk and dv of this rank's keys: first its own part, then the other ranks' parts. */
static bool ring_settle(const sb_node *node, bool first, const char *gradients)
{
    const struct ring_call *c = sb_node_options(node);
    return ring_settle_one(node, 1, first && sb_node_fresh(node, 1), gradients) &&
           ring_settle_one(node, 2, first && sb_node_fresh(node, 2),
                           gradients + ring_key_bytes(c, c->a.Lk));
}

/* Adds the gradients of one step. The block of step 1 starts at zero on this rank. */
static bool ring_add_step(const sb_node *node, const struct attention_tiled_backward *g, int step,
                          const char *block, char *gradients)
{
    const struct ring_call *c = sb_node_options(node);
    struct run run[2];
    if (step <= 1)
        memset(gradients, 0,
               ring_block_bytes(c, ring_runs_of(c, c->Lk, ring_owner_at(c, step), run)));
    return ring_backward_block(node, g, step, block, gradients) &&
           (step > 0 || ring_settle(node, true, gradients));
}

static bool ring_go_round(const sb_node *node, const struct attention_tiled_backward *g,
                          const sb_tensor *blocks, const sb_tensor *gradients)
{
    const struct ring_call *c = sb_node_options(node);
    sb_exchange *home = NULL;
    bool ok = true;
    ring_pack(c, g->k, g->v, ring_block_at(blocks, 0));
    for (int step = 0; ok && step < c->ranks; step++) {
        const bool last = step + 1 == c->ranks;
        sb_exchange *coming = last ? NULL : ring_start(c, blocks, step);
        ok = (!home || sb_exchange_finish(home)) && (last || coming);
        home = NULL;
        ok = ok && ring_add_step(node, g, step, ring_block_at(blocks, step),
                                 ring_block_at(gradients, step));
        ok = (!coming || sb_exchange_finish(coming)) && ok;
        if (ok && step > 0)
            ok = (home = ring_start(c, gradients, step)) != NULL;
    }
    ok = (!home || sb_exchange_finish(home)) && ok;
    return ok && (c->ranks == 1 || ring_settle(node, false, ring_block_at(gradients, c->ranks)));
}

static bool ring_zero_fresh(const sb_node *node, int i)
{
    sb_tensor *dx = sb_node_dx(node, i);
    return !dx || !sb_node_fresh(node, i) || tensor_zero(dx);
}

static bool ring_backward(sb_node *node);

static const sb_operation operations[] = {
    {"attention", "q k v mask", ring_backward, true, false},
    {"attention", "q k v bias mask", ring_backward, true, false}};

static bool ring_backward(sb_node *node)
{
    const struct ring_call *c = sb_node_options(node);
    const sb_tensor *bias = node->operation == &operations[1] ? node->in[3] : NULL;
    struct attention_tiled_backward g = {.q = node->in[0]->data,
                                         .k = node->in[1]->data,
                                         .v = node->in[2]->data,
                                         .bias = bias ? bias->data : NULL,
                                         .y = node->out[0]->data,
                                         .dy = sb_node_dy(node, 0)->data,
                                         .dq = attention_gradient_of(node, 0),
                                         .dk = attention_gradient_of(node, 1),
                                         .dv = attention_gradient_of(node, 2)};
    if (bias)
        g.dbias = attention_gradient_of(node, 3);
    sb_tensor *blocks = ring_blocks_new(c, node->in[0]),
              *gradients = ring_blocks_new(c, node->in[0]);
    const bool ok = blocks && gradients && ring_zero_fresh(node, 0) &&
                    (!bias || ring_zero_fresh(node, 3)) &&
                    ring_go_round(node, &g, blocks, gradients);
    sb_tensor_release(blocks);
    sb_tensor_release(gradients);
    return ok;
}

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
    if (call->q->device->kind != DEVICE_CPU)
        return sb_fail("attention: sequence parallelism runs on the CPU only, not on %s",
                       call->q->device->name);
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
    const struct attention_tiled f = {.q = call->q->data,
                                      .k = call->k->data,
                                      .v = call->v->data,
                                      .bias = bias ? bias->data : NULL,
                                      .y = y->data};
    return ring_forward(node, &f) ? y : NULL;
}
