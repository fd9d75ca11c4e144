#include "tests/support/values.h"

/* Windows of three with two zeros before: as a causal convolution has them. */
TEST(unfold, the_hand_worked_values_and_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1, 3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    sb_tensor *y = MUST(sb_keep(sb_unfold(x, 3, &(sb_unfold_options){.left = 2})));
    expect_shape(y, SB_SHAPE(1, 3, 6));
    expect_numbers(y, NUMBERS(0, 0, 0, 0, 1, 2, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6));
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(3, 3, 2, 2, 1, 1));
}

/* Each element, for many sizes: strides above the window, windows of zeros alone, NaN that stays
   where it is. */
TEST(unfold, every_element_is_that_of_the_formula)
{
    const int64_t B = 2, C = 2;
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    TAPE(SB_NO_RECORD);
    for (int round = 0; round < 60; round++) {
        const int64_t L = 1 + sb_random_below(&random, 6), width = 1 + sb_random_below(&random, 4);
        const sb_unfold_options o = {1 + sb_random_below(&random, 5),
                                     1 + sb_random_below(&random, 3), sb_random_below(&random, 9),
                                     sb_random_below(&random, 9)};
        const int64_t span = L + o.left + o.right - o.dilation * (width - 1) - 1;
        if (span < 0)
            continue;
        sb_tensor *x = test_leaf(SB_F32, (uint64_t)round, SB_SHAPE(B, L, C));
        sb_tensor_set(x, 0, NAN);
        sb_tensor *y = MUST(sb_unfold(x, width, &o));
        expect_shape(y, SB_SHAPE(B, span / o.stride + 1, width * C));
        for (int64_t i = 0; i < sb_tensor_size(y); i++) {
            const int64_t c = i % C, k = i / C % width, row = i / C / width;
            const int64_t rows = span / o.stride + 1, b = row / rows;
            const int64_t at = row % rows * o.stride + k * o.dilation - o.left;
            const double expected = at < 0 || at >= L ? 0 : sb_tensor_get(x, (b * L + at) * C + c);
            const double got = sb_tensor_get(y, i);
            cr_assert(got == expected || (isnan(got) && isnan(expected)), "%d: element %d", round,
                      (int)i);
        }
    }
}

TEST(unfold, what_has_no_window_is_refused)
{
    static const struct {
        int64_t width;
        sb_unfold_options options;
        const char *message;
    } wrong[] = {{0, {0}, "unfold: width is 0, not in 1..16777216"},
                 {1, {.stride = -1}, "unfold: stride is -1, not in 1..16777216"},
                 {1, {.dilation = 1 << 25}, "unfold: dilation is 33554432, not in 1..16777216"},
                 {1, {.left = -1}, "unfold: left is -1, not in 0..16777216"},
                 {1, {.right = -2}, "unfold: right is -2, not in 0..16777216"},
                 {3,
                  {.dilation = 2, .left = 1},
                  "unfold: x is (1, 3, 2): with 1 zeros it has 4 positions, "
                  "fewer than the 5 of a window"}};
    sb_tensor *x = KEPT(sb_tensor_zeros(SB_F64, SB_SHAPE(1, 3, 2)));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        FAILED_TAPE(SB_RECORD);
        cr_expect(!sb_unfold(x, wrong[i].width, &wrong[i].options));
        EXPECT_ERROR(wrong[i].message);
    }
    cr_expect(!sb_unfold(x, 1, NULL));
    EXPECT_ERROR("no tape is open");
}

TEST(unfold, windows_of_zeros_alone_have_gradients)
{
    for (int64_t L = 0; L < 2; L++) {
        TAPE(SB_RECORD);
        sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(1, L, 2));
        sb_tensor *y = MUST(sb_keep(sb_unfold(x, 1, &(sb_unfold_options){.stride = 9, .left = 3})));
        expect_numbers(y, NUMBERS(0, 0));
        MUST(sb_backward(sb_sum(y, SB_ALL, false)));
        cr_expect(sb_tensor_grad(x) && sb_tensor_size(sb_tensor_grad(x)) == 2 * L);
        cr_expect(L == 0 || largest_of(sb_tensor_grad(x)) == 0);
    }
}
