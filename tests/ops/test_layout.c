/* Operations that move elements or choose some of them. */
#include "ops/shape.h"
#include "tests/support/compare.h"

TEST(reshape, the_elements_keep_their_order)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    sb_tensor *y = sb_keep(sb_reshape(x, SB_SHAPE(3, 2)));
    cr_expect(y->data == x->data, "the data is shared");
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(3, 2), NUMBERS(10, 20, 30, 40, 50, 60));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(1, 2, 3, 4, 5, 6));
    expect_shape(sb_tensor_grad(x), SB_SHAPE(2, 3));
    expect_numbers(sb_tensor_grad(x), NUMBERS(10, 20, 30, 40, 50, 60));
}

/* x is used twice, under two shapes: both parts are added. */
TEST(reshape, gradients_of_two_shapes_add_up)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 2), NUMBERS(1, 2, 3, 4));
    sb_tensor *a = sb_reshape(x, SB_SHAPE(4));
    sb_tensor *b = sb_scale(sb_reshape(x, SB_SHAPE(1, 4)), 10);
    MUST(sb_backward(sb_sum(sb_add(a, b), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(11, 11, 11, 11));
}

/* dx takes ownership of dy's memory, unless dy has other readers; other uses of x add to it. */
TEST(reshape, the_gradient_of_a_result_is_forwarded)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        TAPE(SB_RECORD);
        sb_tensor *leaf_x = leaf(SB_SHAPE(2, 2), NUMBERS(1, 2, 3, 4));
        sb_tensor *x = sb_keep(sb_scale(leaf_x, 3)), *used = sb_scale(x, 100);
        sb_tensor *y = sb_reshape(x, SB_SHAPE(4));
        if (keeps)
            sb_keep(y);
        sb_tensor *weights = constant(SB_F64, SB_SHAPE(4), NUMBERS(1, 2, 3, 4));
        sb_tensor *sum = sb_sum(sb_multiply(y, weights), SB_ALL, false);
        MUST(sb_backward(sb_add(sum, sb_sum(used, SB_ALL, false))));
        expect_shape(sb_tensor_grad(x), SB_SHAPE(2, 2));
        expect_numbers(sb_tensor_grad(x), NUMBERS(101, 102, 103, 104));
        expect_numbers(sb_tensor_grad(leaf_x), NUMBERS(303, 306, 309, 312));
        if (keeps)
            expect_numbers(sb_tensor_grad(y), NUMBERS(1, 2, 3, 4));
    }
}

TEST(reshape, one_dimension_is_computed)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = constant(SB_I32, SB_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    expect_shape(sb_reshape(x, SB_SHAPE(-1)), SB_SHAPE(6));
    expect_shape(sb_reshape(x, SB_SHAPE(3, -1, 1)), SB_SHAPE(3, 2, 1));
    sb_tensor *one = sb_reshape(constant(SB_BOOL, SB_SHAPE(1), NUMBERS(1)), SB_SCALAR);
    cr_expect(sb_tensor_rank(one) == 0 && sb_tensor_value(one) == 1);
    expect_shape(sb_reshape(one, SB_SHAPE(1, -1)), SB_SHAPE(1, 1));
    sb_tensor *none = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3)));
    expect_shape(sb_reshape(none, SB_SHAPE(3, -1)), SB_SHAPE(3, 0));
}

/* ---- permute ---- */

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

