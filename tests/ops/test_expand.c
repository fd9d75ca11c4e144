#include "ops/expand.h"
#include "tests/support/values.h"

TEST(expand, axes_of_size_1_are_repeated_and_their_gradients_summed)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 1), NUMBERS(1, 2));
    sb_tensor *y = sb_keep(sb_expand(x, SB_SHAPE(2, 2, 3)));
    sb_tensor *dy =
        constant(SB_F64, SB_SHAPE(2, 2, 3), NUMBERS(1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
    expect_numbers(sb_tensor_grad(x), NUMBERS(66, 165));
}

TEST(expand, gradients_add_to_existing_ones)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1), NUMBERS(5));
    sb_tensor *a = sb_expand(x, SB_SHAPE(3));
    sb_tensor *b = sb_expand(x, SB_SHAPE(3));
    MUST(sb_backward(sb_sum(sb_add(a, b), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(6));
}

TEST(expand, the_result_is_a_copy_in_any_dtype)
{
    TAPE(SB_NO_RECORD);
    for (sb_dtype dtype = SB_F32; dtype <= SB_BOOL; dtype++) {
        if (dtype == SB_DUAL && sb_device_in_use() != sb_device_cpu())
            continue;
        sb_tensor *x = constant(dtype, SB_SHAPE(1, 2), NUMBERS(1, 0));
        sb_tensor *y = sb_expand(x, SB_SHAPE(2, 2));
        expect_numbers(y, NUMBERS(1, 0, 1, 0));
        cr_expect(sb_tensor_dtype(y) == dtype && y->data != x->data);
        expect_numbers(sb_expand(constant(dtype, SB_SCALAR, NUMBERS(1)), SB_SHAPE(3)),
                       NUMBERS(1, 1, 1));
    }
}

TEST(expand, every_element_of_long_rows_is_filled)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(3, 1), NUMBERS(1, 2, 3));
    sb_tensor *y = sb_keep(sb_expand(x, SB_SHAPE(2, 3, 20001)));
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    for (int64_t i = 0; i < sb_tensor_size(y); i++)
        cr_assert(sb_tensor_get(y, i) == 1 + i / 20001 % 3, "element %lld", (long long)i);
    expect_numbers(sb_tensor_grad(x), NUMBERS(40002, 40002, 40002));
}

TEST(expand, an_axis_of_1_expands_to_0_with_gradient_0)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1, 2), NUMBERS(1, 2));
    sb_tensor *y = sb_expand(x, SB_SHAPE(0, 2));
    expect_shape(y, SB_SHAPE(0, 2));
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(0, 0));
}

/* Nothing is summed there. */
TEST(expand, gradients_of_a_shape_that_stays_add_up)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(3));
    TAPE(SB_RECORD);
    sb_tensor *y = sb_add(sb_expand(x, SB_SHAPE(3)), sb_expand(x, SB_SHAPE(3)));
    MUST(sb_backward_from(y, owned(SB_F64, SB_SHAPE(3), (double[]){1, 1, 1})));
    for (int i = 0; i < 3; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(x), i) == 2);
}
