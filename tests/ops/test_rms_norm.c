#include "tests/support/compare.h"

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

static sb_tensor *fused(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_rms_norm(x[0], x[1], 0);
}

static sb_tensor *composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_tensor *square = sb_mean(sb_multiply(x[0], x[0]), -1, true);
    sb_tensor *epsilon = sb_tape_own(sb_tensor_scalar(SB_F64, 1e-6));
    return sb_multiply(x[1], sb_divide(x[0], sb_sqrt(sb_add(square, epsilon))));
}

TEST(rms_norm, it_is_the_composition_of_its_steps)
{
    const char *const shapes[] = {"2 2",    "7 7",      "3x5 5",  "2x3x63 63", "3x64 64",
                                  "=3x5 5", "65x65 65", "3x5 =5", "c2:200x2 2"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        expect_same_function(fused, composed, shapes[i]);
}

TEST(rms_norm, a_row_of_zeros_stays_zero)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *gain = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(5), 3));
    sb_tensor *y = sb_rms_norm(sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(5))), gain, 0);
    for (int i = 0; i < 5; i++)
        cr_expect(sb_tensor_get(y, i) == 0);
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

static sb_tensor *with_gain(sb_tensor *x)
{
    return sb_rms_norm(x, test_leaf(SB_F32, 1, SB_SHAPE(sb_tensor_dim(x, -1))), 0);
}

TEST(rms_norm, a_row_has_the_same_bits_at_any_position)
{
    expect_row_function(with_gain);
}
