#include "tests/support/values.h"

/* Of 1, 2, 6: mean 3, squares 4 + 1 + 9 = 14; divided by 2 and by 3. */
TEST(variance, the_hand_worked_values_and_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 3), NUMBERS(1, 2, 6, 5, 5, 5));
    sb_tensor *y = MUST(sb_keep(sb_variance(x, -1, 1, false)));
    expect_shape(y, SB_SHAPE(2));
    expect_numbers(y, NUMBERS(7, 0));
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(-2, -1, 3, 0, 0, 0));
}

/* Around any mean, and of any size that the variance itself has room for. */
TEST(variance, in_f32_it_is_accurate_for_large_means_and_large_deviations)
{
    enum { N = 200 };
    static const double mean[] = {0, 1e5, -1e7, 0, 0}, size[] = {1, 1, 100, 1e19, 1e-18};
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int i = 0; i < 5; i++)
        for (int axis = -1; axis < 2; axis++) {
            TAPE(SB_NO_RECORD);
            double values[N];
            for (int k = 0; k < N; k++)
                values[k] = mean[i] + size[i] * sb_random_normal(&random);
            const int64_t dim[2] = {axis == 0 ? N : 1, axis == 0 ? 1 : N};
            sb_tensor *x = constant(SB_F32, 2, dim, N, values);
            const double exact = sb_tensor_get(
                sb_variance(sb_cast(x, SB_F64), axis < 0 ? SB_ALL : axis, 1, false), 0);
            const double got = sb_tensor_get(sb_variance(x, axis < 0 ? SB_ALL : axis, 1, false), 0);
            cr_expect(fabs(got - exact) <= 1e-6 * exact,
                      "mean %g, size %g, axis %d: %g, not %g: %.2g", mean[i], size[i], axis, got,
                      exact, fabs(got - exact) / exact);
        }
}

TEST(variance, of_all_elements_and_of_a_kept_axis)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = constant(SB_F64, SB_SHAPE(3, 1), NUMBERS(1, 2, 6));
    cr_expect(fabs(sb_tensor_value(sb_variance(x, SB_ALL, 0, false)) - 14 / 3.0) < 1e-14);
    expect_shape(sb_variance(x, 0, 0, true), SB_SHAPE(1, 1));
}

TEST(variance, it_is_infinite_where_differences_overflow)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x =
        constant(SB_F32, SB_SHAPE(2, 4), NUMBERS(-3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38));
    sb_tensor *y = constant(SB_F64, SB_SHAPE(2), NUMBERS(-1e308, 1e308));
    for (int axis = -1; axis < 2; axis++)
        cr_expect(sb_tensor_get(sb_variance(x, axis < 0 ? SB_ALL : axis, 1, false), 0) == INFINITY);
    cr_expect(sb_tensor_get(sb_variance(x, 1, 1, false), 1) == 0);
    cr_expect(sb_tensor_get(sb_variance(y, 0, 1, false), 0) == INFINITY);
}
