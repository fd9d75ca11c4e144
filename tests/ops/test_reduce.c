#include "ops/kernel.h"
#include "ops/reduce.h"
#include "tests/support/values.h"

TEST(reduce, sums_and_means_along_each_axis_are_the_hand_worked_ones)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = constant(SB_F64, SB_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 9));
    expect_numbers(sb_sum(x, 0, false), NUMBERS(5, 7, 12));
    expect_numbers(sb_sum(x, 1, false), NUMBERS(6, 18));
    expect_numbers(sb_sum(x, SB_ALL, false), NUMBERS(24));
    expect_numbers(sb_mean(x, -2, false), NUMBERS(2.5, 3.5, 6));
    expect_numbers(sb_mean(x, -1, false), NUMBERS(2, 6));
    expect_numbers(sb_mean(x, SB_ALL, false), NUMBERS(4));
    expect_numbers(sb_max(x, 0, false), NUMBERS(4, 5, 9));
    expect_numbers(sb_max(x, 1, false), NUMBERS(3, 9));
    expect_numbers(sb_max(x, SB_ALL, false), NUMBERS(9));
    expect_numbers(sb_argmax(x, 0), NUMBERS(1, 1, 1));
    expect_numbers(sb_argmax(x, 1), NUMBERS(2, 2));
    expect_numbers(sb_argmax(x, SB_ALL), NUMBERS(5));
    cr_expect(sb_tensor_dtype(sb_argmax(x, 0)) == SB_I32);
}

TEST(reduce, keep_leaves_an_axis_of_size_1)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3, 4)));
    expect_shape(sb_sum(x, 1, true), SB_SHAPE(2, 1, 4));
    expect_shape(sb_sum(x, 1, false), SB_SHAPE(2, 4));
    expect_shape(sb_max(x, -1, true), SB_SHAPE(2, 3, 1));
    expect_shape(sb_mean(x, SB_ALL, true), SB_SHAPE(1, 1, 1));
    expect_shape(sb_mean(x, SB_ALL, false), SB_SCALAR);
    expect_shape(sb_argmax(x, 0), SB_SHAPE(3, 4));
}

TEST(reduce, the_gradient_of_a_mean_is_shared_evenly)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 2), NUMBERS(1, 2, 3, 4));
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(2), NUMBERS(8, 6));
    MUST(sb_backward_from(sb_mean(x, 0, false), dy));
    expect_numbers(sb_tensor_grad(x), NUMBERS(4, 3, 4, 3));
}

/* The maximum 5 is reached twice in the first row and once in the second. */
TEST(reduce, a_tie_of_the_maximum_shares_the_gradient)
{
    const double numbers[] = {5, 1, 5, 2, 5, 3};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 3), 6, numbers);
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(2), NUMBERS(8, 6));
    MUST(sb_backward_from(sb_max(x, 1, false), dy));
    expect_numbers(sb_tensor_grad(x), NUMBERS(4, 0, 4, 0, 6, 0));
    sb_tape_end(&tape);
    sb_tape_begin(&tape, SB_RECORD);
    x = leaf(SB_SHAPE(2, 3), 6, numbers);
    MUST(sb_backward(sb_scale(sb_max(x, SB_ALL, false), 9)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(3, 0, 3, 0, 3, 0));
    expect_numbers(sb_argmax(x, 1), NUMBERS(0, 1));
    sb_tape_end(&tape);
    sb_tape_begin(&tape, SB_RECORD);
    x = leaf(SB_SHAPE(3, 2), 6, numbers);
    dy = constant(SB_F64, SB_SHAPE(2), NUMBERS(8, 6));
    MUST(sb_backward_from(sb_max(x, 0, false), dy));
    expect_numbers(sb_tensor_grad(x), NUMBERS(8 / 3.0, 0, 8 / 3.0, 0, 8 / 3.0, 6));
    sb_tape_end(&tape);
}

TEST(reduce, gradients_add_to_existing_ones)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(3), NUMBERS(1, 7, 2));
    sb_tensor *a = sb_mean(x, 0, false);
    sb_tensor *b = sb_max(x, 0, false);
    sb_tensor *c = sb_sum(x, 0, false);
    MUST(sb_backward(sb_add(sb_scale(a, 3), sb_add(b, c))));
    expect_numbers(sb_tensor_grad(x), NUMBERS(2, 3, 2));
}

