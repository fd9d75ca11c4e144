/* Norms of rows. */
#include "autograd/node.h"
#include "tests/support/compare.h"

/* x = (1, 3): m = 2, v = 1, s = sqrt(1 + 3) = 2, h = (-1/2, 1/2); y = gain h + bias. */
TEST(layer_norm, two_numbers_give_the_hand_worked_values)
{
    TAPE(SB_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(2), (double[]){1, 3});
    sb_tensor *gain = owned(SB_F64, SB_SHAPE(2), (double[]){4, 6});
    sb_tensor *bias = owned(SB_F64, SB_SHAPE(2), (double[]){10, 20});
    sb_tensor *y = sb_layer_norm(x, gain, bias, 3);
    cr_expect(sb_tensor_get(y, 0) == 8 && sb_tensor_get(y, 1) == 23);
    y = sb_layer_norm(x, gain, NULL, 3);
    cr_expect(sb_tensor_get(y, 0) == -2 && sb_tensor_get(y, 1) == 3);
}

/*
 * The same x with dy = (1, 1): u = (4, 6), mean u = 5, mean(u h) = 1/2,
 * dx = (u - 5 - h/2) / 2 = (-3/8, 3/8); dgain = dy h, dbias = dy.
 */
TEST(layer_norm, backward_gives_the_hand_worked_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(1, 3)), *gain = leaf(SB_SHAPE(2), NUMBERS(4, 6));
    sb_tensor *bias = leaf(SB_SHAPE(2), NUMBERS(0, 0));
    sb_tensor *dy = owned(SB_F64, SB_SHAPE(2), (double[]){1, 1});
    MUST(sb_backward_from(sb_layer_norm(x, gain, bias, 3), dy));
    expect_exact_numbers(sb_tensor_grad(x), NUMBERS(-0.375, 0.375));
    expect_exact_numbers(sb_tensor_grad(gain), NUMBERS(-0.5, 0.5));
    expect_exact_numbers(sb_tensor_grad(bias), NUMBERS(1, 1));
}

/* (x - m) / sqrt(v + epsilon), step by step. */
static sb_tensor *normed(sb_tensor *x, double epsilon)
{
    sb_tensor *centred = sb_subtract(x, sb_mean(x, -1, true));
    sb_tensor *variance = sb_mean(sb_multiply(centred, centred), -1, true);
    sb_tensor *added = sb_tape_own(sb_tensor_scalar(SB_F64, epsilon));
    return sb_divide(centred, sb_sqrt(sb_add(variance, added)));
}

FUNCTION(fused, sb_layer_norm(x[0], x[1], x[2], 0))
FUNCTION(composed, sb_add(sb_multiply(x[1], normed(x[0], 1e-5)), x[2]))

TEST(layer_norm, it_is_the_composition_of_its_steps)
{
    EXPECT_SAME_FUNCTION(fused, composed, "2 2 2", "7 7 7", "3x5 5 5", "2x3x63 63 63", "3x64 64 64",
                         "200x2 2 2", "=3x5 5 5", "3x5 =5 5", "3x65 65 =65", "65x65 65 65");
}

FUNCTION(without_epsilon, sb_layer_norm(x[0], x[1], x[2], SB_ZERO))
FUNCTION(composed_without_epsilon, sb_add(sb_multiply(x[1], normed(x[0], 0)), x[2]))

/* At x of about 1e-3 the default of 1e-5 would be a tenth of the variance. */
TEST(layer_norm, its_epsilon_may_be_zero)
{
    expect_same_function(without_epsilon, composed_without_epsilon, "3x5 5 5");
    TAPE(SB_NO_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(2, 2), (double[]){1e-3, 3e-3, 7, 7});
    sb_tensor *gain = owned(SB_F64, SB_SHAPE(2), (double[]){1, 1});
    sb_tensor *y = sb_layer_norm(x, gain, NULL, SB_ZERO);
    cr_expect(fabs(sb_tensor_get(y, 0) + 1) < 1e-12 && fabs(sb_tensor_get(y, 1) - 1) < 1e-12);
    cr_expect(isnan(sb_tensor_get(y, 2)), "a row without variance is 0 / 0");
}

