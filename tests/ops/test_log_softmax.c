#include "ops/log_softmax.h"
#include "tests/support/compare.h"

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
    sb_tensor *x = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(SB_F64, SB_SHAPE(3), (double[]){0, 1 * M_LN2, 2 * M_LN2})));
    TAPE(SB_RECORD);
    sb_tensor *dy = owned(SB_F64, SB_SHAPE(3), (double[]){1, 0, 0});
    MUST(sb_backward_from(sb_log_softmax(x), dy));
    const double expected[] = {6 / 7.0, -2 / 7.0, -4 / 7.0};
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), i) - expected[i]) < 1e-15);
}

static sb_tensor *fused(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_log_softmax(x[0]);
}

static sb_tensor *composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_log(sb_softmax(x[0]));
}

TEST(log_softmax, it_is_the_logarithm_of_softmax)
{
    const char *const shapes[] = {"1", "2", "7", "3x5", "2x3x63", "64", "3x65"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        expect_same_function(fused, composed, shapes[i]);
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

static sb_tensor *bias_of(sb_dtype dtype, int64_t C)
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
    sb_tensor *x = scores_of(dtype, C, odd), *bias = bias_of(dtype, C), *y = sb_log_softmax(x);
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
    enum kernel_set usual = kernel_cpu_set();
    TAPE(SB_NO_RECORD);
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        for (size_t i = 0; test_kernel_set(set) && i < sizeof sizes / sizeof *sizes; i++)
            for (size_t j = 0; j < sizeof odd / sizeof *odd; j++) {
                expect_best_as_composed(SB_F32, sizes[i], odd[j]);
                expect_best_as_composed(SB_F64, sizes[i], odd[j]);
            }
    kernel_use_cpu_set(usual);
}
