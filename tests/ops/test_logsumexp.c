#include "tests/support/compare.h"

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
    sb_tensor *x = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(SB_F64, SB_SHAPE(3), (double[]){0, 1 * M_LN2, 2 * M_LN2})));
    TAPE(SB_RECORD);
    MUST(sb_backward_from(sb_logsumexp(x), sb_tape_own(sb_tensor_scalar(SB_F64, 14))));
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), i) - 2 * (1 << i)) < 1e-14);
}

static sb_tensor *fused(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_logsumexp(x[0]);
}

static sb_tensor *composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_log(sb_sum(sb_exp(x[0]), -1, false));
}

TEST(logsumexp, it_is_the_logarithm_of_the_sum_of_exponentials)
{
    const char *const shapes[] = {"1", "2", "7", "3x5", "2x3x63", "64", "3x65"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        expect_same_function(fused, composed, shapes[i]);
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