/* The sum is used twice, as by the next residual. */
FUNCTION_HEAD(residual)
{
    sb_tensor *sum, *y = sb_residual_layer_norm(x[0], x[1], 0, x[2], x[3], 0.1, &sum);
    return sb_add(y, sb_scale(sum, 3));
}

FUNCTION_HEAD(residual_composed)
{
    sb_tensor *sum = sb_add(x[0], x[1]);
    return sb_add(sb_layer_norm(sum, x[2], x[3], 0.1), sb_scale(sum, 3));
}

TEST(layer_norm, with_a_residual_it_is_add_and_layer_norm)
{
    EXPECT_SAME_FUNCTION(residual, residual_composed, "2 2 2 2", "3x5 3x5 5 5",
                         "2x3x63 2x3x63 63 63", "=65x65 65x65 65 65", "3x5 =3x5 5 5");
}

/* Restarts the stream and gives it to the open tape. */
static sb_random *stream(void)
{
    static sb_random random;
    random = sb_random_new(5, SB_STREAM_TRAIN);
    return tape_open()->random = &random;
}

FUNCTION_HEAD(dropped)
{
    stream();
    sb_tensor *sum, *y = sb_residual_layer_norm(x[0], x[1], 0.3, x[2], x[3], 0.1, &sum);
    return sb_add(y, sb_scale(sum, 3));
}

FUNCTION_HEAD(dropped_before)
{
    stream();
    sb_tensor *branch = sb_dropout(x[1], 0.3);
    sb_tensor *sum, *y = sb_residual_layer_norm(x[0], branch, 0, x[2], x[3], 0.1, &sum);
    return sb_add(y, sb_scale(sum, 3));
}

FUNCTION_HEAD(dropped_composed)
{
    stream();
    sb_tensor *sum = sb_residual_dropout(x[0], x[1], 0.3);
    return sb_add(sb_layer_norm(sum, x[2], x[3], 0.1), sb_scale(sum, 3));
}

/* Rows that begin and end within the eight elements of a counter, and within a chunk of bits. */
static const char *const dropped_shapes[] = {
    "2 2 2 2",         "3x5 3x5 5 5",         "2x3x63 2x3x63 63 63",
    "7x64 7x64 64 64", "=65x65 65x65 65 65",  "3x300 3x300 300 300",
    "3x5 =3x5 5 5",    "=3x300 3x300 300 300"};

TEST(layer_norm, with_dropout_it_is_residual_dropout_and_layer_norm)
{
    for (size_t i = 0; i < sizeof dropped_shapes / sizeof *dropped_shapes; i++)
        expect_same_function(dropped, dropped_composed, dropped_shapes[i]);
    expect_same_function(dropped, dropped_composed, "2x1100 2x1100 1100 1100");
}

FUNCTION(dropped_doubled, dropped(context, (sb_tensor *[]){x[0], x[0], x[1], NULL}))
FUNCTION(doubled_dropped_before, dropped_before(context, (sb_tensor *[]){x[0], x[0], x[1], NULL}))

static void expect_same_bits(sb_function f, sb_function g, sb_dtype dtype, const char *shapes)
{
    const struct inputs in = inputs_new(shapes, dtype, 5);
    sb_tensor *df[EXAMPLE_INPUTS], *dg[EXAMPLE_INPUTS];
    sb_tensor *yf = run_with_gradients(f, in.x, in.n, df),
              *yg = run_with_gradients(g, in.x, in.n, dg);
    cr_expect(test_same_bits(yf, yg), "\"%s\": values differ", shapes);
    for (int i = 0; i < in.n; i++)
        cr_expect(!df[i] || test_same_bits(df[i], dg[i]), "\"%s\": gradients of input %d differ",
                  shapes, i);
}

/* The weights of a trained model must not depend on which of the two it uses. */
CPU_TEST(layer_norm, with_dropout_it_has_the_same_bits_as_dropout_before_it)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (sb_dtype dtype = SB_F32; dtype <= SB_F64; dtype++) {
            for (size_t i = 0; i < sizeof dropped_shapes / sizeof *dropped_shapes; i++)
                expect_same_bits(dropped, dropped_before, dtype, dropped_shapes[i]);
            expect_same_bits(dropped_doubled, doubled_dropped_before, dtype, "3x300 300");
        }
}

