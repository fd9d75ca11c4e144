#include "tests/support/compare.h"

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
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *y = sb_l2_normalize(owned(SB_F64, SB_SHAPE(2), (double[]){3e-14, 0}));
    cr_expect(fabs(sb_tensor_get(y, 0) - 0.03) < 1e-15);
    sb_tape_end(&tape);
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
        sb_tape tape;
        sb_tape_begin(&tape, SB_NO_RECORD);
        sb_tensor *y =
            sb_l2_normalize(owned(least[i].dtype, SB_SHAPE(2), (double[]){least[i].x, 0}));
        cr_expect(fabs(sb_tensor_get(y, 0) / least[i].x / 1e12 - 1) < 1e-6, "%g: %g", least[i].x,
                  sb_tensor_get(y, 0));
        sb_tape_end(&tape);
        backward(least[i].dtype, least[i].x, 0, dx);
        cr_expect(fabs(dx[0] * 1e-12 - 1) < 1e-6 && dx[1] == 0, "%g: %g", least[i].x, dx[0]);
    }
}

static sb_tensor *fused(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_l2_normalize(x[0]);
}

static sb_tensor *composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_divide(x[0], sb_sqrt(sb_sum(sb_multiply(x[0], x[0]), -1, true)));
}

TEST(l2_normalize, it_is_the_composition_of_its_steps)
{
    const char *const shapes[] = {"2", "7", "3x5", "2x3x63", "3x64", "65x65"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        expect_same_function(fused, composed, shapes[i]);
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
