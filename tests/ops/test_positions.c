#include "tests/support/test.h"

TEST(positions, sinusoidal_has_the_published_values)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *y = MUST(sb_sinusoidal(SB_F64, 0, 3, 4));
    const double expected[] = {0,         1,         0,      1,      sin(1),    cos(1),
                               sin(0.01), cos(0.01), sin(2), cos(2), sin(0.02), cos(0.02)};
    for (int i = 0; i < 12; i++)
        cr_expect(fabs(sb_tensor_get(y, i) - expected[i]) < 1e-15, "element %d is %g", i,
                  sb_tensor_get(y, i));
    cr_expect(!y->requires_grad);
}

/* A table of usual size, compared with the C library's functions; then a part of it. */
TEST(positions, sinusoidal_begins_at_the_given_position)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *y = sb_sinusoidal(SB_F64, 0, 600, 128), *part = sb_sinusoidal(SB_F64, 590, 10, 128);
    for (int t = 0; t < 600; t++)
        for (int i = 0; i < 64; i++) {
            double angle = t / pow(10000, 2 * i / 128.0);
            cr_expect(fabs(sb_tensor_get(y, t * 128 + 2 * i) - sin(angle)) < 1e-12);
            cr_expect(fabs(sb_tensor_get(y, t * 128 + 2 * i + 1) - cos(angle)) < 1e-12);
        }
    cr_expect(test_relative(part, sb_slice(y, 0, 590, 10)) == 0);
    sb_tensor *single = sb_sinusoidal(SB_F32, 590, 10, 128);
    cr_expect(sb_tensor_dtype(single) == SB_F32);
    cr_expect(test_relative(sb_cast(single, SB_F64), part) < 1e-7);
}

/* (1, 0) at position 1 becomes (cos 1, sin 1). With D = 4 the pairs are (0, 2) and (1, 3), and the
   second rotates a hundred times slower. */
TEST(positions, rotary_rotates_the_hand_worked_pairs)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(
        sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2, 1, 4), (double[]){1, 2, 3, 4, 1, 2, 3, 4}));
    sb_tensor *y = MUST(sb_rotary(x, 0, 0));
    const double expected[] = {1,
                               2,
                               3,
                               4,
                               cos(1) - 3 * sin(1),
                               2 * cos(0.01) - 4 * sin(0.01),
                               sin(1) + 3 * cos(1),
                               2 * sin(0.01) + 4 * cos(0.01)};
    for (int i = 0; i < 8; i++)
        cr_expect(fabs(sb_tensor_get(y, i) - expected[i]) < 1e-14, "element %d is %g", i,
                  sb_tensor_get(y, i));
}

/* q_t . k_s depends on t - s alone. */
TEST(positions, rotary_products_depend_on_the_distance)
{
    enum { D = 16 };
    TAPE(SB_NO_RECORD);
    sb_tensor *q = test_leaf(SB_F64, 1, SB_SHAPE(1, 1, 1, D));
    sb_tensor *k = test_leaf(SB_F64, 2, SB_SHAPE(1, 1, 1, D));
    double product[3];
    for (int n = 0; n < 3; n++)
        product[n] = sb_tensor_value(
            sb_sum(sb_multiply(sb_rotary(q, 7 + 100 * n, 0), sb_rotary(k, 3 + 100 * n, 0)), SB_ALL,
                   false));
    double plain = sb_tensor_value(sb_sum(sb_multiply(q, k), SB_ALL, false));
    cr_expect(fabs(product[0] - product[1]) < 1e-12 && fabs(product[0] - product[2]) < 1e-12);
    cr_expect(fabs(product[0] - plain) > 0.01);
}

/* The rows equal those of a longer sequence; all sequences and heads rotate alike. */
TEST(positions, rotary_begins_at_the_given_position)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(2, 9, 3, 8));
    sb_tensor *y = sb_rotary(x, 0, 500), *last = sb_rotary(sb_slice(x, 1, 6, 3), 6, 500);
    cr_expect(test_relative(last, sb_slice(y, 1, 6, 3)) == 0);
    sb_tensor *one = sb_slice(sb_slice(x, 0, 1, 1), 2, 2, 1);
    cr_expect(test_relative(sb_rotary(one, 0, 500), sb_slice(sb_slice(y, 0, 1, 1), 2, 2, 1)) == 0);
}

TEST(positions, scaled_rotary_turns_by_positions_in_between)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = test_leaf(SB_F64, 5, SB_SHAPE(1, 9, 2, 6)), *every_third[3];
    sb_tensor *y = sb_rotary_scaled(x, 6, &(sb_rotary_options){.base = 50, .scaling = 3});
    for (int i = 0; i < 3; i++)
        every_third[i] = sb_rotary(sb_slice(x, 1, 3 * i, 1), 2 + i, 50);
    for (int i = 0; i < 3; i++)
        cr_expect(test_relative(sb_slice(y, 1, 3 * i, 1), every_third[i]) < 1e-15, "%d", i);
    cr_expect(test_relative(sb_rotary_scaled(x, 6, NULL), sb_rotary(x, 6, 0)) == 0);
}