TEST(permute, every_order_of_every_dtype_agrees_with_plain_indices, KNOWN_KERNELS)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);) {
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

/* ---- expand ---- */

TEST(expand, axes_of_size_1_are_repeated_and_their_gradients_summed)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 1), NUMBERS(1, 2));
    sb_tensor *y = sb_keep(sb_expand(x, SB_SHAPE(2, 2, 3)));
    sb_tensor *dy =
        constant(SB_F64, SB_SHAPE(2, 2, 3), NUMBERS(1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
    expect_numbers(sb_tensor_grad(x), NUMBERS(66, 165));
}

TEST(expand, gradients_add_to_existing_ones)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1), NUMBERS(5));
    sb_tensor *a = sb_expand(x, SB_SHAPE(3));
    sb_tensor *b = sb_expand(x, SB_SHAPE(3));
    MUST(sb_backward(sb_sum(sb_add(a, b), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(6));
}

TEST(expand, the_result_is_a_copy_in_any_dtype)
{
    TAPE(SB_NO_RECORD);
    for (sb_dtype dtype = SB_F32; dtype <= SB_BOOL; dtype++) {
        if (dtype == SB_DUAL && sb_device_in_use() != sb_device_cpu())
            continue;
        sb_tensor *x = constant(dtype, SB_SHAPE(1, 2), NUMBERS(1, 0));
        sb_tensor *y = sb_expand(x, SB_SHAPE(2, 2));
        expect_numbers(y, NUMBERS(1, 0, 1, 0));
        cr_expect(sb_tensor_dtype(y) == dtype && y->data != x->data);
        expect_numbers(sb_expand(constant(dtype, SB_SCALAR, NUMBERS(1)), SB_SHAPE(3)),
                       NUMBERS(1, 1, 1));
    }
}

TEST(expand, every_element_of_long_rows_is_filled)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(3, 1), NUMBERS(1, 2, 3));
    sb_tensor *y = sb_keep(sb_expand(x, SB_SHAPE(2, 3, 20001)));
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    for (int64_t i = 0; i < sb_tensor_size(y); i++)
        cr_assert(sb_tensor_get(y, i) == 1 + i / 20001 % 3, "element %lld", (long long)i);
    expect_numbers(sb_tensor_grad(x), NUMBERS(40002, 40002, 40002));
}

TEST(expand, an_axis_of_1_expands_to_0_with_gradient_0)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1, 2), NUMBERS(1, 2));
    sb_tensor *y = sb_expand(x, SB_SHAPE(0, 2));
    expect_shape(y, SB_SHAPE(0, 2));
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(0, 0));
}

/* Nothing is summed there. */
TEST(expand, gradients_of_a_shape_that_stays_add_up)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(3));
    TAPE(SB_RECORD);
    sb_tensor *y = sb_add(sb_expand(x, SB_SHAPE(3)), sb_expand(x, SB_SHAPE(3)));
    MUST(sb_backward_from(y, owned(SB_F64, SB_SHAPE(3), (double[]){1, 1, 1})));
    for (int i = 0; i < 3; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(x), i) == 2);
}

/* ---- slice ---- */

TEST(slice, a_part_of_the_first_axis_shares_the_data)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    sb_tensor *y = sb_keep(sb_slice(x, 0, 1, 2));
    cr_expect((double *)y->data == (double *)x->data + 2);
    MUST(sb_backward_from(y, constant(SB_F64, SB_SHAPE(2, 2), NUMBERS(10, 20, 30, 40))));
    expect_numbers(y, NUMBERS(3, 4, 5, 6));
    expect_numbers(sb_tensor_grad(x), NUMBERS(0, 0, 10, 20, 30, 40));
}

TEST(slice, a_part_of_an_inner_axis_is_copied)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 3, 2), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    sb_tensor *y = sb_keep(sb_slice(x, -2, 1, 2));
    expect_shape(y, SB_SHAPE(2, 2, 2));
    MUST(sb_backward_from(y, y));
    expect_numbers(y, NUMBERS(3, 4, 5, 6, 9, 10, 11, 12));
    expect_numbers(sb_tensor_grad(x), NUMBERS(0, 0, 3, 4, 5, 6, 0, 0, 9, 10, 11, 12));
}

