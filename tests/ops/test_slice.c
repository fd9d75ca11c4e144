#include "ops/slice.h"
#include "tests/support/values.h"

TEST(slice, a_part_of_the_first_axis_shares_the_data)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    sb_tensor *y = sb_keep(sb_slice(x, 0, 1, 2));
    cr_expect((double *)y->data == (double *)x->data + 2);
    MUST(sb_backward_from(y, constant(SB_F64, SB_SHAPE(2, 2), NUMBERS(10, 20, 30, 40))));
    expect_numbers(y, NUMBERS(3, 4, 5, 6));
    expect_numbers(sb_tensor_grad(x), NUMBERS(0, 0, 10, 20, 30, 40));
}

TEST(slice, a_part_of_an_inner_axis_is_copied)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 3, 2), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    sb_tensor *y = sb_keep(sb_slice(x, -2, 1, 2));
    expect_shape(y, SB_SHAPE(2, 2, 2));
    MUST(sb_backward_from(y, y));
    expect_numbers(y, NUMBERS(3, 4, 5, 6, 9, 10, 11, 12));
    expect_numbers(sb_tensor_grad(x), NUMBERS(0, 0, 3, 4, 5, 6, 0, 0, 9, 10, 11, 12));
}

TEST(slice, overlapping_parts_add_their_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1, 3), NUMBERS(1, 2, 3));
    sb_tensor *a = sb_slice(x, 1, 0, 2);
    sb_tensor *b = sb_slice(x, 1, 1, 2);
    sb_tensor *sum = sb_add(a, sb_scale(b, 10));
    MUST(sb_backward(sb_sum(sum, SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(1, 11, 10));
}

TEST(slice, ids_and_booleans_are_sliced_too)
{
    TAPE(SB_RECORD);
    sb_tensor *ids = constant(SB_I32, SB_SHAPE(2, 2), NUMBERS(1, 2, 3, 4));
    expect_numbers(sb_slice(ids, 1, 1, 1), NUMBERS(2, 4));
    sb_tensor *flags = constant(SB_BOOL, SB_SHAPE(2, 3), NUMBERS(1, 0, 0, 0, 1, 1));
    expect_numbers(sb_slice(flags, 1, 1, 2), NUMBERS(0, 0, 1, 1));
}

TEST(slice, split_returns_all_parts)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 4), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8));
    sb_tensor *part[3];
    MUST(sb_split(x, -1, 3, (int64_t[]){1, 0, 3}, part));
    expect_numbers(part[0], NUMBERS(1, 5));
    expect_shape(part[1], SB_SHAPE(2, 0));
    expect_numbers(part[2], NUMBERS(2, 3, 4, 6, 7, 8));
    MUST(sb_backward(sb_sum(sb_multiply(part[0], part[2]), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(9, 1, 1, 1, 21, 5, 5, 5));
}

TEST(slice, every_element_of_long_runs_is_moved)
{
    TAPE(SB_RECORD);
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(3, 20003));
    sb_tensor *y = sb_keep(sb_slice(x, 1, 2, 20001));
    sb_tensor *again = sb_slice(x, 1, 2, 20001);
    MUST(sb_backward(sb_sum(sb_multiply(y, again), SB_ALL, false)));
    double *value = numbers_of(x), *part = numbers_of(y), *dx = numbers_of(sb_tensor_grad(x));
    for (int64_t i = 0; i < 3 * 20003; i++) {
        const int64_t row = i / 20003, column = i % 20003;
        cr_assert(dx[i] == (column >= 2 ? 2 * value[i] : 0), "%lld", (long long)i);
        cr_assert(column < 2 || part[row * 20001 + column - 2] == value[i], "%lld", (long long)i);
    }
}