/* In 200 positions the angle 1 turns 31.8 times, 0.0001 hardly: only 0.01 is near the factors. */
TEST(positions, rotary_scaling_by_frequency_divides_the_slow_angles)
{
    const double base = 1e6, turns = 200 * 0.01 / 6.283185307179586;
    const struct {
        double low, high, angle;
    } cases[] = {{turns / 2, turns / 1.5, 0.01},
                 {turns * 1.5, turns * 2, 0.01 / 8},
                 {turns / 2, turns * 3, 0.01 * (0.2 + 0.8 / 8)}};
    TAPE(SB_NO_RECORD);
    sb_tensor *x =
        sb_tape_own(sb_tensor_from(SB_F64, SB_SHAPE(1, 1, 1, 6), (double[]){1, 1, 1, 0, 0, 0}));
    for (int i = 0; i < 3; i++) {
        const sb_rotary_options o = {base, 8, 200, cases[i].low, cases[i].high};
        sb_tensor *y = MUST(sb_rotary_scaled(x, 3, &o));
        cr_expect(fabs(sb_tensor_get(y, 3) - sin(3)) < 1e-14);
        cr_expect(fabs(sb_tensor_get(y, 4) - sin(3 * cases[i].angle)) < 1e-14, "%d", i);
        cr_expect(fabs(sb_tensor_get(y, 5) - sin(3 * 1e-4 / 8)) < 1e-14);
    }
}

/* The gradient is rotated back; gradients of two uses add up. */
TEST(positions, rotary_backward_rotates_back)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(1, 4, 2, 6));
    TAPE(SB_RECORD);
    sb_tensor *y = sb_rotary(x, 5, 0);
    sb_tensor *loss = sb_add(sb_sum(sb_multiply(y, y), SB_ALL, false),
                             sb_sum(sb_multiply(sb_rotary(x, 5, 0), y), SB_ALL, false));
    MUST(sb_backward(loss));
    for (int i = 0; i < 48; i++) /* |y| = |x|, so the loss is 2 |x|^2 */
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), i) - 4 * sb_tensor_get(x, i)) < 1e-13);
}

/* Two heads have slopes 2^-4 and 2^-8; the last query is aligned with the last key. */
TEST(positions, alibi_has_the_hand_worked_values)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *y = sb_alibi(SB_F64, 2, 2, 3);
    MUST(y && sb_tensor_rank(y) == 4 && sb_tensor_size(y) == 12);
    const double distance[] = {1, 0, 1, 2, 1, 0};
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 6; i++)
            cr_expect(sb_tensor_get(y, 6 * h + i) == -distance[i] / (h == 0 ? 16 : 256));
}

static int64_t clip(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Compared with the definition pair by pair: clipped at one end, at both, or not at all. */
TEST(positions, relative_bias_looks_up_the_clipped_distance)
{
    const int64_t shapes[][3] = {{0, 3, 4}, {1, 1, 1},  {2, 5, 5},  {3, 2, 9},   {3, 9, 2},
                                 {9, 4, 4}, {2, 1, 70}, {1, 70, 1}, {32, 40, 40}};
    enum kernel_set usual = kernel_cpu_set();
    for (int n = 0; n < 27; n++) {
        if (!test_kernel_set((enum kernel_set)(n / 9)))
            continue;
        int64_t R = shapes[n % 9][0], Lq = shapes[n % 9][1], Lk = shapes[n % 9][2];
        sb_tensor *table = test_leaf(SB_F64, 1, SB_SHAPE(2, 2 * R + 1));
        sb_tensor *dy = test_leaf(SB_F64, 2, SB_SHAPE(1, 2, Lq, Lk));
        sb_tensor *expected = KEPT(sb_tensor_zeros(SB_F64, SB_SHAPE(2, 2 * R + 1)));
        TAPE(SB_RECORD);
        sb_tensor *y = sb_keep(sb_relative_bias(table, Lq, Lk));
        MUST(sb_backward_from(y, dy));
        for (int64_t e = 0; e < 2 * Lq * Lk; e++) {
            int64_t h = e / (Lq * Lk), i = e / Lk % Lq, j = e % Lk;
            int64_t place = h * (2 * R + 1) + clip(j - (i + Lk - Lq), -R, R) + R;
            cr_expect(sb_tensor_get(y, e) == sb_tensor_get(table, place));
            sb_tensor_set(expected, place, sb_tensor_get(expected, place) + sb_tensor_get(dy, e));
        }
        cr_expect(test_relative(sb_tensor_grad(table), expected) < 1e-13);
    }
    kernel_use_cpu_set(usual);
}

static bool use(void *x_)
{
    sb_tensor *const *x = x_;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_rotary(x[0], 1, 0);
    sb_tensor *bias = sb_add(sb_alibi(SB_F64, 2, 2, 2), sb_relative_bias(x[1], 2, 2));
    sb_tensor *sum = sb_sum(sb_add(sb_sinusoidal(SB_F64, 0, 2, 4), y), SB_ALL, false);
    sb_backward(sb_add(sum, sb_sum(bias, SB_ALL, false)));
    bool ok = sb_tape_end(&tape);
    sb_tensor_clear_grad(x[0]);
    sb_tensor_clear_grad(x[1]);
    return ok;
}

TEST(positions, each_allocation_may_fail)
{
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(1, 2, 2, 4)),
                      test_leaf(SB_F64, 1, SB_SHAPE(2, 3))};
    test_each_allocation_fails(use, x);
}
