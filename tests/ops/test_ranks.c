/* The operations of tensor parallelism, with threads as ranks. */
#include "tests/support/mailbox.h"
#include "tests/support/share.h"
#include "tests/support/test.h"
#include <stdio.h>

enum { RANKS = 3, IN = 4, HIDDEN = 6, OUT = 2 };

/* A layer y = tanh(x up') down' whose hidden units are split over ranks, after Shoeybi et al. 2019:
   the inputs of all ranks, and each rank's results. */
struct layer {
    sb_tensor *x, *up, *down; /* unsharded */
    bool passes[RANKS];
    sb_tensor *y[RANKS], *dx[RANKS], *dup[RANKS], *ddown[RANKS];
};

/* The part of one rank. */
struct part {
    sb_communicator *ranks;
    sb_tensor *up, *down;
};

static sb_tensor *run_part(void *context, sb_tensor *const x[])
{
    const struct part *part = context;
    sb_tensor *in = sb_to_ranks(x[0], part->ranks);
    sb_tensor *hidden = sb_tanh(sb_linear(in, part->up, NULL));
    sb_tensor *y = sb_from_ranks(sb_linear(hidden, part->down, NULL), part->ranks);
    return sb_add(sb_multiply(y, y), sb_sum(x[0], SB_ALL, false)); /* x is used twice */
}

static void need(bool ok)
{
    if (ok)
        return;
    fprintf(stderr, "%s\n", sb_error()); /* the other ranks would wait forever */
    abort();
}

static void run_rank(sb_communicator *c, void *context)
{
    struct layer *l = context;
    const int rank = sb_communicator_rank(c), ranks = sb_communicator_size(c);
    const int64_t here = HIDDEN / ranks;
    const sb_piece piece = {.of = HIDDEN, .first = rank * here};
    struct part part = {c, share_part(l->up, 0, &piece, here),
                        share_part(l->down, 1, &piece, here)};
    sb_tensor *x = share_part(l->x, 0, &(sb_piece){0}, l->x->dim[0]);
    l->passes[rank] = sb_gradcheck(run_part, &part, &x, 1, NULL, NULL);
    if (!l->passes[rank])
        fprintf(stderr, "rank %d of %d: %s\n", rank, ranks, sb_error());
    sb_tensor_clear_grad(x);
    sb_tensor_clear_grad(part.up);
    sb_tensor_clear_grad(part.down);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_keep(run_part(&part, &x));
    need(y && sb_backward(sb_sum(y, SB_ALL, false)));
    l->y[rank] = retained(y);
    l->dx[rank] = retained(sb_tensor_grad(x));
    l->dup[rank] = retained(sb_tensor_grad(part.up));
    l->ddown[rank] = retained(sb_tensor_grad(part.down));
    need(sb_tape_end(&tape));
}

static struct layer layer_new(void)
{
    return (struct layer){.x = test_leaf(SB_F64, 1, SB_SHAPE(5, IN)),
                          .up = test_leaf(SB_F64, 2, SB_SHAPE(HIDDEN, IN)),
                          .down = test_leaf(SB_F64, 3, SB_SHAPE(OUT, HIDDEN))};
}

CPU_TEST(ranks, a_sharded_layer_has_the_values_and_gradients_of_the_unsharded_one)
{
    for (int ranks = 1; ranks <= RANKS; ranks++) {
        struct layer whole = layer_new(), cut = layer_new();
        mailbox_run(1, run_rank, &whole);
        mailbox_run(ranks, run_rank, &cut);
        for (int rank = 0; rank < ranks; rank++) {
            const int64_t here = HIDDEN / ranks;
            const sb_piece piece = {.of = HIDDEN, .first = rank * here};
            sb_tensor *dup = share_part(whole.dup[0], 0, &piece, here);
            sb_tensor *ddown = share_part(whole.ddown[0], 1, &piece, here);
            cr_expect(cut.passes[rank], "the gradient check fails on rank %d of %d", rank, ranks);
            cr_expect(test_relative(cut.y[rank], whole.y[0]) <= 1e-14);
            cr_expect(test_relative(cut.dx[rank], whole.dx[0]) <= 1e-14);
            cr_expect(test_relative(cut.dup[rank], dup) <= 1e-14);
            cr_expect(test_relative(cut.ddown[rank], ddown) <= 1e-14);
            cr_expect(test_same_bits(cut.y[rank], cut.y[0]) &&
                          test_same_bits(cut.dx[rank], cut.dx[0]),
                      "rank %d of %d has different bits", rank, ranks);
        }
    }
}
