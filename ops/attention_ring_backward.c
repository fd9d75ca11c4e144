/* The backward of ring attention (ops/attention_ring.c). Gradients are added in the dtype of sums:
   directly to dx, or to a tensor of that dtype, which is rounded once at the end. */
#include "ops/attention_ring.h"
#include "ops/cast.h"

/* ---- Gradients of this rank: of the queries and of the bias ---- */

/* What the parts add to: dx of input i, zeroed if it is fresh, or a tensor of zeros. NULL when no
   gradient is needed. */
static bool ring_open_gradient(const sb_node *node, int i, sb_tensor **sum)
{
    sb_tensor *dx = sb_node_dx(node, i);
    *sum = NULL;
    if (!dx)
        return true;
    const sb_dtype sums = dtype_of_sums(dx->dtype);
    *sum = sums == dx->dtype ? sb_tensor_retain(dx)
                             : tensor_new("attention", dx->device, sums, dx->rank, dx->dim);
    return *sum && (!sb_node_fresh(node, i) || tensor_zero(dx)) &&
           (*sum == dx || tensor_zero(*sum));
}

static bool ring_close_gradient(const sb_node *node, int i, const sb_tensor *sum)
{
    sb_tensor *dx = sum ? sb_node_dx(node, i) : NULL;
    return sum == dx || cast_elements(false, tensor_size(dx), sum, dx);
}

/* ---- Parts ---- */

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

/* ---- The node ---- */

static bool ring_backward_into(const sb_node *node, const sb_tensor *dq, const sb_tensor *dbias)
{
    const struct ring_call *c = sb_node_options(node);
    const sb_tensor *y = node->out[0], *bias = ring_bias_of(node);
    const struct attention_tiled_backward g = {.q = node->in[0]->data,
                                               .k = node->in[1]->data,
                                               .v = node->in[2]->data,
                                               .bias = bias ? bias->data : NULL,
                                               .stats = node->saved[0]->data,
                                               .y = y->data,
                                               .dy = sb_node_dy(node, 0)->data,
                                               .dq.data = dq ? dq->data : NULL,
                                               .dk = attention_gradient_of(node, 1),
                                               .dv = attention_gradient_of(node, 2),
                                               .dbias.data = dbias ? dbias->data : NULL};
    struct ring_blocks blocks, gradients;
    const bool opened = ring_open_blocks(c, y->device, y->dtype, &blocks);
    const bool ok = ring_open_blocks(c, y->device, dtype_of_sums(y->dtype), &gradients) && opened &&
                    ring_backward_round(node, &g, &blocks, &gradients);
    ring_blocks_free(&blocks);
    ring_blocks_free(&gradients);
    return ok;
}

bool ring_backward(sb_node *node)
{
    sb_tensor *dq, *dbias = NULL;
    const bool ok = ring_open_gradient(node, 0, &dq) &&
                    (!ring_bias_of(node) || ring_open_gradient(node, 3, &dbias)) &&
                    ring_backward_into(node, dq, dbias) && ring_close_gradient(node, 0, dq) &&
                    ring_close_gradient(node, 3, dbias);
    sb_tensor_release(dq);
    sb_tensor_release(dbias);
    return ok;
}
