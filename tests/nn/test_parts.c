/* Distributed parameters and the norm of their gradients. Ranks are threads. */
#include "nn/clip.h"
#include "nn/parts.h"
#include "nn/transformer.h"
#include "tests/support/mailbox.h"
#include "tests/support/test.h"
#include <stdio.h>

enum { RANKS = 3, NUMBERS = 36 + 5 + 12 + 18 };

/* Parameters distributed along each axis, and one that is not distributed. */
static sb_parameters *set_new(sb_communicator *c)
{
    static const sb_initial xavier = {SB_INITIAL_XAVIER, 0}, normal = {SB_INITIAL_NORMAL, 2};
    sb_parameters *set = sb_parameters_of(SB_F64, 7);
    const bool ok = sb_parameters_add_cut(set, "rows", SB_SHAPE(6, 6), xavier, (sb_cut){c, 0}) &&
                    sb_parameters_add(set, "whole", SB_SHAPE(5), normal) &&
                    sb_parameters_add_cut(set, "columns", SB_SHAPE(2, 6), xavier, (sb_cut){c, 1}) &&
                    sb_parameters_add_cut(set, "middle", SB_SHAPE(2, 3, 3), normal, (sb_cut){c, 1});
    if (!ok || !parameters_flatten(set)) {
        fprintf(stderr, "%s\n", sb_error());
        abort(); /* the other ranks would wait forever */
    }
    return KEPT(set);
}

struct joined {
    double number[RANKS][NUMBERS]; /* as each rank gathers them */
    double kept[RANKS][NUMBERS];   /* gathered again, after parts_take of doubled values */
    bool ok[RANKS];
    int64_t here[RANKS], whole[RANKS];
};

static void join(sb_communicator *c, void *context)
{
    struct joined *j = context;
    const int rank = sb_communicator_rank(c);
    sb_parameters *set = set_new(c);
    sb_tensor *values = parameters_values(set);
    sb_tensor *all = parts_join(set, values, 0, 4);
    j->ok[rank] = all && tensor_read_part(all, 0, NUMBERS, j->number[rank]);
    j->here[rank] = sb_parameters_size(set);
    j->whole[rank] = parts_size(set, values, 0, 4);
    for (int64_t i = 0; i < NUMBERS; i++)
        sb_tensor_set(all, i, 2 * sb_tensor_get(all, i));
    j->ok[rank] &= parts_take(set, values, 0, 4, all);
    sb_tensor_release(all);
    all = parts_join(set, values, 1, 2); /* two of them */
    j->ok[rank] &= all && tensor_read_part(all, 0, 5 + 12, j->kept[rank]);
    sb_tensor_release(all);
}

CPU_TEST(parts, joined_parts_are_the_unsharded_parameters)
{
    struct joined *j = KEPT(calloc(1, sizeof *j));
    double whole[NUMBERS];
    sb_parameters *one = set_new(NULL);
    cr_assert(tensor_read_part(parameters_values(one), 0, NUMBERS, whole));
    mailbox_run(RANKS, join, j);
    for (int r = 0; r < RANKS; r++) {
        cr_expect(j->ok[r] && j->whole[r] == NUMBERS && j->here[r] == 5 + (NUMBERS - 5) / RANKS);
        cr_expect(memcmp(j->number[r], whole, sizeof whole) == 0, "rank %d", r);
        for (int i = 0; i < 5 + 12; i++)
            cr_expect(j->kept[r][i] == 2 * whole[36 + i], "rank %d: number %d", r, i);
    }
}

CPU_TEST(parts, unequal_parts_are_refused)
{
    static const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
    struct mailbox *m = mailbox_open(2), *other = mailbox_open(2);
    sb_communicator *c = mailbox_rank(m, 1), *d = mailbox_rank(other, 1);
    sb_parameters *set = KEPT(sb_parameters_new(1));
    cr_expect(!sb_parameters_add_cut(set, "w", SB_SHAPE(3, 4), zero, (sb_cut){c, 0}));
    EXPECT_ERROR("parameters_add: axis 0 of \"w\" (3, 4) cannot be split into 2 equal parts");
    cr_expect(!sb_parameters_add_cut(set, "w", SB_SHAPE(3, 4), zero, (sb_cut){c, 2}));
    EXPECT_ERROR("parameters_add: axis 2 of \"w\" (3, 4) cannot be split into 2 equal parts");
    cr_expect(sb_parameters_add_cut(set, "w", SB_SHAPE(3, 4), zero, (sb_cut){c, 1}) != NULL);
    cr_expect(!sb_parameters_add_cut(set, "v", SB_SHAPE(4), zero, (sb_cut){d, 0}));
    EXPECT_ERROR("parameters_add: \"v\" is split over other ranks than the others");
    sb_transformer_options o = {.heads = 3, .width = 12, .ranks = c}, complete;
    cr_expect(!sb_transformer_complete(&o, &complete));
    EXPECT_ERROR("transformer: heads 3 cannot be split over 2 ranks");
    o = (sb_transformer_options){.heads = 4, .key_heads = 1, .ranks = c};
    cr_expect(!sb_transformer_complete(&o, &complete));
    EXPECT_ERROR("transformer: key_heads 1 cannot be split over 2 ranks");
    o = (sb_transformer_options){.feed_forward = 13, .ranks = c};
    cr_expect(!sb_transformer_complete(&o, &complete));
    EXPECT_ERROR("transformer: feed_forward 13 cannot be split over 2 ranks");
    mailbox_close(m);
    mailbox_close(other);
}

struct clipped {
    bool spoils; /* rank 1 has a number that is not finite */
    double norm[RANKS], scale[RANKS];
    char message[RANKS][128]; /* "": no failure */
};

/* The gradient equals the parameters. */
static void clip(sb_communicator *c, void *context)
{
    struct clipped *s = context;
    const int rank = sb_communicator_rank(c);
    sb_parameters *set = set_new(c);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *sum = NULL;
    for (int i = 0; i < 4; i++) {
        sb_tensor *w = sb_parameters_get(set, i);
        sb_tensor *half = sb_scale(sb_sum(sb_multiply(w, w), SB_ALL, false), 0.5);
        sum = sum ? sb_add(sum, half) : half;
    }
    sb_backward(sum);
    sb_tape_end(&tape);
    if (s->spoils) /* all name the first parameter that any rank has spoilt */
        sb_tensor_set(sb_tensor_grad(sb_parameters_get(set, rank == 1 ? 2 : 3)), 3, INFINITY);
    const struct clip_caller caller = {"optimiser_step", "step skipped"};
    if (!clip_scale(&caller, set, 1, 2, &s->norm[rank], &s->scale[rank]))
        snprintf(s->message[rank], 128, "%s", sb_error());
}

CPU_TEST(parts, all_ranks_have_the_same_gradient_norm)
{
    struct clipped one = {.spoils = false}, cut = {.spoils = false}, bad = {.spoils = true};
    clip(NULL, &one);
    mailbox_run(RANKS, clip, &cut);
    mailbox_run(RANKS, clip, &bad);
    for (int r = 0; r < RANKS; r++) {
        cr_expect(fabs(cut.norm[r] - one.norm[0]) <= 1e-14 * one.norm[0], "%g", cut.norm[r]);
        cr_expect(cut.norm[r] == cut.norm[0] && cut.scale[r] == cut.scale[0], "rank %d", r);
        cr_expect_str_eq(bad.message[r], "optimiser_step: the gradient of \"columns\" is not "
                                         "finite; step skipped");
    }
    cr_expect(one.norm[0] > 1 && strcmp(cut.message[0], "") == 0);
}
