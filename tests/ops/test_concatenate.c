#include "tests/support/values.h"

TEST(concatenate, rows_follow_each_other)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(1, 2), NUMBERS(1, 2));
    sb_tensor *b = leaf(SB_SHAPE(2, 2), NUMBERS(3, 4, 5, 6));
    sb_tensor *y = sb_keep(sb_concatenate((sb_tensor *[]){a, b}, 2, 0));
    expect_shape(y, SB_SHAPE(3, 2));
    MUST(sb_backward_from(y, y));
    expect_numbers(y, NUMBERS(1, 2, 3, 4, 5, 6));
    expect_numbers(sb_tensor_grad(a), NUMBERS(1, 2));
    expect_numbers(sb_tensor_grad(b), NUMBERS(3, 4, 5, 6));
}

TEST(concatenate, columns_interleave)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2, 1), NUMBERS(1, 2));
    sb_tensor *b = leaf(SB_SHAPE(2, 2), NUMBERS(3, 4, 5, 6));
    sb_tensor *y = sb_keep(sb_concatenate((sb_tensor *[]){a, b}, 2, -1));
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(2, 3), NUMBERS(10, 20, 30, 40, 50, 60));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(1, 3, 4, 2, 5, 6));
    expect_numbers(sb_tensor_grad(a), NUMBERS(10, 40));
    expect_numbers(sb_tensor_grad(b), NUMBERS(20, 30, 50, 60));
}

TEST(concatenate, a_tensor_that_is_joined_twice_gets_both_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2), NUMBERS(1, 2));
    sb_tensor *y = sb_concatenate((sb_tensor *[]){a, a}, 2, 0);
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(4), NUMBERS(1, 2, 30, 40));
    MUST(sb_backward_from(y, dy));
    expect_numbers(sb_tensor_grad(a), NUMBERS(31, 42));
}

TEST(concatenate, a_constant_is_joined_and_gets_no_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *a = constant(SB_F64, SB_SHAPE(1), NUMBERS(1));
    sb_tensor *b = leaf(SB_SHAPE(2), NUMBERS(2, 3));
    sb_tensor *y = sb_concatenate((sb_tensor *[]){a, b}, 2, 0);
    MUST(sb_backward_from(y, constant(SB_F64, SB_SHAPE(3), NUMBERS(7, 8, 9))));
    cr_expect(sb_tensor_grad(a) == NULL);
    expect_numbers(sb_tensor_grad(b), NUMBERS(8, 9));
}

TEST(concatenate, a_stack_has_a_new_axis_at_any_position)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2), NUMBERS(1, 2)), *b = leaf(SB_SHAPE(2), NUMBERS(3, 4));
    sb_tensor *const pair[] = {a, b};
    sb_tensor *rows = sb_stack(pair, 2, 0);
    sb_tensor *columns = sb_keep(sb_stack(pair, 2, -1));
    expect_numbers(rows, NUMBERS(1, 2, 3, 4));
    MUST(sb_backward_from(columns, rows));
    expect_numbers(columns, NUMBERS(1, 3, 2, 4));
    expect_numbers(sb_tensor_grad(a), NUMBERS(1, 3));
    expect_numbers(sb_tensor_grad(b), NUMBERS(2, 4));
}

TEST(concatenate, ids_booleans_and_empty_tensors_are_joined_too)
{
    TAPE(SB_RECORD);
    sb_tensor *ids = constant(SB_I32, SB_SHAPE(2), NUMBERS(5, 6));
    sb_tensor *none = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(0)));
    expect_numbers(sb_concatenate((sb_tensor *[]){none, ids, none, ids}, 4, 0),
                   NUMBERS(5, 6, 5, 6));
    sb_tensor *flag = constant(SB_BOOL, SB_SCALAR, NUMBERS(1));
    expect_numbers(sb_stack((sb_tensor *[]){flag, flag, flag}, 3, 0), NUMBERS(1, 1, 1));
    sb_tensor *flat = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3)));
    expect_shape(sb_concatenate((sb_tensor *[]){flat, flat}, 2, 1), SB_SHAPE(0, 6));
}

typedef sb_tensor *joining(sb_tensor *const x[], int n, int axis);

CPU_TEST(concatenate, sizes_that_overflow_are_refused)
{
    FAILED_TAPE(SB_RECORD);
    const int64_t wide[] = {0, (int64_t)1 << 56};
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, 2, wide));
    sb_tensor *many[128];
    for (int i = 0; i < 128; i++)
        many[i] = x;
    cr_expect(!sb_concatenate(many, 128, 1));
    EXPECT_ERROR("concatenate: the sizes along axis 1 add up to more than 64 bits hold");
}
