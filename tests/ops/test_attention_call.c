/* The shapes, layouts and options that attention accepts, and its messages for all others. */
#include "tests/support/test.h"

static sb_tensor *own(sb_tensor *t)
{
    return sb_tape_own(t);
}

#define LEAF(...) own(test_leaf(SB_F64, 1, SB_SHAPE(__VA_ARGS__)))

/* Asserts that the call fails with this message, on a separate tape. */
#define EXPECT_FAILURE(message, ...)                                                               \
    do {                                                                                           \
        sb_tape tape;                                                                              \
        sb_tape_begin(&tape, SB_RECORD);                                                           \
        cr_expect(!sb_attention(__VA_ARGS__), "no failure: %s", message);                          \
        EXPECT_ERROR(message);                                                                     \
        cr_expect(!sb_tape_end(&tape));                                                            \
    } while (0)

TEST(attention_call, inputs_with_fewer_axes_have_one_head)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *q = LEAF(2, 3, 1, 4), *k = LEAF(2, 5, 1, 4), *v = LEAF(2, 5, 1, 2);
    sb_tensor *y = sb_attention(q, k, v, NULL);
    for (int heads_first = 0; heads_first < 2; heads_first++) {
        sb_attention_options o = {.layout =
                                      heads_first ? SB_LAYOUT_HEADS_FIRST : SB_LAYOUT_LENGTH_FIRST};
        sb_tensor *z = sb_attention(LEAF(2, 3, 4), LEAF(2, 5, 4), LEAF(2, 5, 2), &o);
        cr_assert(y && z, "%s", sb_error());
        cr_expect(sb_tensor_rank(z) == 3);
        cr_expect(test_relative(sb_reshape(z, SB_SHAPE(2, 3, 1, 2)), y) == 0);
    }
    sb_tensor *z = sb_attention(LEAF(3, 4), LEAF(5, 4), LEAF(5, 2), NULL);
    cr_expect(sb_tensor_rank(z) == 2);
    cr_expect(test_relative(z, sb_reshape(sb_slice(y, 0, 0, 1), SB_SHAPE(3, 2))) == 0);
    cr_expect(sb_tape_end(&tape));
}

/* The layout only changes where rows are read and written. */
TEST(attention_call, heads_first_gives_the_same_bits)
{
    const int order[] = {0, 2, 1, 3};
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *q = LEAF(2, 3, 4, 5), *k = LEAF(2, 6, 2, 5), *v = LEAF(2, 6, 2, 3), *weights[2];
    sb_attention_options o = {.mask = sb_mask_causal_last(), .weights = &weights[0]};
    sb_tensor *y = sb_attention(q, k, v, &o);
    o.layout = SB_LAYOUT_HEADS_FIRST;
    o.weights = &weights[1];
    sb_tensor *z =
        sb_attention(sb_permute(q, 4, order), sb_permute(k, 4, order), sb_permute(v, 4, order), &o);
    cr_assert(y && z, "%s", sb_error());
    cr_expect(test_relative(sb_permute(z, 4, order), y) == 0);
    cr_expect(test_relative(weights[0], weights[1]) == 0);
    cr_expect(sb_tensor_dim(weights[0], 1) == 4 && sb_tensor_dim(weights[0], 2) == 3);
    cr_expect(sb_tape_end(&tape));
}

/* Grouped heads are heads repeated. */
TEST(attention_call, a_group_of_query_heads_reads_the_same_keys)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *q = LEAF(1, 2, 4, 3), *k = LEAF(1, 5, 2, 3);
    sb_tensor *first = sb_slice(k, 2, 0, 1), *second = sb_slice(k, 2, 1, 1);
    sb_tensor *repeated = sb_concatenate((sb_tensor *[]){first, first, second, second}, 4, 2);
    sb_tensor *y = sb_attention(q, k, k, NULL);
    cr_assert(y, "%s", sb_error());
    cr_expect(test_relative(y, sb_attention(q, repeated, repeated, NULL)) == 0);
    cr_expect(sb_tape_end(&tape));
}

