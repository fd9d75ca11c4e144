#include "ops/arithmetic.h"
#include "ops/kernel.h"
#include "tests/support/values.h"

TEST(arithmetic, equal_shapes_give_the_hand_worked_values)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *a = constant(SB_F64, SB_SHAPE(3), NUMBERS(6, -1, 0.5));
    sb_tensor *b = constant(SB_F64, SB_SHAPE(3), NUMBERS(2, 4, -0.25));
    expect_numbers(sb_add(a, b), NUMBERS(8, 3, 0.25));
    expect_numbers(sb_subtract(a, b), NUMBERS(4, -5, 0.75));
    expect_numbers(sb_multiply(a, b), NUMBERS(12, -4, -0.125));
    expect_numbers(sb_divide(a, b), NUMBERS(3, -0.25, -2));
    sb_tensor *condition = constant(SB_BOOL, SB_SHAPE(3), NUMBERS(1, 0, 1));
    expect_numbers(sb_where(condition, a, b), NUMBERS(6, 4, 0.5));
}

/* a = (1, 2) is a column, b = (3, 4, 5) a row. */
TEST(arithmetic, a_column_and_a_row_make_a_table)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2, 1), NUMBERS(1, 2));
    sb_tensor *b = leaf(SB_SHAPE(3), NUMBERS(3, 4, 5));
    sb_tensor *y = sb_keep(sb_multiply(a, b));
    expect_shape(y, SB_SHAPE(2, 3));
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(2, 3), NUMBERS(1, 10, 100, 2, 20, 200));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(3, 4, 5, 6, 8, 10));
    expect_numbers(sb_tensor_grad(a), NUMBERS(3 + 40 + 500, 6 + 80 + 1000));
    expect_numbers(sb_tensor_grad(b), NUMBERS(1 + 4, 10 + 40, 100 + 400));
}

/* da = dy / b and db = -dy a / b^2 at a = 3, b = 2, dy = 4. */
TEST(arithmetic, divide_has_the_hand_worked_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SCALAR, NUMBERS(3));
    sb_tensor *b = leaf(SB_SCALAR, NUMBERS(2));
    cr_assert(sb_backward_from(sb_divide(a, b), constant(SB_F64, SB_SCALAR, NUMBERS(4))));
    expect_numbers(sb_tensor_grad(a), NUMBERS(2));
    expect_numbers(sb_tensor_grad(b), NUMBERS(-3));
}

/* b^2 = 1e400 overflows; the gradient, -1e200 / 1e400, does not. */
TEST(arithmetic, divide_by_large_numbers_has_a_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SCALAR, NUMBERS(1e200));
    sb_tensor *b = leaf(SB_SCALAR, NUMBERS(1e200));
    cr_assert(sb_backward(sb_divide(a, b)));
    expect_numbers(sb_tensor_grad(b), NUMBERS(-1e-200));
}

TEST(arithmetic, a_tensor_that_is_both_operands_gets_both_gradients)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(3, -5));
    MUST(sb_backward(sb_sum(sb_multiply(x, x), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(6, -10));
    sb_tensor_clear_grad(x);
    sb_tape_end(&tape);
    sb_tape_begin(&tape, SB_RECORD);
    x = leaf(SB_SHAPE(2), NUMBERS(3, -5));
    MUST(sb_backward(sb_sum(sb_subtract(x, x), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(0, 0));
    sb_tape_end(&tape);
}

TEST(arithmetic, where_sends_the_gradient_only_to_the_chosen_operand)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(3), NUMBERS(1, NAN, 3));
    sb_tensor *b = leaf(SB_SCALAR, NUMBERS(7));
    sb_tensor *condition = constant(SB_BOOL, SB_SHAPE(2, 3), NUMBERS(1, 0, 1, 1, 0, 0));
    sb_tensor *y = sb_keep(sb_where(condition, a, b));
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(2, 3), NUMBERS(1, INFINITY, 3, 4, 5, 6));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(1, 7, 3, 1, 7, 7));
    expect_numbers(sb_tensor_grad(a), NUMBERS(5, 0, 3));
    expect_numbers(sb_tensor_grad(b), NUMBERS(INFINITY));
}

TEST(arithmetic, an_input_without_requires_grad_gets_no_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2), NUMBERS(1, 2));
    sb_tensor *b = constant(SB_F64, SB_SHAPE(2), NUMBERS(3, 4));
    MUST(sb_backward(sb_sum(sb_multiply(b, a), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(a), NUMBERS(3, 4));
    cr_expect(sb_tensor_grad(b) == NULL);
}

TEST(arithmetic, nan_and_infinity_follow_ieee)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *a = constant(SB_F32, SB_SHAPE(3), NUMBERS(NAN, 1, 0));
    sb_tensor *zero = constant(SB_F32, SB_SCALAR, NUMBERS(0));
    expect_numbers(sb_multiply(a, zero), NUMBERS(NAN, 0, 0));
    expect_numbers(sb_divide(a, zero), NUMBERS(NAN, INFINITY, NAN));
}

/* The gradient of an operand that was broadcast to an empty shape is an empty sum. */
TEST(arithmetic, broadcasting_to_an_empty_shape_gives_a_gradient_of_zero)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(3, 1), NUMBERS(1, 2, 3));
    sb_tensor *b = sb_tape_own(sb_tensor_requires_grad(sb_tensor_zeros(SB_F64, SB_SHAPE(3, 0))));
    sb_tensor *c = leaf(SB_SCALAR, NUMBERS(1));
    sb_tensor *y = sb_add(sb_multiply(a, b), c);
    expect_shape(y, SB_SHAPE(3, 0));
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    expect_numbers(sb_tensor_grad(a), NUMBERS(0, 0, 0));
    expect_numbers(sb_tensor_grad(c), NUMBERS(0));
    expect_shape(sb_tensor_grad(b), SB_SHAPE(3, 0));
}
