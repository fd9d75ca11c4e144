/* Sums, means and other reductions, and softmax. */
#include "ops/loss.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "tests/support/compare.h"

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
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);) {
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

/* Softmax and norms over any axis, against loops over the indices of (outer, C, inner). */

enum { RANK = 3 };

static const int64_t extents[RANK] = {3, 4, 5};

/* y from a row of C numbers. */
typedef void row_function(int64_t C, const double *x, double *y);

static void softmax_row(int64_t C, const double *x, double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < C; i++)
        sum += exp(x[i]);
    for (int64_t i = 0; i < C; i++)
        y[i] = exp(x[i]) / sum;
}

static void log_softmax_row(int64_t C, const double *x, double *y)
{
    softmax_row(C, x, y);
    for (int64_t i = 0; i < C; i++)
        y[i] = log(y[i]);
}

static void l2_row(int64_t C, const double *x, double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < C; i++)
        sum += x[i] * x[i];
    for (int64_t i = 0; i < C; i++)
        y[i] = x[i] / sqrt(sum);
}

/* With gain 1 + i and epsilon 0.1. */
static void rms_row(int64_t C, const double *x, double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < C; i++)
        sum += x[i] * x[i];
    for (int64_t i = 0; i < C; i++)
        y[i] = (1 + (double)i) * x[i] / sqrt(sum / (double)C + 0.1);
}

static void layer_row(int64_t C, const double *x, double *y)
{
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < C; i++)
        mean += x[i] / (double)C;
    for (int64_t i = 0; i < C; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    for (int64_t i = 0; i < C; i++)
        y[i] = (1 + (double)i) * (x[i] - mean) / sqrt(sum / (double)C + 0.1) - (double)i;
}

/* 1 + i, and -i. */
static sb_tensor *gain_of(int axis)
{
    const double values[] = {1, 2, 3, 4, 5};
    return sb_tape_own(sb_tensor_from_doubles(SB_F64, 1, &extents[axis], values));
}

static sb_tensor *bias_of(int axis)
{
    const double values[] = {0, -1, -2, -3, -4};
    return sb_tape_own(sb_tensor_from_doubles(SB_F64, 1, &extents[axis], values));
}

static void expect_rows(const sb_tensor *y, const double *x, int axis, row_function *row)
{
    MUST(y);
    expect_shape(y, RANK, extents);
    double *numbers = numbers_of(y), in[5], out[5];
    int64_t inner = 1, C = extents[axis];
    for (int i = axis + 1; i < RANK; i++)
        inner *= extents[i];
    for (int64_t start = 0; start < 60; start++) {
        if (start / inner % C != 0)
            continue; /* not the first of a row */
        for (int64_t i = 0; i < C; i++)
            in[i] = x[start + i * inner];
        row(C, in, out);
        for (int64_t i = 0; i < C; i++)
            cr_expect(fabs(numbers[start + i * inner] - out[i]) < 1e-13, "axis %d", axis);
    }
}

TEST(over_axis, each_axis_agrees_with_loops_over_its_rows)
{
    for (int axis = 0; axis < RANK; axis++)
        for (int from_last = 0; from_last < 2; from_last++) {
            const int named = from_last ? axis - RANK : axis;
            TAPE(SB_NO_RECORD);
            sb_tensor *x = test_leaf(SB_F64, 1, RANK, extents);
            double *values = numbers_of(x);
            expect_rows(sb_softmax_over(x, named), values, axis, softmax_row);
            expect_rows(sb_log_softmax_over(x, named), values, axis, log_softmax_row);
            expect_rows(sb_l2_normalize_over(x, named), values, axis, l2_row);
            expect_rows(sb_rms_norm_over(x, named, gain_of(axis), 0.1), values, axis, rms_row);
            expect_rows(sb_layer_norm_over(x, named, gain_of(axis), bias_of(axis), 0.1), values,
                        axis, layer_row);
            sb_tensor *rows = sb_log(sb_sum(sb_exp(x), axis, false));
            cr_expect(test_relative(sb_logsumexp_over(x, named), rows) < 1e-14);
        }
}