TEST(layer_norm, dropout_of_the_branch_uses_one_position_of_the_stream)
{
    FAILED_TAPE(SB_RECORD);
    sb_tape_random(&tape, NULL);
    sb_tensor *x = owned(SB_F32, SB_SHAPE(2), (double[]){1, 3}), *sum;
    cr_expect(sb_residual_layer_norm(x, x, 0.5, x, NULL, 0, &sum));
    cr_expect(sb_tensor_get(sum, 0) == 2 && sb_tensor_get(sum, 1) == 6,
              "without a stream nothing is dropped");
    const sb_random *random = stream();
    const uint64_t begin = random->position;
    cr_expect(sb_residual_layer_norm(x, x, 0, x, NULL, 0, &sum) && random->position == begin);
    cr_expect(sb_residual_layer_norm(x, x, 0.5, x, NULL, 0, &sum));
    cr_expect(random->position == begin + 1);
    cr_expect(!sb_residual_layer_norm(x, x, 1, x, NULL, 0, &sum) && random->position == begin + 1);
    EXPECT_ERROR("residual_layer_norm: the probability to drop is 1; it must be in [0, 1)");
}

FUNCTION_HEAD(doubled)
{
    sb_tensor *sum;
    return sb_residual_layer_norm(x[0], x[0], 0, x[1], NULL, 0.1, &sum);
}

FUNCTION(doubled_composed, sb_layer_norm(sb_scale(x[0], 2), x[1], NULL, 0.1))

FUNCTION_HEAD(only_the_sum)
{
    sb_tensor *sum;
    return sb_residual_layer_norm(x[0], x[1], 0, x[2], x[3], 0.1, &sum) ? sum : NULL;
}

FUNCTION(only_the_sum_composed, sb_add(sb_add(x[0], x[1]), sb_scale(sb_multiply(x[2], x[3]), 0)))

TEST(layer_norm, one_tensor_may_be_both_x_and_branch)
{
    expect_same_function(doubled, doubled_composed, "3x5 5");
}

TEST(layer_norm, a_gradient_of_the_sum_alone_reaches_the_inputs)
{
    expect_same_function(only_the_sum, only_the_sum_composed, "3x5 3x5 5 5");
}

/* Values whose mean is not exact in f32, and large compared with epsilon. */
TEST(layer_norm, a_row_without_variance_gives_the_bias)
{
    TAPE(SB_NO_RECORD);
    for (int64_t C = 1; C < 70; C++) {
        sb_tensor *x = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(C), 123456.789));
        sb_tensor *gain = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(C), 2));
        sb_tensor *bias = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(C), 0.25));
        sb_tensor *y = sb_layer_norm(x, gain, bias, 0);
        for (int64_t i = 0; i < C; i++)
            cr_expect(sb_tensor_get(y, i) == 0.25, "C = %lld: %g", (long long)C,
                      sb_tensor_get(y, i));
    }
}

/* The mean's rounding error is as large as the deviation, 1/16: x - m and v must correct it. */
TEST(layer_norm, a_rounded_mean_does_not_change_the_variance)
{
    TAPE(SB_NO_RECORD);
    for (int64_t C = 2; C < 200; C += 2) {
        sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(C)));
        for (int64_t i = 0; i < C; i++)
            sb_tensor_set(x, i, 1e6 + (double)(i % 2) / 8);
        sb_tensor *gain = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(C), 1));
        sb_tensor *y = sb_layer_norm(x, gain, NULL, 0);
        for (int64_t i = 0; i < C; i++)
            cr_expect(fabs(sb_tensor_get(y, i) - (i % 2 ? 1 : -1)) < 0.01, "C = %lld: %g",
                      (long long)C, sb_tensor_get(y, i));
    }
}

/* By E[x^2] - m^2 the variance of these would be lost: m^2 = 1e8, v = 1.25, ulp(1e8) = 8. */
TEST(layer_norm, a_large_mean_does_not_hide_the_variance)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = owned(SB_F32, SB_SHAPE(4), (double[]){10000, 10001, 10002, 10003});
    sb_tensor *gain = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(4), 1));
    sb_tensor *y = sb_layer_norm(x, gain, NULL, 0);
    for (int i = 0; i < 4; i++)
        cr_expect(fabs(sb_tensor_get(y, i) - (i - 1.5) / sqrt(1.25 + 1e-5)) < 1e-6);
}