/* At every position of a long row, so that each lane of a vector has it once. */
TEST(reduce, a_nan_is_the_maximum_at_any_position)
{
    for (int64_t place = 0; place < 67; place++) {
        TAPE(SB_RECORD);
        sb_tensor *x =
            sb_tape_own(sb_tensor_requires_grad(sb_tensor_full(SB_F32, SB_SHAPE(67, 1), 1)));
        sb_tensor_set(x, place, NAN);
        sb_tensor_set(x, (place + 1) % 67, INFINITY);
        cr_expect(isnan(sb_tensor_value(sb_sum(x, 0, false))));
        cr_expect(sb_tensor_value(sb_argmax(x, 0)) == (double)place);
        sb_tensor *y = sb_keep(sb_max(x, 0, false));
        MUST(sb_backward(y));
        cr_expect(isnan(sb_tensor_value(y)));
        for (int64_t i = 0; i < 67; i++)
            cr_expect(sb_tensor_get(sb_tensor_grad(x), i) == (i == place));
    }
}

TEST(reduce, a_column_with_a_nan_has_it_as_maximum)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = constant(SB_F64, SB_SHAPE(3, 2), NUMBERS(1, NAN, 5, 2, 3, NAN));
    expect_numbers(sb_max(x, 0, false), NUMBERS(5, NAN));
    expect_numbers(sb_argmax(x, 0), NUMBERS(1, 0));
}

TEST(reduce, a_row_of_minus_infinity_has_a_maximum)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(70), -INFINITY));
    expect_numbers(sb_max(x, 0, false), NUMBERS(-INFINITY));
    expect_numbers(sb_argmax(x, 0), NUMBERS(0));
}

/* Long axes in each position, against a plain loop. */
static void check_long(int64_t outer, int64_t n, int64_t inner)
{
    TAPE(SB_RECORD);
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(outer, n, inner));
    sb_tensor *y = sb_keep(sb_max(x, 1, false)), *index = sb_keep(sb_argmax(x, 1));
    sb_tensor *total = sb_keep(sb_sum(x, 1, false));
    MUST(index && sb_backward(sb_sum(sb_multiply(y, total), SB_ALL, false)));
    double *value = numbers_of(x), *dx = numbers_of(sb_tensor_grad(x));
    for (int64_t to = 0; to < outer * inner; to++) {
        const int64_t from = to / inner * n * inner + to % inner;
        int64_t best = 0;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            best = value[from + i * inner] > value[from + best * inner] ? i : best;
            sum += value[from + i * inner];
        }
        const double largest = value[from + best * inner];
        cr_assert(sb_tensor_get(index, to) == best && sb_tensor_get(y, to) == largest, "%lld",
                  (long long)to);
        cr_assert(fabs(sb_tensor_get(total, to) - sum) < 1e-6 * n);
        cr_assert(fabs(dx[from + best * inner] - (sum + largest)) < 1e-6 * n);
        cr_assert(n == 1 || fabs(dx[from + (best + 1) % n * inner] - largest) < 1e-6);
    }
}

TEST(reduce, long_axes_agree_with_plain_loops_in_every_instruction_set)
{
    const enum kernel_set best = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= best; set++) {
        if (!test_kernel_set(set))
            continue;
        check_long(1, 40001, 1);
        check_long(600, 67, 1);
        check_long(3, 17, 700);
        check_long(1, 3, 12345);
    }
}

TEST(reduce, an_empty_sum_is_0)
{
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_requires_grad(sb_tensor_zeros(SB_F64, SB_SHAPE(2, 0))));
    expect_numbers(sb_sum(x, 1, false), NUMBERS(0, 0));
    sb_tensor *y = sb_sum(x, SB_ALL, false);
    expect_numbers(y, NUMBERS(0));
    expect_shape(sb_max(x, 0, false), SB_SHAPE(0));
    MUST(sb_backward(y));
    expect_shape(sb_tensor_grad(x), SB_SHAPE(2, 0));
}