TEST(attention_call, wrong_shapes_are_named)
{
    sb_tensor *ids = sb_tensor_zeros(SB_I32, SB_SHAPE(2, 3));
    sb_tensor *narrow = sb_tensor_zeros(SB_F32, SB_SHAPE(3, 4));
    EXPECT_FAILURE("attention: q is NULL", NULL, LEAF(2, 3), LEAF(2, 3), NULL);
    EXPECT_FAILURE("attention: k is NULL", LEAF(2, 3), NULL, LEAF(2, 3), NULL);
    EXPECT_FAILURE("attention: v is NULL", LEAF(2, 3), LEAF(2, 3), NULL, NULL);
    EXPECT_FAILURE("attention: k is of i32", LEAF(2, 3), ids, LEAF(2, 3), NULL);
    EXPECT_FAILURE("attention: q is (4); it must have 2 to 4 axes", LEAF(4), LEAF(4), LEAF(4),
                   NULL);
    EXPECT_FAILURE("v is (1, 1, 1, 2, 3); it must have", LEAF(2, 3), LEAF(2, 3),
                   LEAF(1, 1, 1, 2, 3), NULL);
    EXPECT_FAILURE("q is (2, 3), k is (1, 2, 3), v is (2, 3): they must have the same number",
                   LEAF(2, 3), LEAF(1, 2, 3), LEAF(2, 3), NULL);
    EXPECT_FAILURE("attention: q is (2, 3, 4), k is (3, 3, 4): batches differ; softback's order is "
                   "(batch, length, size)",
                   LEAF(2, 3, 4), LEAF(3, 3, 4), LEAF(3, 3, 4), NULL);
    EXPECT_FAILURE("attention: q is (3, 4), k is (3, 5): sizes of a head differ", LEAF(3, 4),
                   LEAF(3, 5), LEAF(3, 5), NULL);
    EXPECT_FAILURE("the size of a head is 0", LEAF(3, 0), LEAF(3, 0), LEAF(3, 5), NULL);
    EXPECT_FAILURE("attention: q is (2, 8, 16, 4), k is (2, 16, 6, 4): heads differ, and the first "
                   "is not a multiple of the second; softback's order is (batch, length, heads, "
                   "size)",
                   LEAF(2, 8, 16, 4), LEAF(2, 16, 6, 4), LEAF(2, 16, 6, 4), NULL);
    EXPECT_FAILURE("heads differ, and", LEAF(2, 8, 3, 4), LEAF(2, 8, 0, 4), LEAF(2, 8, 0, 4), NULL);
    EXPECT_FAILURE("attention: k is (2, 3, 4), v is (1, 3, 4): batches differ", LEAF(2, 3, 4),
                   LEAF(2, 3, 4), LEAF(1, 3, 4), NULL);
    EXPECT_FAILURE("k is (2, 3, 2, 4), v is (2, 3, 1, 4): heads differ; softback's",
                   LEAF(2, 3, 2, 4), LEAF(2, 3, 2, 4), LEAF(2, 3, 1, 4), NULL);
    EXPECT_FAILURE("k is (4, 3), v is (5, 3): lengths differ", LEAF(2, 3), LEAF(4, 3), LEAF(5, 3),
                   NULL);
    EXPECT_FAILURE("dtypes differ", LEAF(3, 4), narrow, LEAF(3, 4), NULL);
    sb_attention_options o = {.layout = SB_LAYOUT_HEADS_FIRST};
    EXPECT_FAILURE("this layout's order is (batch, heads, length, size)", LEAF(2, 3, 4, 4),
                   LEAF(2, 2, 4, 4), LEAF(2, 2, 4, 4), &o);
    sb_tensor_release(ids);
    sb_tensor_release(narrow);
}

#define OPTION_FAILURE(message, ...)                                                               \
    do {                                                                                           \
        sb_attention_options o = {__VA_ARGS__};                                                    \
        EXPECT_FAILURE(message, x, x, x, &o);                                                      \
    } while (0)

