#include "tensor/shape.h"
#include "tests/support/test.h"

CPU_TEST(shape, a_size_is_the_product_of_the_dimensions)
{
    cr_expect(shape_size(0, NULL) == 1, "a scalar has one element");
    cr_expect(shape_size(3, (int64_t[]){2, 3, 4}) == 24);
    cr_expect(shape_size(3, (int64_t[]){2, 0, 4}) == 0);
    cr_expect(shape_size(2, (int64_t[]){(int64_t)1 << 28, (int64_t)1 << 28}) == (int64_t)1 << 56);
}

CPU_TEST(shape, a_size_that_overflows_is_refused)
{
    cr_expect(shape_size(2, (int64_t[]){(int64_t)1 << 28, ((int64_t)1 << 28) + 1}) == -1);
    cr_expect(shape_size(2, (int64_t[]){INT64_MAX, INT64_MAX}) == -1);
    cr_expect(shape_size(3, (int64_t[]){INT64_MAX, 0, 2}) == -1, "a zero hides an overflow");
    cr_expect(shape_size(2, (int64_t[]){3, -1}) == -1);
}

CPU_TEST(shape, shapes_are_written_as_tuples)
{
    cr_expect(strcmp(shape_text(0, NULL).text, "()") == 0);
    cr_expect(strcmp(shape_text(3, (int64_t[]){2, 3, 4}).text, "(2, 3, 4)") == 0);
    int64_t longest[SB_MAX_RANK];
    for (int i = 0; i < SB_MAX_RANK; i++)
        longest[i] = INT64_MIN;
    struct shape_text shape = shape_text(SB_MAX_RANK, longest);
    cr_expect(shape.text[strlen(shape.text) - 1] == ')', "the longest text fits");
}

CPU_TEST(shape, equal_shapes_have_equal_ranks_and_dimensions)
{
    cr_expect(shape_equal(0, NULL, 0, NULL));
    cr_expect(shape_equal(2, (int64_t[]){2, 3}, 2, (int64_t[]){2, 3}));
    cr_expect(!shape_equal(2, (int64_t[]){2, 3}, 2, (int64_t[]){3, 2}));
    cr_expect(!shape_equal(2, (int64_t[]){2, 1}, 1, (int64_t[]){2}));
}

/* The pairs are NumPy's own examples and its edge cases. */
CPU_TEST(shape, broadcasting_follows_numpy)
{
    static const struct {
        int rank_a, rank_b, rank; /* rank -1 if they do not broadcast */
        int64_t a[4], b[4], y[4];
    } cases[] = {
        {3, 1, 3, {256, 256, 3}, {3}, {256, 256, 3}},
        {4, 3, 4, {8, 1, 6, 1}, {7, 1, 5}, {8, 7, 6, 5}},
        {2, 1, 2, {5, 4}, {1}, {5, 4}},
        {3, 2, 3, {15, 3, 5}, {3, 1}, {15, 3, 5}},
        {0, 2, 2, {0}, {2, 3}, {2, 3}},
        {0, 0, 0, {0}, {0}, {0}},
        {2, 1, 2, {0, 1}, {4}, {0, 4}},
        {1, 1, 1, {0}, {1}, {0}},
        {1, 1, -1, {3}, {4}, {0}},
        {1, 1, -1, {0}, {3}, {0}},
        {2, 3, -1, {2, 1}, {8, 4, 3}, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t y[SB_MAX_RANK];
        for (int swap = 0; swap < 2; swap++) {
            int rank = -1;
            bool fits = swap ? shape_broadcast(cases[i].rank_b, cases[i].b, cases[i].rank_a,
                                               cases[i].a, &rank, y)
                             : shape_broadcast(cases[i].rank_a, cases[i].a, cases[i].rank_b,
                                               cases[i].b, &rank, y);
            cr_expect(fits == (cases[i].rank >= 0), "case %zu", i);
            cr_expect(!fits || shape_equal(rank, y, cases[i].rank, cases[i].y), "case %zu", i);
        }
    }
}

CPU_TEST(shape, a_broadcast_axis_has_stride_zero)
{
    int64_t stride[4];
    shape_strides(2, (int64_t[]){3, 1}, 3, (int64_t[]){2, 3, 4}, stride);
    cr_expect(stride[0] == 0 && stride[1] == 1 && stride[2] == 0);
    shape_strides(3, (int64_t[]){2, 3, 4}, 3, (int64_t[]){2, 3, 4}, stride);
    cr_expect(stride[0] == 12 && stride[1] == 4 && stride[2] == 1);
    shape_strides(0, NULL, 2, (int64_t[]){2, 3}, stride);
    cr_expect(stride[0] == 0 && stride[1] == 0);
}

CPU_TEST(shape, negative_axes_count_from_the_last)
{
    cr_expect(shape_axis(3, 0) == 0 && shape_axis(3, 2) == 2);
    cr_expect(shape_axis(3, -1) == 2 && shape_axis(3, -3) == 0);
    cr_expect(shape_axis(3, 3) == -1 && shape_axis(3, -4) == -1 && shape_axis(0, 0) == -1);
}