TEST(slice, overlapping_parts_add_their_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1, 3), NUMBERS(1, 2, 3));
    sb_tensor *a = sb_slice(x, 1, 0, 2);
    sb_tensor *b = sb_slice(x, 1, 1, 2);
    sb_tensor *sum = sb_add(a, sb_scale(b, 10));
    MUST(sb_backward(sb_sum(sum, SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(1, 11, 10));
}

TEST(slice, ids_and_booleans_are_sliced_too)
{
    TAPE(SB_RECORD);
    sb_tensor *ids = constant(SB_I32, SB_SHAPE(2, 2), NUMBERS(1, 2, 3, 4));
    expect_numbers(sb_slice(ids, 1, 1, 1), NUMBERS(2, 4));
    sb_tensor *flags = constant(SB_BOOL, SB_SHAPE(2, 3), NUMBERS(1, 0, 0, 0, 1, 1));
    expect_numbers(sb_slice(flags, 1, 1, 2), NUMBERS(0, 0, 1, 1));
}

TEST(slice, split_returns_all_parts)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2, 4), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8));
    sb_tensor *part[3];
    MUST(sb_split(x, -1, 3, (int64_t[]){1, 0, 3}, part));
    expect_numbers(part[0], NUMBERS(1, 5));
    expect_shape(part[1], SB_SHAPE(2, 0));
    expect_numbers(part[2], NUMBERS(2, 3, 4, 6, 7, 8));
    MUST(sb_backward(sb_sum(sb_multiply(part[0], part[2]), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(9, 1, 1, 1, 21, 5, 5, 5));
}

TEST(slice, every_element_of_long_runs_is_moved)
{
    TAPE(SB_RECORD);
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(3, 20003));
    sb_tensor *y = sb_keep(sb_slice(x, 1, 2, 20001));
    sb_tensor *again = sb_slice(x, 1, 2, 20001);
    MUST(sb_backward(sb_sum(sb_multiply(y, again), SB_ALL, false)));
    double *value = numbers_of(x), *part = numbers_of(y), *dx = numbers_of(sb_tensor_grad(x));
    for (int64_t i = 0; i < 3 * 20003; i++) {
        const int64_t row = i / 20003, column = i % 20003;
        cr_assert(dx[i] == (column >= 2 ? 2 * value[i] : 0), "%lld", (long long)i);
        cr_assert(column < 2 || part[row * 20001 + column - 2] == value[i], "%lld", (long long)i);
    }
}

/* ---- concatenate ---- */

TEST(concatenate, rows_follow_each_other)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(1, 2), NUMBERS(1, 2));
    sb_tensor *b = leaf(SB_SHAPE(2, 2), NUMBERS(3, 4, 5, 6));
    sb_tensor *y = sb_keep(sb_concatenate((sb_tensor *[]){a, b}, 2, 0));
    expect_shape(y, SB_SHAPE(3, 2));
    MUST(sb_backward_from(y, y));
    expect_numbers(y, NUMBERS(1, 2, 3, 4, 5, 6));
    expect_numbers(sb_tensor_grad(a), NUMBERS(1, 2));
    expect_numbers(sb_tensor_grad(b), NUMBERS(3, 4, 5, 6));
}

TEST(concatenate, columns_interleave)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2, 1), NUMBERS(1, 2));
    sb_tensor *b = leaf(SB_SHAPE(2, 2), NUMBERS(3, 4, 5, 6));
    sb_tensor *y = sb_keep(sb_concatenate((sb_tensor *[]){a, b}, 2, -1));
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(2, 3), NUMBERS(10, 20, 30, 40, 50, 60));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(1, 3, 4, 2, 5, 6));
    expect_numbers(sb_tensor_grad(a), NUMBERS(10, 40));
    expect_numbers(sb_tensor_grad(b), NUMBERS(20, 30, 50, 60));
}

TEST(concatenate, a_tensor_that_is_joined_twice_gets_both_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2), NUMBERS(1, 2));
    sb_tensor *y = sb_concatenate((sb_tensor *[]){a, a}, 2, 0);
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(4), NUMBERS(1, 2, 30, 40));
    MUST(sb_backward_from(y, dy));
    expect_numbers(sb_tensor_grad(a), NUMBERS(31, 42));
}