TEST(attention_call, numbers_out_of_range_are_named)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(2, 3, 4, 2));
    sb_tensor *scalar = test_leaf(SB_F64, 1, SB_SCALAR), *three = test_leaf(SB_F64, 1, SB_SHAPE(3));
    sb_tensor *bias = test_leaf(SB_F64, 1, SB_SHAPE(4, 3, 2)),
              *ids = sb_tensor_zeros(SB_I32, SB_SCALAR);
    sb_tensor *deep = test_leaf(SB_F64, 1, SB_SHAPE(1, 1, 1, 1, 1));
    OPTION_FAILURE("attention: scale is -1; it must be positive, SB_ZERO, or 0", .scale = -1);
    OPTION_FAILURE("attention: scale is nan", .scale = NAN);
    OPTION_FAILURE("attention: scale is inf", .scale = INFINITY);
    OPTION_FAILURE("attention: temperature is -0.5; it must be positive", .temperature = -0.5);
    OPTION_FAILURE("attention: temperature is inf", .temperature = INFINITY);
    OPTION_FAILURE("attention: the probability to drop is 1; it must be in [0, 1)", .dropout = 1);
    OPTION_FAILURE("the probability to drop is -0.1", .dropout = -0.1);
    OPTION_FAILURE("the probability to drop is nan", .dropout = NAN);
    OPTION_FAILURE("attention: 7 is not a score", .score = 7);
    OPTION_FAILURE("attention: 9 is not a layout", .layout = 9);
    OPTION_FAILURE("both temperature and log_temperature", .temperature = 1,
                   .log_temperature = scalar);
    OPTION_FAILURE("log_temperature is (3); it must be a scalar or (4)", .log_temperature = three);
    OPTION_FAILURE("bias is (4, 3, 2); it does not broadcast to the scores (2, 4, 3, 3)",
                   .bias = bias);
    OPTION_FAILURE("bias is (1, 1, 1, 1, 1); it does not", .bias = deep);
    OPTION_FAILURE("attention: bias is of i32", .bias = ids);
    sb_tensor *all[] = {x, scalar, three, bias, ids, deep};
    for (int i = 0; i < 6; i++)
        sb_tensor_release(all[i]);
}

TEST(attention_call, wrong_masks_and_biases_are_named)
{
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(2, 3, 4, 2));
    sb_tensor *pairs = sb_tensor_zeros(SB_BOOL, SB_SHAPE(3, 4));
    sb_tensor *lengths = sb_tensor_full(SB_I32, SB_SHAPE(2), 4);
    sb_tensor *wide = test_leaf(SB_F64, 1, SB_SHAPE(3));
    sb_tensor *weights = x;
    for (int way = 0; way < 3; way++) {
        if (way == 1 && !reports_immediately())
            continue;
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        sb_attention_options o = {.weights = &weights};
        if (way == 0)
            o.mask = sb_mask_block(pairs);
        else if (way == 1)
            o.mask = sb_mask_lengths(lengths);
        else
            o.bias = wide;
        cr_expect(!sb_attention(x, x, x, &o) && !weights);
        EXPECT_ERROR(way == 0   ? "the mask is (3, 4); it does not broadcast to the scores (2, 4"
                     : way == 1 ? "attention: the mask's lengths[0] is 4; with 3 keys it must be"
                                : "attention: q is f32, bias is f64: dtypes differ");
        cr_expect(!sb_tape_end(&tape));
    }
    sb_tensor *all[] = {x, pairs, lengths, wide};
    for (int i = 0; i < 4; i++)
        sb_tensor_release(all[i]);
}

/* A bias that could not be made marks the tape as failed, so that its NULL does not mean "no
   bias". */
TEST(attention_call, a_bias_that_failed_is_not_taken_for_no_bias)
{
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(2, 2));
    for (int way = 0; way < 3; way++) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        sb_attention_options o = {0};
        o.bias = way == 0   ? sb_alibi(SB_F32, 0, 2, 2)
                 : way == 1 ? sb_relative_bias(x, 2, 2)
                            : sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(-1)));
        cr_expect(!o.bias && !sb_attention(x, x, x, &o));
        EXPECT_ERROR(way == 0 ? "alibi: H is 0" : way == 1 ? "relative_bias: table" : "tensor: ");
        cr_expect(!sb_tape_end(&tape));
    }
    sb_tensor_release(x);
}

TEST(attention_call, without_a_tape_it_fails)
{
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(2, 2));
    cr_expect(!sb_attention(x, x, x, NULL));
    EXPECT_ERROR("attention: no tape is open");
    sb_tensor_release(x);
}
