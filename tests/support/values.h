/* Tensors from written-out numbers, and their comparison with others. */
#ifndef SOFTBACK_TESTS_SUPPORT_VALUES_H
#define SOFTBACK_TESTS_SUPPORT_VALUES_H

#include "tests/support/test.h"

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

/* Each number to 1e-15 of itself; NaN equals NaN. */
static inline void expect_numbers(const sb_tensor *t, int n, const double *expected)
{
    MUST(t);
    cr_assert(sb_tensor_size(t) == n, "there are %lld numbers, not %d",
              (long long)sb_tensor_size(t), n);
    double *numbers = numbers_of(t);
    for (int i = 0; i < n; i++) {
        const double got = numbers[i], error = fabs(got - expected[i]);
        const bool same = got == expected[i] || (isnan(got) && isnan(expected[i]));
        cr_expect(same || error <= 1e-15 * fabs(expected[i]), "number %d is %.17g, not %.17g", i,
                  got, expected[i]);
    }
}

#endif