/* A norm of rows like `like`, `size` times as large, and its gradient times that size. */
static sb_tensor *norm_and_gradient(sb_dtype dtype, const sb_tensor *like, double size, bool rms)
{
    const int64_t C = sb_tensor_dim(like, 1);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = test_leaf(dtype, 1, SB_SHAPE(2, C));
    sb_tensor *gain = test_leaf(dtype, 2, SB_SHAPE(C));
    sb_tensor *dy = test_leaf(dtype, 3, SB_SHAPE(2, C));
    double *numbers = numbers_of(like);
    for (int64_t i = 0; i < 2 * C; i++)
        numbers[i] *= size;
    sb_tensor_write(x, numbers);
    const double epsilon = size > 1 ? 0 : SB_ZERO;
    sb_tensor *y =
        sb_keep(rms ? sb_rms_norm(x, gain, epsilon) : sb_layer_norm(x, gain, NULL, epsilon));
    MUST(sb_backward_from(y, dy));
    sb_tensor *both[] = {y, sb_scale(sb_tensor_grad(x), size)};
    sb_tensor *result = sb_cast(sb_concatenate(both, 2, 0), SB_F64);
    cr_expect(sb_tape_end_keep(&tape, result), "%s", sb_error());
    return result;
}

/* How much these differ from those of rows in (-1, 3). */
static double error_of_size(sb_dtype dtype, double size, int64_t C, bool rms)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *like = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2, C)));
    double *numbers = numbers_of(like);
    for (int64_t i = 0; i < 2 * C; i++) /* in the second row sums of one sign overflow too */
        numbers[i] = sin((double)(i + 1)) + (i < C ? 0 : 2);
    sb_tensor_write(like, numbers);
    sb_tensor *expected = norm_and_gradient(SB_F64, like, 1, rms);
    return test_relative(norm_and_gradient(dtype, like, size, rms), expected);
}

/* Squares of finite numbers overflow; a norm does not. Compares with rows that are 1 / size as
 * large. */
TEST(layer_norm, squares_do_not_overflow)
{
    static const struct {
        sb_dtype dtype;
        double size;
    } cases[] = {{SB_F32, 1e20}, {SB_F32, 1e38}, {SB_BF16, 1e20}, {SB_BF16, 1e38}, {SB_F64, 1e300}};
    static const int64_t lengths[] = {2, 70, 600, 9000}; /* each group of threads on a device */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += test_sanitized() ? 2 : 1)
        for (int l = 0; l < 4; l++)
            for (int rms = 0; rms < 2; rms++) {
                const double error = error_of_size(cases[i].dtype, cases[i].size, lengths[l], rms);
                /* 1 / s of 1e38 is subnormal */
                const double limit = cases[i].dtype == SB_BF16 ? 0.02
                                     : cases[i].size == 1e38   ? 1e-4
                                                               : 1e-5;
                cr_expect(error <= limit, "%s, %g, %d: %g", sb_dtype_name(cases[i].dtype),
                          cases[i].size, (int)lengths[l], error);
            }
}

/* Their sum overflows too. */
TEST(layer_norm, large_equal_numbers_have_no_variance)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *gain = owned(SB_F32, SB_SHAPE(8), (double[]){1, 1, 1, 1, 1, 1, 1, 1});
    double x[8] = {3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38};
    sb_tensor *y = sb_layer_norm(owned(SB_F32, SB_SHAPE(8), x), gain, NULL, 0);
    for (int i = 0; i < 8; i++)
        cr_expect(sb_tensor_get(y, i) == 0, "%g", sb_tensor_get(y, i));
}

