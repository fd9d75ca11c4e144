#include "tests/support/values.h"

static void expect_places(const sb_tensor *ids, const double *expected, int n)
{
    for (int i = 0; i < n; i++)
        cr_expect(sb_tensor_get(ids, i) == expected[i], "place %d is %g, not %g", i,
                  sb_tensor_get(ids, i), expected[i]);
}

TEST(topk, the_largest_come_first_and_get_the_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 5), NUMBERS(3, -1, 7, 0, 5, -4, -2, -9, -2, -3)), *ids;
    sb_tensor *y = sb_keep(sb_topk(x, 3, &ids));
    expect_shape(y, SB_SHAPE(2, 3));
    expect_numbers(y, NUMBERS(7, 5, 3, -2, -2, -3));
    expect_places(ids, (const double[]){2, 4, 0, 1, 3, 4}, 6);
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    MUST(sb_backward_from(y, dy));
    expect_numbers(sb_tensor_grad(x), NUMBERS(3, 0, 1, 0, 2, 0, 4, 0, 5, 6));
}

TEST(topk, all_of_a_row_are_sorted_and_nan_counts_as_the_largest)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *ids,
        *x = constant(SB_F64, SB_SHAPE(6), NUMBERS(1, NAN, INFINITY, 1, NAN, -INFINITY));
    sb_tensor *y = MUST(sb_topk(x, 6, &ids));
    expect_places(ids, (const double[]){1, 4, 2, 0, 3, 5}, 6);
    cr_expect(isnan(sb_tensor_get(y, 1)) && sb_tensor_get(y, 2) == INFINITY);
    sb_tensor *half = sb_topk(sb_cast(x, SB_BF16), 4, NULL);
    cr_expect(half && sb_tensor_dtype(half) == SB_BF16 && sb_tensor_get(half, 3) == 1);
}
