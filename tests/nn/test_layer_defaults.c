/* Zeros in the options of a layer stand for the documented defaults. */
#include "tests/support/test.h"

TEST(layer_defaults, heads_and_feed_forward_have_their_documented_defaults)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options o = {.width = 64};
    sb_encoder_layer l;
    MUST(sb_encoder_layer_init(&l, set, "l", &o));
    cr_expect(l.self_attention.heads == 4 && l.self_attention.key_heads == 4);
    cr_expect(l.self_attention.size == 16 && l.self_attention.temperature == 1);
    cr_expect(sb_tensor_dim(l.feed_forward.up.weight, 0) == 4 * 64);
    sb_decoder_layer d;
    MUST(sb_decoder_layer_init(&d, set, "d", &o, true));
    cr_expect(d.self_attention.heads == 4 && d.cross_attention.heads == 4);
}

TEST(layer_defaults, the_default_activation_is_relu)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options o = {.width = 8, .heads = 2, .key_heads = 2, .feed_forward = 16};
    sb_encoder_layer l;
    sb_feed_forward f;
    cr_assert(sb_encoder_layer_init(&l, set, "l", &o) && sb_feed_forward_init(&f, set, "f", &o));
    cr_expect(l.feed_forward.activation == SB_ACTIVATION_RELU &&
              f.activation == SB_ACTIVATION_RELU);
}

TEST(layer_defaults, default_sizes_give_no_empty_weight)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options o = {.width = 8, .heads = 2};
    sb_encoder_layer l;
    MUST(sb_encoder_layer_init(&l, set, "l", &o));
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        cr_expect(sb_tensor_size(sb_parameters_get(set, i)) > 0, "%s", sb_parameters_name(set, i));
}

TEST(layer_defaults, an_embedding_of_zeros_has_width_128_and_512_learned_positions)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options zero = {0}, learned = {.positions = SB_POSITIONS_LEARNED};
    sb_embedding_layer l;
    MUST(sb_embedding_layer_init(&l, set, "l", 5, &zero, NULL));
    cr_expect(l.C == 128 && sb_tensor_dim(l.weight, 0) == 5 && sb_tensor_dim(l.weight, 1) == 128);
    MUST(sb_embedding_layer_init(&l, set, "p", 5, &learned, NULL));
    cr_expect(sb_tensor_dim(l.position, 0) == 512 && sb_tensor_dim(l.position, 1) == 128);
}

TEST(layer_defaults, a_position_bias_of_zeros_has_4_heads)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options o = {.positions = SB_POSITIONS_RELATIVE};
    sb_position_bias bias;
    MUST(sb_position_bias_init(&bias, set, "l", &o));
    cr_expect(bias.heads == 4 && sb_tensor_dim(bias.table, 0) == 4);
}

/* An embedding does not use the number of heads, and attention no sinusoids. */
TEST(layer_defaults, options_that_a_layer_does_not_use_are_not_checked)
{
    const sb_transformer_options six = {.width = 6}, nine = {.width = 9, .heads = 3};
    const sb_transformer_options three = {.heads = 3, .positions = SB_POSITIONS_RELATIVE};
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_embedding_layer embedding;
    sb_feed_forward feed_forward;
    sb_multi_head_attention attention;
    sb_encoder_layer encoder;
    sb_position_bias bias;
    cr_expect(sb_embedding_layer_init(&embedding, set, "a", 5, &six, NULL), "%s", sb_error());
    cr_expect(sb_feed_forward_init(&feed_forward, set, "b", &six), "%s", sb_error());
    cr_expect(sb_multi_head_attention_init(&attention, set, "c", &nine, false), "%s", sb_error());
    cr_expect(sb_encoder_layer_init(&encoder, set, "d", &nine), "%s", sb_error());
    cr_expect(sb_position_bias_init(&bias, set, "e", &three), "%s", sb_error());
}

/* Defaults are completed by the layer itself, and by an encoder for its layers. */
TEST(layer_defaults, a_layer_has_the_same_initial_weights_alone_as_in_an_encoder)
{
    const sb_transformer_options o = {.width = 8, .heads = 2, .encoder_layers = 1};
    sb_parameters *alone = KEPT(sb_parameters_new(1)), *stack = KEPT(sb_parameters_new(1));
    sb_embedding_layer embedding;
    sb_encoder_layer l;
    sb_encoder *e = KEPT(sb_encoder_new(stack, "e", 5, &o));
    cr_assert(e && sb_embedding_layer_init(&embedding, alone, "e.embedding", 5, &o, NULL) &&
              sb_encoder_layer_init(&l, alone, "e.layers.0", &o));
    for (int64_t i = 0; i < sb_parameters_count(alone); i++)
        cr_expect(test_same_bits(sb_parameters_get(alone, i),
                                 sb_parameters_find(stack, sb_parameters_name(alone, i))));
}