TEST(concatenate, a_constant_is_joined_and_gets_no_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *a = constant(SB_F64, SB_SHAPE(1), NUMBERS(1));
    sb_tensor *b = leaf(SB_SHAPE(2), NUMBERS(2, 3));
    sb_tensor *y = sb_concatenate((sb_tensor *[]){a, b}, 2, 0);
    MUST(sb_backward_from(y, constant(SB_F64, SB_SHAPE(3), NUMBERS(7, 8, 9))));
    cr_expect(sb_tensor_grad(a) == NULL);
    expect_numbers(sb_tensor_grad(b), NUMBERS(8, 9));
}

TEST(concatenate, a_stack_has_a_new_axis_at_any_position)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2), NUMBERS(1, 2)), *b = leaf(SB_SHAPE(2), NUMBERS(3, 4));
    sb_tensor *const pair[] = {a, b};
    sb_tensor *rows = sb_stack(pair, 2, 0);
    sb_tensor *columns = sb_keep(sb_stack(pair, 2, -1));
    expect_numbers(rows, NUMBERS(1, 2, 3, 4));
    MUST(sb_backward_from(columns, rows));
    expect_numbers(columns, NUMBERS(1, 3, 2, 4));
    expect_numbers(sb_tensor_grad(a), NUMBERS(1, 3));
    expect_numbers(sb_tensor_grad(b), NUMBERS(2, 4));
}

TEST(concatenate, ids_booleans_and_empty_tensors_are_joined_too)
{
    TAPE(SB_RECORD);
    sb_tensor *ids = constant(SB_I32, SB_SHAPE(2), NUMBERS(5, 6));
    sb_tensor *none = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(0)));
    expect_numbers(sb_concatenate((sb_tensor *[]){none, ids, none, ids}, 4, 0),
                   NUMBERS(5, 6, 5, 6));
    sb_tensor *flag = constant(SB_BOOL, SB_SCALAR, NUMBERS(1));
    expect_numbers(sb_stack((sb_tensor *[]){flag, flag, flag}, 3, 0), NUMBERS(1, 1, 1));
    sb_tensor *flat = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3)));
    expect_shape(sb_concatenate((sb_tensor *[]){flat, flat}, 2, 1), SB_SHAPE(0, 6));
}

typedef sb_tensor *joining(sb_tensor *const x[], int n, int axis);

CPU_TEST(concatenate, sizes_that_overflow_are_refused)
{
    FAILED_TAPE(SB_RECORD);
    const int64_t wide[] = {0, (int64_t)1 << 56};
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, 2, wide));
    sb_tensor *many[128];
    for (int i = 0; i < 128; i++)
        many[i] = x;
    REFUSED("concatenate: the sizes along axis 1 add up to more than 64 bits hold",
            sb_concatenate(many, 128, 1));
}

/* ---- unfold ---- */

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
        REFUSED(wrong[i].message, sb_unfold(x, wrong[i].width, &wrong[i].options));
    }
    REFUSED("no tape is open", sb_unfold(x, 1, NULL));
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

/* ---- gather ---- */

TEST(gather, each_id_chooses_from_its_row)
{
    TAPE(SB_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(2, 3), (double[]){0, 1, 2, 10, 11, 12});
    sb_tensor *y = MUST(sb_gather(x, owned(SB_I32, SB_SHAPE(2), (double[]){2, 0})));
    cr_expect(sb_tensor_rank(y) == 1 && sb_tensor_get(y, 0) == 2 && sb_tensor_get(y, 1) == 10);
    sb_tensor *row = owned(SB_F64, SB_SHAPE(3), (double[]){5, 6, 7});
    cr_expect(sb_tensor_value(sb_gather(row, owned(SB_I32, SB_SCALAR, (double[]){1}))) == 6);
}

TEST(gather, backward_adds_at_the_chosen_places)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F64, SB_SHAPE(2, 3))));
    TAPE(SB_RECORD);
    sb_tensor *ids = owned(SB_I32, SB_SHAPE(2), (double[]){2, 0});
    sb_tensor *y = sb_add(sb_gather(x, ids), sb_gather(x, ids));
    MUST(sb_backward_from(y, owned(SB_F64, SB_SHAPE(2), (double[]){3, 4})));
    expect_exact_numbers(sb_tensor_grad(x), NUMBERS(0, 0, 6, 8, 0, 0));
}