TEST(over_axis, the_last_axis_is_the_operation_itself)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = test_leaf(SB_F32, 1, RANK, extents);
    cr_expect(test_same_bits(sb_softmax_over(x, 2), sb_softmax(x)));
    cr_expect(test_same_bits(sb_logsumexp_over(x, -1), sb_logsumexp(x)));
}

/* ---- variance ---- */

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

/* ---- mean squared error ---- */

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

/* ---- softmax ---- */

/* softmax(0, ln 2, ln 4) = (1, 2, 4) / 7, worked by hand. */
TEST(softmax, three_scores_give_the_hand_worked_weights)
{
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_from_doubles(
        SB_F64, SB_SHAPE(3), (double[]){0, 0.6931471805599453, 1.3862943611198906}));
    sb_tensor *y = MUST(sb_softmax(x));
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(sb_tensor_get(y, i) - (1 << i) / 7.0) < 1e-15);
}

/* With dy = (1, 0, 0): dx = y (dy - y_0), by hand (6/49, -2/49, -4/49). */
TEST(softmax, backward_gives_the_hand_worked_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(3), NUMBERS(0, 0.6931471805599453, 1.3862943611198906));
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(3), NUMBERS(1, 0, 0));
    MUST(sb_backward_from(sb_softmax(x), dy));
    const double expected[] = {6 / 49.0, -2 / 49.0, -4 / 49.0};
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), i) - expected[i]) < 1e-15);
}

TEST(softmax, scores_of_1000_do_not_overflow)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(2), 1000));
    sb_tensor *y = sb_softmax(x);
    cr_expect(sb_tensor_get(y, 0) == 0.5 && sb_tensor_get(y, 1) == 0.5);
}

TEST(softmax, a_nan_or_an_infinity_propagates)
{
    TAPE(SB_NO_RECORD);
    for (int place = 0; place < 3; place++) {
        double values[3] = {1, 2, 3};
        values[place] = NAN;
        sb_tensor *y = sb_softmax(sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(3), values)));
        cr_expect(isnan(sb_tensor_get(y, 0)) && isnan(sb_tensor_get(y, 2)));
        values[place] = INFINITY;
        y = sb_softmax(sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(3), values)));
        cr_expect(isnan(sb_tensor_get(y, place)));
    }
}

/* ---- log softmax ---- */

/* softmax(0, ln 2, ln 4) = (1, 2, 4) / 7, worked by hand. */
TEST(log_softmax, three_scores_give_the_hand_worked_logarithms)
{
    TAPE(SB_RECORD);
    sb_tensor *y =
        MUST(sb_log_softmax(owned(SB_F64, SB_SHAPE(3), (double[]){0, 1 * M_LN2, 2 * M_LN2})));
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(sb_tensor_get(y, i) - log((1 << i) / 7.0)) < 1e-15);
}

/* With dy = (1, 0, 0): dx = dy - softmax(x) = (6, -2, -4) / 7. */
TEST(log_softmax, backward_gives_the_hand_worked_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(3), NUMBERS(0, 1 * M_LN2, 2 * M_LN2));
    sb_tensor *dy = owned(SB_F64, SB_SHAPE(3), (double[]){1, 0, 0});
    MUST(sb_backward_from(sb_log_softmax(x), dy));
    const double expected[] = {6 / 7.0, -2 / 7.0, -4 / 7.0};
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), i) - expected[i]) < 1e-15);
}

FUNCTION(fused, sb_log_softmax(x[0]))
FUNCTION(composed, sb_log(sb_softmax(x[0])))

TEST(log_softmax, it_is_the_logarithm_of_softmax)
{
    EXPECT_SAME_FUNCTION(fused, composed, "1", "2", "7", "3x5", "2x3x63", "64", "3x65");
}