TEST(layer_norm, a_nan_or_an_infinity_propagates)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *gain = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(3), 1)), *sum;
    for (int place = 0; place < 3; place++) {
        double values[3] = {1, 2, 3};
        values[place] = place == 1 ? INFINITY : NAN;
        sb_tensor *x = owned(SB_F32, SB_SHAPE(3), values);
        cr_expect(isnan(sb_tensor_get(sb_layer_norm(x, gain, NULL, 0), place)));
        cr_expect(
            isnan(sb_tensor_get(sb_residual_layer_norm(gain, x, 0, gain, NULL, 0, &sum), place)));
    }
}

static sb_tensor *with_gain(sb_tensor *x)
{
    int64_t C = sb_tensor_dim(x, -1);
    sb_tensor *gain = test_leaf(SB_F32, 1, SB_SHAPE(C));
    sb_tensor *bias = test_leaf(SB_F32, 2, SB_SHAPE(C));
    return sb_layer_norm(x, gain, bias, 0);
}

TEST(layer_norm, a_row_has_the_same_bits_at_any_position)
{
    expect_row_function(with_gain);
}

/* dgain and dbias of 1000 rows: slabs must not depend on the number of threads. */
CPU_TEST(layer_norm, gradients_have_the_same_bits_for_any_number_of_threads)
{
    int usual = sb_threads();
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(1000, 67));
    sb_tensor *gain = test_leaf(SB_F32, 2, SB_SHAPE(67)),
              *bias = test_leaf(SB_F32, 3, SB_SHAPE(67));
    sb_tensor *const inputs[] = {x, gain, bias};
    sb_tensor *dx[2][3];
    for (int i = 0; i < 2; i++) {
        cr_assert(sb_set_threads(i == 0 ? 1 : 3));
        run_with_gradients(fused, inputs, 3, dx[i]);
    }
    sb_set_threads(usual);
    for (int i = 0; i < 3; i++)
        cr_expect(test_same_bits(dx[0][i], dx[1][i]),
                  "the gradient of input %d depends on the threads", i);
}

TEST(layer_norm, an_empty_input_gives_an_empty_result)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *gain = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(3)));
    sb_tensor *none = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0)));
    cr_expect(sb_tensor_size(sb_layer_norm(sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3))),
                                           gain, NULL, 0)) == 0);
    cr_expect(sb_tensor_size(sb_layer_norm(sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(3, 0))),
                                           none, NULL, 0)) == 0);
}

/* ---- rms norm ---- */

/* x = (1, 7): mean(x^2) = 25, s = 5; y = gain x / 5. */
TEST(rms_norm, two_numbers_give_the_hand_worked_values)
{
    TAPE(SB_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(2), (double[]){1, 7});
    sb_tensor *gain = owned(SB_F64, SB_SHAPE(2), (double[]){10, 20});
    sb_tensor *y = sb_rms_norm(x, gain, SB_ZERO);
    cr_expect(fabs(sb_tensor_get(y, 0) - 2) < 1e-15 && fabs(sb_tensor_get(y, 1) - 28) < 1e-14);
    y = sb_rms_norm(x, gain, 11); /* s = 6 */
    cr_expect(fabs(sb_tensor_get(y, 0) - 10 / 6.0) < 1e-15);
}

/* With dy = (1, 0): u = (10, 0), h = (0.2, 1.4), mean(u h) = 1, dx = (u - h) / 5. */
TEST(rms_norm, backward_gives_the_hand_worked_gradients)
{
    sb_tensor *x = KEPT(
        sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(2), (double[]){1, 7})));
    sb_tensor *gain = KEPT(
        sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(2), (double[]){10, 20})));
    TAPE(SB_RECORD);
    sb_tensor *dy = owned(SB_F64, SB_SHAPE(2), (double[]){1, 0});
    MUST(sb_backward_from(sb_rms_norm(x, gain, SB_ZERO), dy));
    cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), 0) - 1.96) < 1e-14);
    cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), 1) + 0.28) < 1e-14);
    cr_expect(fabs(sb_tensor_get(sb_tensor_grad(gain), 0) - 0.2) < 1e-15 &&
              sb_tensor_get(sb_tensor_grad(gain), 1) == 0);
}

FUNCTION(rms_norm_fused, sb_rms_norm(x[0], x[1], 0))

