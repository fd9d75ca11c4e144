#include "tests/support/values.h"

TEST(reshape, the_elements_keep_their_order)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    sb_tensor *y = sb_keep(sb_reshape(x, SB_SHAPE(3, 2)));
    cr_expect(y->data == x->data, "the data is shared");
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(3, 2), NUMBERS(10, 20, 30, 40, 50, 60));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(1, 2, 3, 4, 5, 6));
    expect_shape(sb_tensor_grad(x), SB_SHAPE(2, 3));
    expect_numbers(sb_tensor_grad(x), NUMBERS(10, 20, 30, 40, 50, 60));
}

/* x is used twice, under two shapes: both parts are added. */
TEST(reshape, gradients_of_two_shapes_add_up)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 2), NUMBERS(1, 2, 3, 4));
    sb_tensor *a = sb_reshape(x, SB_SHAPE(4));
    sb_tensor *b = sb_scale(sb_reshape(x, SB_SHAPE(1, 4)), 10);
    MUST(sb_backward(sb_sum(sb_add(a, b), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(11, 11, 11, 11));
}

/* dx takes ownership of dy's memory, unless dy has other readers; other uses of x add to it. */
TEST(reshape, the_gradient_of_a_result_is_forwarded)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        TAPE(SB_RECORD);
        sb_tensor *leaf_x = leaf(SB_SHAPE(2, 2), NUMBERS(1, 2, 3, 4));
        sb_tensor *x = sb_keep(sb_scale(leaf_x, 3)), *used = sb_scale(x, 100);
        sb_tensor *y = sb_reshape(x, SB_SHAPE(4));
        if (keeps)
            sb_keep(y);
        sb_tensor *weights = constant(SB_F64, SB_SHAPE(4), NUMBERS(1, 2, 3, 4));
        sb_tensor *sum = sb_sum(sb_multiply(y, weights), SB_ALL, false);
        MUST(sb_backward(sb_add(sum, sb_sum(used, SB_ALL, false))));
        expect_shape(sb_tensor_grad(x), SB_SHAPE(2, 2));
        expect_numbers(sb_tensor_grad(x), NUMBERS(101, 102, 103, 104));
        expect_numbers(sb_tensor_grad(leaf_x), NUMBERS(303, 306, 309, 312));
        if (keeps)
            expect_numbers(sb_tensor_grad(y), NUMBERS(1, 2, 3, 4));
    }
}

TEST(reshape, one_dimension_is_computed)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = constant(SB_I32, SB_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    expect_shape(sb_reshape(x, SB_SHAPE(-1)), SB_SHAPE(6));
    expect_shape(sb_reshape(x, SB_SHAPE(3, -1, 1)), SB_SHAPE(3, 2, 1));
    sb_tensor *one = sb_reshape(constant(SB_BOOL, SB_SHAPE(1), NUMBERS(1)), SB_SCALAR);
    cr_expect(sb_tensor_rank(one) == 0 && sb_tensor_value(one) == 1);
    expect_shape(sb_reshape(one, SB_SHAPE(1, -1)), SB_SHAPE(1, 1));
    sb_tensor *none = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3)));
    expect_shape(sb_reshape(none, SB_SHAPE(3, -1)), SB_SHAPE(3, 0));
}