/* Where softmax is 0 in the dtype, its logarithm would be -infinity. */
TEST(log_softmax, small_probabilities_keep_their_logarithm)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *y = sb_log_softmax(owned(SB_F32, SB_SHAPE(2), (double[]){1000, -1000}));
    cr_expect(sb_tensor_get(y, 0) == 0 && sb_tensor_get(y, 1) == -2000);
    y = sb_log_softmax(owned(SB_F32, SB_SHAPE(2), (double[]){-1000, -3000}));
    cr_expect(sb_tensor_get(y, 0) == 0 && sb_tensor_get(y, 1) == -2000, "scores far below 0");
}

TEST(log_softmax, a_score_of_1000_does_not_overflow_at_any_position)
{
    TAPE(SB_NO_RECORD);
    for (int64_t C = 1; C < 70; C++)
        for (int64_t place = 0; place < C; place++) {
            sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(C)));
            sb_tensor_set(x, place, 1000);
            cr_expect(sb_tensor_get(sb_log_softmax(x), place) == 0, "%lld of %lld",
                      (long long)place, (long long)C);
        }
}

TEST(log_softmax, a_nan_or_an_infinity_propagates)
{
    TAPE(SB_NO_RECORD);
    for (int place = 0; place < 40; place++) {
        double values[40] = {0};
        values[place] = NAN;
        sb_tensor *y = sb_log_softmax(owned(SB_F32, SB_SHAPE(40), values));
        cr_expect(isnan(sb_tensor_get(y, 0)) && isnan(sb_tensor_get(y, 39)));
        values[place] = INFINITY;
        y = sb_log_softmax(owned(SB_F32, SB_SHAPE(40), values));
        cr_expect(isnan(sb_tensor_get(y, place)));
    }
}

CPU_TEST(log_softmax, an_empty_input_gives_an_empty_result)
{
    TAPE(SB_NO_RECORD);
    cr_expect(sb_tensor_size(sb_log_softmax(owned(SB_F32, SB_SHAPE(3, 0), (double[]){0}))) == 0);
    cr_expect(sb_tensor_dim(sb_log_softmax(owned(SB_F32, SB_SHAPE(0, 3), (double[]){0})), 1) == 3);
}

TEST(log_softmax, a_row_has_the_same_bits_at_any_position)
{
    expect_row_function(sb_log_softmax);
}

enum { ROWS = 3, MOST = 1000 };

/* Numbers of few values, so that there are ties; a bias rules out the largest of some rows. */
static sb_tensor *scores_of(sb_dtype dtype, int64_t C, double odd)
{
    sb_random random = sb_random_new((uint64_t)C, SB_STREAM_USER);
    double values[ROWS * MOST];
    for (int64_t i = 0; i < ROWS * C; i++)
        values[i] = floor(40 * sb_random_uniform(&random)) / 7;
    values[C / 2] = odd;
    return owned(dtype, SB_SHAPE(ROWS, C), values);
}

static sb_tensor *log_softmax_bias_of(sb_dtype dtype, int64_t C)
{
    double values[MOST] = {0};
    for (int64_t c = 0; c < C; c++)
        values[c] = c % 5 == 0 ? -INFINITY : 0;
    return owned(dtype, SB_SHAPE(C), values);
}

static void expect_best_as_composed(sb_dtype dtype, int64_t C, double odd)
{
    int32_t index[ROWS];
    double value[ROWS];
    sb_tensor *x = scores_of(dtype, C, odd), *bias = log_softmax_bias_of(dtype, C),
              *y = sb_log_softmax(x);
    sb_tensor *best = sb_argmax(sb_add(y, bias), -1), *found = sb_gather(y, best);
    MUST(found);
    if (!log_softmax_best(x, bias, index, value)) {
        cr_expect(sb_tensor_device(x) != sb_device_cpu());
        return;
    }
    for (int64_t r = 0; r < ROWS; r++) {
        double expected = sb_tensor_get(found, r);
        cr_expect(index[r] == (int32_t)sb_tensor_get(best, r), "%lld scores", (long long)C);
        cr_expect(value[r] == expected || (isnan(value[r]) && isnan(expected)));
    }
}