FUNCTION_HEAD(rms_norm_composed)
{
    sb_tensor *square = sb_mean(sb_multiply(x[0], x[0]), -1, true);
    sb_tensor *epsilon = sb_tape_own(sb_tensor_scalar(SB_F64, 1e-6));
    return sb_multiply(x[1], sb_divide(x[0], sb_sqrt(sb_add(square, epsilon))));
}

TEST(rms_norm, it_is_the_composition_of_its_steps)
{
    EXPECT_SAME_FUNCTION(rms_norm_fused, rms_norm_composed, "2 2", "7 7", "3x5 5", "2x3x63 63",
                         "3x64 64", "=3x5 5", "65x65 65", "3x5 =5", "c2:200x2 2");
}

TEST(rms_norm, a_row_of_zeros_stays_zero)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *gain = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(5), 3));
    sb_tensor *y = sb_rms_norm(sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(5))), gain, 0);
    cr_expect(largest_of(y) == 0);
}

TEST(rms_norm, a_nan_or_an_infinity_propagates)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *gain = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(2), 1));
    for (int place = 0; place < 2; place++) {
        double values[2] = {1, 1};
        values[place] = NAN;
        sb_tensor *y = sb_rms_norm(owned(SB_F32, SB_SHAPE(2), values), gain, 0);
        cr_expect(isnan(sb_tensor_get(y, 0)) && isnan(sb_tensor_get(y, 1)));
        values[place] = INFINITY;
        y = sb_rms_norm(owned(SB_F32, SB_SHAPE(2), values), gain, 0);
        cr_expect(isnan(sb_tensor_get(y, place)));
    }
}

static sb_tensor *rms_norm_with_gain(sb_tensor *x)
{
    return sb_rms_norm(x, test_leaf(SB_F32, 1, SB_SHAPE(sb_tensor_dim(x, -1))), 0);
}

TEST(rms_norm, a_row_has_the_same_bits_at_any_position)
{
    expect_row_function(rms_norm_with_gain);
}

/* ---- l2 normalize ---- */

TEST(l2_normalize, two_numbers_give_the_hand_worked_values)
{
    TAPE(SB_RECORD);
    sb_tensor *y = sb_l2_normalize(owned(SB_F64, SB_SHAPE(2), (double[]){3, -4}));
    cr_expect(fabs(sb_tensor_get(y, 0) - 0.6) < 1e-15 && fabs(sb_tensor_get(y, 1) + 0.8) < 1e-15);
}

/* dx of x for dy = (1, 0). */
static void backward(sb_dtype dtype, double x0, double x1, double dx[2])
{
    sb_tensor *x = KEPT(
        sb_tensor_requires_grad(sb_tensor_from_doubles(dtype, SB_SHAPE(2), (double[]){x0, x1})));
    TAPE(SB_RECORD);
    sb_tensor *dy = owned(dtype, SB_SHAPE(2), (double[]){1, 0});
    MUST(sb_backward_from(sb_l2_normalize(x), dy));
    sb_tensor_read(sb_tensor_grad(x), dx);
}

/* y = (0.6, 0.8), y . dy = 0.6, dx = ((1, 0) - 0.6 y) / 5 */
TEST(l2_normalize, backward_gives_the_hand_worked_gradient)
{
    double dx[2];
    backward(SB_F64, 3, 4, dx);
    cr_expect(fabs(dx[0] - 0.128) < 1e-15 && fabs(dx[1] + 0.096) < 1e-15);
}

TEST(l2_normalize, zero_stays_zero_and_passes_no_gradient)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *y = sb_l2_normalize(owned(SB_F32, SB_SHAPE(2), (double[]){0, 0}));
    cr_expect(sb_tensor_get(y, 0) == 0 && sb_tensor_get(y, 1) == 0);
    sb_tape_end(&tape);
    double dx[2];
    backward(SB_F32, 0, 0, dx);
    cr_expect(dx[0] == 0 && dx[1] == 0);
}

TEST(l2_normalize, rows_shorter_than_1e_12_are_divided_by_that)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *y = sb_l2_normalize(owned(SB_F64, SB_SHAPE(2), (double[]){3e-14, 0}));
    cr_expect(fabs(sb_tensor_get(y, 0) - 0.03) < 1e-15);
    double dx[2];
    backward(SB_F64, 3e-14, 0, dx);
    cr_expect(fabs(dx[0] * 1e-12 - 1) < 1e-12 && dx[1] == 0);
}

