#include "ops/softmax.h"
#include "tests/support/test.h"

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
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_from_doubles(
        SB_F64, SB_SHAPE(3), (double[]){0, 0.6931471805599453, 1.3862943611198906})));
    sb_tensor *dy = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(3), (double[]){1, 0, 0}));
    TAPE(SB_RECORD);
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