/* On every set of kernels: the same index and the same bits. */
TEST(log_softmax, the_best_score_is_that_of_argmax_and_gather)
{
    const double odd[] = {1, 50, -INFINITY, INFINITY, NAN};
    const int64_t sizes[] = {1, 2, 7, 65, 255, 256, 257, 512, 513, MOST};
    TAPE(SB_NO_RECORD);
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t j = 0; j < sizeof odd / sizeof *odd; j++) {
                expect_best_as_composed(SB_F32, sizes[i], odd[j]);
                expect_best_as_composed(SB_F64, sizes[i], odd[j]);
            }
}

/* ---- logsumexp ---- */

/* ln(1 + 2 + 4) = ln 7 */
TEST(logsumexp, three_scores_give_the_hand_worked_value)
{
    TAPE(SB_RECORD);
    sb_tensor *y =
        MUST(sb_logsumexp(owned(SB_F64, SB_SHAPE(1, 3), (double[]){0, 1 * M_LN2, 2 * M_LN2})));
    cr_expect(sb_tensor_rank(y) == 1 && sb_tensor_dim(y, 0) == 1);
    cr_expect(fabs(sb_tensor_get(y, 0) - log(7)) < 1e-15);
}

/* dx = dy softmax(x) = 14 (1, 2, 4) / 7 */
TEST(logsumexp, backward_gives_the_hand_worked_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(3), NUMBERS(0, 1 * M_LN2, 2 * M_LN2));
    MUST(sb_backward_from(sb_logsumexp(x), sb_tape_own(sb_tensor_scalar(SB_F64, 14))));
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), i) - 2 * (1 << i)) < 1e-14);
}

/* The output of bf16 is off by 1.8. */
TEST(logsumexp, gradients_of_bf16_sum_to_1)
{
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tensor_requires_grad(
        owned(SB_BF16, SB_SHAPE(8), (double[]){1000, 996, 1000, 1000, 992, 1000, 1000, 1000}));
    MUST(sb_backward(sb_logsumexp(x)));
    double sum = 0;
    for (int i = 0; i < 8; i++)
        sum += sb_tensor_get(sb_tensor_grad(x), i);
    cr_expect(fabs(sum - 1) < 0.01, "%g", sum);
}

FUNCTION(logsumexp_fused, sb_logsumexp(x[0]))
FUNCTION(logsumexp_composed, sb_log(sb_sum(sb_exp(x[0]), -1, false)))

TEST(logsumexp, it_is_the_logarithm_of_the_sum_of_exponentials)
{
    EXPECT_SAME_FUNCTION(logsumexp_fused, logsumexp_composed, "1", "2", "7", "3x5", "2x3x63", "64",
                         "3x65");
}

static double of_two(double a, double b)
{
    return sb_tensor_value(sb_logsumexp(owned(SB_F32, SB_SHAPE(2), (double[]){a, b})));
}

TEST(logsumexp, large_and_infinite_scores_give_their_limit)
{
    TAPE(SB_NO_RECORD);
    cr_expect(of_two(1000, 0) == 1000 && of_two(-1000, -2000) == -1000);
    cr_expect(of_two(INFINITY, 0) == INFINITY);
    cr_expect(of_two(-INFINITY, 3) == 3);
    cr_expect(of_two(-INFINITY, -INFINITY) == -INFINITY);
    cr_expect(isnan(of_two(NAN, 0)) && isnan(of_two(0, NAN)) && isnan(of_two(NAN, INFINITY)) &&
              isnan(of_two(-INFINITY, NAN)));
}

TEST(logsumexp, the_value_of_an_empty_row_is_minus_infinity)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *y = sb_logsumexp(owned(SB_F64, SB_SHAPE(2, 0), (double[]){0}));
    cr_expect(sb_tensor_get(y, 0) == -INFINITY && sb_tensor_get(y, 1) == -INFINITY);
}

TEST(logsumexp, a_row_has_the_same_bits_at_any_position)
{
    expect_row_function(sb_logsumexp);
}