TEST(gather, a_nan_propagates_only_if_it_is_chosen)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = owned(SB_F32, SB_SHAPE(2, 2), (double[]){NAN, 1, NAN, 1});
    sb_tensor *y = sb_gather(x, owned(SB_I32, SB_SHAPE(2), (double[]){0, 1}));
    cr_expect(isnan(sb_tensor_get(y, 0)) && sb_tensor_get(y, 1) == 1);
}

CPU_TEST(gather, ids_that_change_before_backward_are_found)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3))));
    FAILED_TAPE(SB_RECORD);
    sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(2)));
    sb_tensor *y = sb_gather(x, ids);
    ((int32_t *)sb_tensor_data(ids))[1] = -5; /* unnoticed */
    REFUSED("gather: id -5 at (1)",
            sb_backward_from(y, sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2)))));
}

/* ---- topk ---- */

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

/* ---- embedding ---- */

TEST(embedding, ids_choose_rows_of_the_table)
{
    TAPE(SB_RECORD);
    sb_tensor *table = owned(SB_F32, SB_SHAPE(3, 2), (double[]){0, 1, 10, 11, 20, 21});
    sb_tensor *ids = owned(SB_I32, SB_SHAPE(2, 2), (double[]){2, 0, 2, 1});
    sb_tensor *y = MUST(sb_embedding(table, ids));
    cr_expect(sb_tensor_rank(y) == 3 && sb_tensor_dim(y, 0) == 2 && sb_tensor_dim(y, 1) == 2 &&
              sb_tensor_dim(y, 2) == 2);
    expect_exact_numbers(y, NUMBERS(20, 21, 0, 1, 20, 21, 10, 11));
}

TEST(embedding, backward_sums_the_rows_of_each_id)
{
    sb_tensor *table = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(3, 2))));
    TAPE(SB_RECORD);
    sb_tensor *ids = owned(SB_I32, SB_SHAPE(3), (double[]){2, 0, 2});
    sb_tensor *dy = owned(SB_F32, SB_SHAPE(3, 2), (double[]){1, 2, 30, 40, 500, 600});
    MUST(sb_backward_from(sb_embedding(table, ids), dy));
    expect_exact_numbers(sb_tensor_grad(table), NUMBERS(30, 40, 0, 0, 501, 602));
}

TEST(embedding, the_row_of_padding_gets_no_gradient)
{
    sb_tensor *table = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(SB_F32, SB_SHAPE(3, 2), (double[]){0, 1, 10, 11, 20, 21})));
    TAPE(SB_RECORD);
    sb_tensor *ids = owned(SB_I32, SB_SHAPE(4), (double[]){2, 0, 2, 1});
    sb_tensor *dy = owned(SB_F32, SB_SHAPE(4, 2), (double[]){1, 2, 30, 40, 500, 600, 7, 8});
    sb_tensor *y = sb_keep(sb_embedding_padded(table, ids, 2));
    MUST(sb_backward_from(y, dy));
    cr_expect(sb_tensor_get(y, 0) == 20 && sb_tensor_get(y, 7) == 11);
    expect_exact_numbers(sb_tensor_grad(table), NUMBERS(30, 40, 7, 8, 0, 0));
}

FUNCTION(padded, sb_embedding_padded(x[0], x[1], 3))

/* Row 3 of the table as a constant: what differences see of it is cut off. */
FUNCTION_HEAD(padded_composed)
{
    sb_tensor *is_padding =
        sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(sb_tensor_dim(x[0], 0), 1)));
    sb_tensor_set(is_padding, 3, 1);
    return sb_embedding(sb_where(is_padding, sb_detach(x[0]), x[0]), x[1]);
}

TEST(embedding, padding_is_a_row_without_a_gradient, KNOWN_KERNELS)
{
    EXPECT_SAME_FUNCTION(padded, padded_composed, "5x7 i5:2x3", "4x65 i4:40", "5x2 i5:5000");
}