/* 3e30 squared overflows in f32. */
TEST(l2_normalize, squares_do_not_overflow)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *y = sb_l2_normalize(owned(SB_F32, SB_SHAPE(2), (double[]){3e30, 4e30}));
    cr_expect(fabs(sb_tensor_get(y, 0) - 0.6) < 1e-6 && fabs(sb_tensor_get(y, 1) - 0.8) < 1e-6);
    y = sb_l2_normalize(owned(SB_F32, SB_SHAPE(2), (double[]){3e38, 3e38})); /* the norm does */
    cr_expect(fabs(sb_tensor_get(y, 0) * sqrt(2) - 1) < 1e-6 && sb_tensor_get(y, 1) > 0);
}

/* The squares of 1e-30 in f32 and of 1e-200 in f64 are 0, and of 1e-45, the least number. */
TEST(l2_normalize, rows_whose_squares_are_rounded_to_0_have_a_gradient)
{
    static const struct {
        sb_dtype dtype;
        double x;
    } least[] = {
        {SB_F32, 1e-30}, {SB_F32, 1.401298464324817e-45}, {SB_F64, 1e-200}, {SB_F64, 5e-324}};
    for (size_t i = 0; i < sizeof least / sizeof least[0]; i++) {
        double dx[2];
        TAPE(SB_NO_RECORD);
        sb_tensor *y =
            sb_l2_normalize(owned(least[i].dtype, SB_SHAPE(2), (double[]){least[i].x, 0}));
        cr_expect(fabs(sb_tensor_get(y, 0) / least[i].x / 1e12 - 1) < 1e-6, "%g: %g", least[i].x,
                  sb_tensor_get(y, 0));
        backward(least[i].dtype, least[i].x, 0, dx);
        cr_expect(fabs(dx[0] * 1e-12 - 1) < 1e-6 && dx[1] == 0, "%g: %g", least[i].x, dx[0]);
    }
}

FUNCTION(l2_normalize_fused, sb_l2_normalize(x[0]))
FUNCTION(l2_normalize_composed, sb_divide(x[0], sb_sqrt(sb_sum(sb_multiply(x[0], x[0]), -1, true))))

TEST(l2_normalize, it_is_the_composition_of_its_steps)
{
    EXPECT_SAME_FUNCTION(l2_normalize_fused, l2_normalize_composed, "2", "7", "3x5", "2x3x63",
                         "3x64", "65x65");
}

TEST(l2_normalize, a_nan_or_an_infinity_propagates)
{
    TAPE(SB_NO_RECORD);
    for (int place = 0; place < 2; place++) {
        double values[2] = {1, 1};
        values[place] = NAN;
        sb_tensor *y = sb_l2_normalize(owned(SB_F32, SB_SHAPE(2), values));
        cr_expect(isnan(sb_tensor_get(y, 0)) && isnan(sb_tensor_get(y, 1)));
        values[place] = INFINITY;
        y = sb_l2_normalize(owned(SB_F32, SB_SHAPE(2), values));
        cr_expect(isnan(sb_tensor_get(y, place)));
    }
}

TEST(l2_normalize, a_row_has_the_same_bits_at_any_position)
{
    expect_row_function(sb_l2_normalize);
}

TEST(l2_normalize, a_row_without_dy_has_gradient_zero)
{
    for (int fresh = 0; fresh < 2; fresh++) {
        sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(2, 3));
        sb_tensor_set(x, 1, NAN);
        TAPE(SB_RECORD);
        sb_tensor *y = sb_l2_normalize(x), *second = sb_slice(y, 0, 1, 1);
        sb_tensor *loss = sb_sum(second, SB_ALL, false);
        if (!fresh) /* a sum adds to the gradient of x first */
            loss = sb_add(loss, sb_sum(sb_slice(x, 0, 1, 1), SB_ALL, false));
        MUST(sb_backward(loss));
        for (int i = 0; i < 3; i++)
            cr_expect(sb_tensor_get(sb_tensor_grad(x), i) == 0 &&
                      sb_tensor_get(sb_tensor_grad(x), 3 + i) != 0);
    }
}
