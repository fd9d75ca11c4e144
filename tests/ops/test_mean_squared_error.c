#include "ops/mean_squared_error.h"
#include "tests/support/values.h"

/* x - target = (1, -2, 3): squares 1, 4, 9. */
TEST(mean_squared_error, each_reduction_gives_the_hand_worked_value_and_gradient)
{
    const double value[][3] = {
        [SB_REDUCE_MEAN] = {14 / 3.0}, [SB_REDUCE_SUM] = {14}, [SB_REDUCE_NONE] = {1, 4, 9}};
    const double slope[] = {[SB_REDUCE_MEAN] = 2 / 3.0, [SB_REDUCE_SUM] = 2, [SB_REDUCE_NONE] = 2};
    for (sb_reduction reduction = SB_REDUCE_MEAN; reduction <= SB_REDUCE_NONE; reduction++) {
        TAPE(SB_RECORD);
        sb_tensor *x = leaf(SB_SHAPE(3), NUMBERS(2, 0, 5));
        sb_tensor *target = leaf(SB_SHAPE(3), NUMBERS(1, 2, 2));
        sb_tensor *y = sb_keep(sb_mean_squared_error(x, target, reduction));
        sb_tensor *total = reduction == SB_REDUCE_NONE ? sb_sum(y, SB_ALL, false) : y;
        MUST(sb_backward(sb_scale(total, 10)));
        expect_numbers(y, reduction == SB_REDUCE_NONE ? 3 : 1, value[reduction]);
        const double d = 10 * slope[reduction];
        expect_numbers(sb_tensor_grad(x), NUMBERS(d, -2 * d, 3 * d));
        expect_numbers(sb_tensor_grad(target), NUMBERS(-d, 2 * d, -3 * d));
    }
}

TEST(mean_squared_error, gradients_add_to_existing_ones)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1), NUMBERS(5));
    sb_tensor *target = constant(SB_F64, SB_SHAPE(1), NUMBERS(3));
    sb_tensor *a = sb_mean_squared_error(x, target, SB_REDUCE_SUM);
    sb_tensor *b = sb_mean_squared_error(x, target, SB_REDUCE_MEAN);
    MUST(sb_backward(sb_add(a, b)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(8));
}

TEST(mean_squared_error, a_nan_propagates)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = constant(SB_F32, SB_SHAPE(2), NUMBERS(1, NAN));
    sb_tensor *target = constant(SB_F32, SB_SHAPE(2), NUMBERS(1, 1));
    cr_expect(isnan(sb_tensor_value(sb_mean_squared_error(x, target, SB_REDUCE_MEAN))));
    expect_numbers(sb_mean_squared_error(x, target, SB_REDUCE_NONE), NUMBERS(0, NAN));
}

TEST(mean_squared_error, an_empty_sum_is_0)
{
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(0, 2)));
    expect_numbers(sb_mean_squared_error(x, x, SB_REDUCE_SUM), NUMBERS(0));
}
