#include "ops/kernel.h"
#include "ops/permute.h"
#include "tests/support/values.h"

TEST(permute, transpose_swaps_rows_and_columns)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    sb_tensor *y = sb_keep(sb_transpose(x, 0, -1));
    expect_shape(y, SB_SHAPE(3, 2));
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(1, 4, 2, 5, 3, 6));
    expect_numbers(sb_tensor_grad(x), NUMBERS(1, 3, 5, 2, 4, 6));
}

/* The order (2, 0, 1) is not its own inverse: y (C, A, B) of x (A, B, C). */
TEST(permute, the_gradient_has_the_inverse_permutation)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1, 2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    sb_tensor *y = sb_keep(sb_permute(x, 3, (int[]){2, 0, 1}));
    expect_shape(y, SB_SHAPE(3, 1, 2));
    expect_numbers(y, NUMBERS(1, 4, 2, 5, 3, 6));
    MUST(sb_backward_from(y, y));
    expect_numbers(sb_tensor_grad(x), NUMBERS(1, 2, 3, 4, 5, 6));
}

/* Element `index` of y, found one index at a time. */
static int64_t source(const sb_tensor *x, const int *order, int64_t index)
{
    int64_t at[SB_MAX_RANK], from = 0;
    for (int i = x->rank - 1; i >= 0; i--) {
        at[order[i]] = index % x->dim[order[i]];
        index /= x->dim[order[i]];
    }
    for (int i = 0; i < x->rank; i++)
        from = from * x->dim[i] + at[i];
    return from;
}

static const struct {
    int rank;
    int64_t dim[SB_MAX_RANK];
    int order[SB_MAX_RANK];
} cases[] = {
    {1, {9}, {0}},
    {2, {37, 41}, {1, 0}},
    {2, {33, 17}, {1, 0}},
    {3, {300, 7, 33}, {1, 0, 2}},
    {3, {5, 130, 70}, {0, 2, 1}},
    {4, {3, 33, 4, 17}, {0, 2, 1, 3}},
    {4, {2, 19, 3, 18}, {3, 1, 0, 2}},
    {5, {2, 3, 1, 5, 4}, {4, 0, 3, 1, 2}},
    {6, {2, 3, 2, 17, 2, 3}, {5, 3, 1, 0, 4, 2}},
    {3, {4, 0, 5}, {2, 1, 0}},
};

static void check_case(sb_dtype dtype, int rank, const int64_t *dim, const int *order)
{
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(dtype, rank, dim));
    const int64_t n = sb_tensor_size(x);
    double *numbers = KEPT(calloc((size_t)n + 1, sizeof *numbers));
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (double)(dtype == SB_BOOL ? i * i % 7 % 2 : dtype == SB_BF16 ? i % 83 : i);
    cr_assert(sb_tensor_write(x, numbers));
    if (sb_dtype_is_real(dtype))
        sb_tensor_requires_grad(x);
    sb_tensor *y = MUST(sb_keep(sb_permute(x, rank, order)));
    double *moved = numbers_of(y);
    for (int64_t i = 0; i < n; i++)
        cr_assert(moved[i] == numbers[source(x, order, i)], "%s, element %lld",
                  tensor_shape(x).text, (long long)i);
    if (sb_dtype_is_real(dtype)) {
        sb_tensor *thrice = sb_add(sb_scale(y, 2), sb_permute(x, rank, order));
        MUST(sb_backward_from(thrice, y));
        double *dx = numbers_of(sb_tensor_grad(x));
        for (int64_t i = 0; i < n; i++)
            cr_assert(dx[i] == 3 * numbers[i], "%s, gradient %lld", tensor_shape(x).text,
                      (long long)i);
    }
}

TEST(permute, every_order_of_every_dtype_agrees_with_plain_indices)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    const enum kernel_set best = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= best; set++) {
        if (!test_kernel_set(set))
            continue;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            for (sb_dtype dtype = SB_F32; dtype <= SB_BOOL; dtype++)
                if (dtype != SB_DUAL || sb_device_in_use() == sb_device_cpu())
                    check_case(dtype, cases[i].rank, cases[i].dim, cases[i].order);
    }
}

TEST(permute, a_nan_moves_with_its_element)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = constant(SB_F32, SB_SHAPE(2, 2), NUMBERS(1, NAN, 3, 4));
    expect_numbers(sb_transpose(x, 0, 1), NUMBERS(1, 3, NAN, 4));
}

TEST(permute, negative_axes_count_from_the_last)
{
    const int from_first[] = {2, 0, 1}, from_last[] = {-1, -3, -2}, mixed[] = {-1, 0, -2};
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1, 2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    sb_tensor *y = sb_permute(x, 3, from_first);
    cr_expect(test_same_bits(sb_permute(x, 3, from_last), y), "%s", sb_error());
    cr_expect(test_same_bits(sb_permute(x, 3, mixed), y), "%s", sb_error());
}
