/* Dropout of attention weights and of hidden units, apart from that of branches. */
#include "tests/support/test.h"

enum { B = 2, L = 5, C = 8 };

/* The outputs of a layer with these options, with the random stream of training. */
static void run_layer(const sb_transformer_options *options, double y[B * L * C])
{
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 3));
    sb_transformer_layer layer;
    MUST(sb_transformer_layer_init(&layer, set, "layer", options, false));
    sb_tensor *x = test_leaf(SB_F64, 5, SB_SHAPE(B, L, C));
    sb_random random = sb_random_new(7, SB_STREAM_TRAIN);
    TAPE(SB_NO_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *out = sb_transformer_layer_forward(&layer, x, NULL, NULL, NULL);
    MUST(out && sb_tensor_read(out, y));
}

static bool same_outputs(sb_transformer_options a, sb_transformer_options b)
{
    double y[2][B * L * C];
    a.width = b.width = C;
    a.heads = b.heads = 2;
    run_layer(&a, y[0]);
    run_layer(&b, y[1]);
    return memcmp(y[0], y[1], sizeof y[0]) == 0;
}

TEST(dropouts, attention_weights_have_the_dropout_of_branches_unless_it_is_given)
{
    const sb_transformer_options plain = {.dropout = 0}, all = {.dropout = 0.3},
                                 same = {.dropout = 0.3, .attention_dropout = 0.3},
                                 none = {.dropout = 0.3, .attention_dropout = SB_ZERO},
                                 alone = {.attention_dropout = 0.3},
                                 zero = {.attention_dropout = SB_ZERO};
    cr_expect(same_outputs(all, same));
    cr_expect(!same_outputs(all, none) && !same_outputs(none, plain));
    cr_expect(!same_outputs(alone, plain) && !same_outputs(alone, all));
    cr_expect(same_outputs(zero, plain));
}

TEST(dropouts, hidden_units_are_dropped_apart_from_branches)
{
    const sb_transformer_options plain = {.dropout = 0}, hidden = {.feed_forward_dropout = 0.4},
                                 gated = {.gated = true},
                                 both = {.gated = true, .feed_forward_dropout = 0.4};
    cr_expect(!same_outputs(hidden, plain) && same_outputs(hidden, hidden));
    cr_expect(!same_outputs(both, gated));
}

/* With many hidden units the mean over draws is the output without dropout. */
TEST(dropouts, dropped_hidden_units_keep_their_mean)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    enum { DRAWS = 4000 };
    const sb_transformer_options o = {.width = 4, .feed_forward = 8, .feed_forward_dropout = 0.5};
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 1));
    sb_feed_forward layer;
    MUST(sb_feed_forward_init(&layer, set, "ff", &o));
    sb_tensor *x = test_leaf(SB_F64, 2, SB_SHAPE(1, 1, 4));
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    double mean[4] = {0}, y[4];
    for (int i = 0; i < DRAWS; i++) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_NO_RECORD);
        sb_tape_random(&tape, &random);
        MUST(sb_tensor_read(sb_feed_forward_forward(&layer, x), y));
        sb_tape_end(&tape);
        for (int c = 0; c < 4; c++)
            mean[c] += y[c] / DRAWS;
    }
    sb_tape tape; /* without a random stream nothing is dropped */
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tape_random(&tape, NULL);
    MUST(sb_tensor_read(sb_feed_forward_forward(&layer, x), y));
    sb_tape_end(&tape);
    for (int c = 0; c < 4; c++)
        cr_expect(fabs(mean[c] - y[c]) < 0.08, "%g, expected about %g", mean[c], y[c]);
}

static sb_tensor *loss_of(void *layer, sb_tensor *const inputs[])
{
    sb_tensor *y = sb_feed_forward_forward(layer, inputs[0]);
    return sb_sum(sb_multiply(y, y), SB_ALL, false);
}

TEST(dropouts, the_gradient_passes_the_units_that_are_left)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    const sb_transformer_options o = {.width = C, .feed_forward = 12, .feed_forward_dropout = 0.4};
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 1));
    sb_feed_forward layer;
    MUST(sb_feed_forward_init(&layer, set, "ff", &o));
    sb_tensor *x = test_leaf(SB_F64, 2, SB_SHAPE(B, L, C));
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    const sb_gradcheck_options options = {.random = &random};
    cr_expect(sb_gradcheck(loss_of, &layer, &x, 1, &options, NULL), "%s", sb_error());
    cr_expect(!sb_gradcheck(loss_of, &layer, &x, 1, NULL, NULL));
    EXPECT_ERROR("gradcheck: dropout: the probability to drop is 0.4, but the tape records and has "
                 "no random stream; give it one");
}

CPU_TEST(dropouts, bad_probabilities_are_named)
{
    sb_transformer_options o = {.width = C, .attention_dropout = 1};
    cr_expect(!sb_transformer_complete(&o, &o));
    cr_expect(strstr(sb_error(), "attention_dropout is 1; it must be in [0, 1)"), "%s", sb_error());
    o = (sb_transformer_options){.width = C, .feed_forward_dropout = -0.1};
    cr_expect(!sb_transformer_complete(&o, &o));
    cr_expect(strstr(sb_error(), "feed_forward_dropout is -0.1; it must be in [0, 1)"), "%s",
              sb_error());
}