/* In f32, (1e8 + 1) - 1e8 is 0 but (1e8 - 1e8) + 1 is 1: the sum depends on the order. */
TEST(embedding, backward_adds_in_the_order_of_the_ids_for_any_number_of_threads)
{
    enum { C = 100, N = 1500 };
    int usual = sb_threads();
    for (int threads = 1; threads <= 4; threads++) {
        cr_assert(sb_set_threads(threads));
        sb_tensor *table = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(2, C))));
        TAPE(SB_RECORD);
        sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(N)));
        sb_tensor *dy = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(N, C)));
        const double parts[] = {1e8, 1, -1e8};
        for (int i = 0; i < 3; i++)
            for (int c = 0; c < C; c++)
                sb_tensor_set(dy, i * 700 * C + c, parts[i]);
        MUST(sb_backward_from(sb_embedding(table, ids), dy));
        for (int c = 0; c < C; c++)
            cr_expect(sb_tensor_get(sb_tensor_grad(table), c) == 0 &&
                      sb_tensor_get(sb_tensor_grad(table), C + c) == 0);
    }
    sb_set_threads(usual);
}

FUNCTION(fused, sb_embedding(x[0], x[1]))

/* The same as a product of one-hot rows with the table. */
FUNCTION_HEAD(composed)
{
    int64_t n = sb_tensor_size(x[1]), V = sb_tensor_dim(x[0], 0);
    sb_tensor *one_hot = sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(n, V)));
    for (int64_t i = 0; i < n; i++)
        sb_tensor_set(one_hot, i * V + (int64_t)sb_tensor_get(x[1], i), 1);
    return sb_matmul(one_hot, x[0]);
}

TEST(embedding, it_is_a_product_with_one_hot_rows)
{
    EXPECT_SAME_FUNCTION(fused, composed, "1x1 i1:1", "7x2 i7:30", "5x63 i5:4", "3x64 i3:7",
                         "9x65 i9:65");
}

TEST(embedding, no_ids_give_an_empty_result)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *table = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(3, 2)));
    sb_tensor *y = sb_embedding(table, sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(4, 0))));
    cr_expect(sb_tensor_rank(y) == 3 && sb_tensor_size(y) == 0);
}

CPU_TEST(embedding, an_id_outside_the_table_is_named)
{
    for (int bad = 0; bad < 3; bad++) {
        FAILED_TAPE(SB_RECORD);
        sb_tensor *table = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(10, 2)));
        sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(1500, 3)));
        sb_tensor_set(ids, 1200 * 3 + 2, (const double[]){-1, 10, INT32_MAX}[bad]);
        sb_tensor_set(ids, 1200 * 3 + 3, 99);
        REFUSED("embedding: id ", sb_embedding(table, ids));
        EXPECT_ERROR(((const char *[]){"id -1 at (1200, 2)", "id 10 at (1200, 2)",
                                       "id 2147483647 at (1200, 2)"}[bad]));
        EXPECT_ERROR("of ids (1500, 3) is not in 0..9");
    }
}

CPU_TEST(embedding, ids_that_change_before_backward_are_found)
{
    sb_tensor *table = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(3, 2))));
    FAILED_TAPE(SB_RECORD);
    sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(4)));
    sb_tensor *y = sb_embedding(table, ids);
    ((int32_t *)sb_tensor_data(ids))[3] = 3; /* unnoticed */
    REFUSED("embedding: id 3 at (3)",
            sb_backward_from(y, sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(4, 2)))));
}

/* ---- detach ---- */

/* d (x detach(x)) / dx = x, not 2 x. */
TEST(detach, no_gradient_flows_through_it)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(3, 4));
    sb_tensor *y = sb_detach(x);
    cr_expect(y->data == x->data, "the data is shared");
    MUST(sb_backward(sb_sum(sb_multiply(x, y), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(3, 4));
}

TEST(detach, ids_can_be_detached)
{
    TAPE(SB_RECORD);
    expect_numbers(sb_detach(constant(SB_I32, SB_SHAPE(2), NUMBERS(5, 6))), NUMBERS(5, 6));
}
