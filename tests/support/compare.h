/* Tensors from written-out numbers; compares them, operations with each other, and rows at
   different positions. */
#ifndef SOFTBACK_TESTS_SUPPORT_COMPARE_H
#define SOFTBACK_TESTS_SUPPORT_COMPARE_H

#include "tests/support/examples.h"

/* Numbers in an argument list, with their count before them. */
#define NUMBERS(...)                                                                               \
    (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)), (const double[])                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* A tensor of these numbers that the open tape owns. */
static inline sb_tensor *constant(sb_dtype dtype, int rank, const int64_t *dim, int n,
                                  const double *values)
{
    cr_assert(shape_size(rank, dim) == n, "%d numbers for %s", n, shape_text(rank, dim).text);
    return owned(dtype, rank, dim, values);
}

/* The same in f64, requiring a gradient. */
static inline sb_tensor *leaf(int rank, const int64_t *dim, int n, const double *values)
{
    return sb_tensor_requires_grad(constant(SB_F64, rank, dim, n, values));
}

static inline void expect_shape(const sb_tensor *t, int rank, const int64_t *dim)
{
    MUST(t);
    cr_assert(shape_equal(t->rank, t->dim, rank, dim), "the shape is %s, not %s",
              tensor_shape(t).text, shape_text(rank, dim).text);
}

/* Each number to this share of itself; NaN equals NaN. */
static inline void expect_near_numbers(const sb_tensor *t, double share, int n,
                                       const double *expected)
{
    MUST(t);
    cr_assert(sb_tensor_size(t) == n, "there are %lld numbers, not %d",
              (long long)sb_tensor_size(t), n);
    double *numbers = numbers_of(t);
    for (int i = 0; i < n; i++) {
        const double got = numbers[i], error = fabs(got - expected[i]);
        const bool same = got == expected[i] || (isnan(got) && isnan(expected[i]));
        cr_expect(same || error <= share * fabs(expected[i]), "number %d is %.17g, not %.17g", i,
                  got, expected[i]);
    }
}

static inline void expect_numbers(const sb_tensor *t, int n, const double *expected)
{
    expect_near_numbers(t, 1e-15, n, expected);
}

static inline void expect_exact_numbers(const sb_tensor *t, int n, const double *expected)
{
    expect_near_numbers(t, 0, n, expected);
}

/* y = f(x) and the gradients of x, for a dy fixed by y's shape. It runs twice, so that the second
   gradient is added to the first. All belongs to the test. */
static inline sb_tensor *run_with_gradients(sb_function f, sb_tensor *const x[], int n,
                                            sb_tensor *dx[])
{
    sb_tensor *y = NULL;
    for (int round = 0; round < 2; round++) {
        TAPE(SB_RECORD);
        y = KEPT(sb_tensor_retain(f(NULL, x)));
        sb_tensor *dy = test_leaf(y->dtype, 99, y->rank, y->dim);
        MUST(sb_backward_from(y, dy));
    }
    for (int i = 0; i < n; i++)
        dx[i] = take_grad(x[i]);
    return y;
}

/* Asserts that two functions have the same values and gradients, to 1e-12 in float64, at the
   inputs that `shapes` describes (see ops/example.h). */
static inline void expect_same_function(sb_function f, sb_function g, const char *shapes)
{
    const struct inputs in = inputs_new(shapes, SB_F64, 5);
    sb_tensor *df[EXAMPLE_INPUTS], *dg[EXAMPLE_INPUTS];
    sb_tensor *yf = run_with_gradients(f, in.x, in.n, df),
              *yg = run_with_gradients(g, in.x, in.n, dg);
    cr_expect(test_relative(yf, yg) <= 1e-12, "\"%s\": values differ by %g", shapes,
              test_relative(yf, yg));
    for (int i = 0; i < in.n; i++)
        cr_expect(!in.x[i]->requires_grad || test_relative(df[i], dg[i]) <= 1e-12,
                  "\"%s\": gradients of input %d differ by %g", shapes, i,
                  test_relative(df[i], dg[i]));
}

/* The same at each of these shapes. */
#define EXPECT_SAME_FUNCTION(f, g, ...)                                                            \
    do {                                                                                           \
        const char *const shapes_[] = {__VA_ARGS__};                                               \
        for (size_t i_ = 0; i_ < sizeof shapes_ / sizeof *shapes_; i_++)                           \
            expect_same_function(f, g, shapes_[i_]);                                               \
    } while (0)

/* Asserts that seven equal rows of length C give the same bits, on a tape that does not record:
   the result of a row does not depend on its position. */
static inline void expect_rows_do_not_depend_on_position(sb_tensor *(*f)(sb_tensor *x), int64_t C)
{
    enum { ROWS = 7 };
    TAPE(SB_NO_RECORD);
    sb_tensor *row = test_leaf(SB_F32, (uint64_t)C, SB_SHAPE(C));
    sb_tensor *x = sb_expand(row, SB_SHAPE(ROWS, C)), *y = f(x);
    MUST(y);
    const float *bits = test_data(y);
    int64_t size = sb_tensor_size(y) / ROWS;
    for (int64_t r = 1; r < ROWS; r++)
        cr_expect(memcmp(bits, bits + r * size, (size_t)size * sizeof *bits) == 0,
                  "row %lld of length %lld differs", (long long)r, (long long)C);
}

/* The same for lengths around the widths of vectors, with each set of kernels. */
static inline void expect_row_function(sb_tensor *(*f)(sb_tensor *x))
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);) {
        for (int64_t C = 1; C < 70; C += test_slow() ? 5 : 1)
            expect_rows_do_not_depend_on_position(f, C);
        expect_rows_do_not_depend_on_position(f, 1001);
    }
}

#endif
