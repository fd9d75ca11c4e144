/* Softmax and norms over any axis, against loops over the indices of (outer, C, inner). */
#include "tests/support/values.h"

enum { RANK = 3 };

static const int64_t dim[RANK] = {3, 4, 5};

/* y from a row of C numbers. */
typedef void row_function(int64_t C, const double *x, double *y);

static void softmax_row(int64_t C, const double *x, double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < C; i++)
        sum += exp(x[i]);
    for (int64_t i = 0; i < C; i++)
        y[i] = exp(x[i]) / sum;
}

static void log_softmax_row(int64_t C, const double *x, double *y)
{
    softmax_row(C, x, y);
    for (int64_t i = 0; i < C; i++)
        y[i] = log(y[i]);
}

static void l2_row(int64_t C, const double *x, double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < C; i++)
        sum += x[i] * x[i];
    for (int64_t i = 0; i < C; i++)
        y[i] = x[i] / sqrt(sum);
}

/* With gain 1 + i and epsilon 0.1. */
static void rms_row(int64_t C, const double *x, double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < C; i++)
        sum += x[i] * x[i];
    for (int64_t i = 0; i < C; i++)
        y[i] = (1 + (double)i) * x[i] / sqrt(sum / (double)C + 0.1);
}

static void layer_row(int64_t C, const double *x, double *y)
{
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < C; i++)
        mean += x[i] / (double)C;
    for (int64_t i = 0; i < C; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    for (int64_t i = 0; i < C; i++)
        y[i] = (1 + (double)i) * (x[i] - mean) / sqrt(sum / (double)C + 0.1) - (double)i;
}

/* 1 + i, and -i. */
static sb_tensor *gain_of(int axis)
{
    const double values[] = {1, 2, 3, 4, 5};
    return sb_tape_own(sb_tensor_from_doubles(SB_F64, 1, &dim[axis], values));
}

static sb_tensor *bias_of(int axis)
{
    const double values[] = {0, -1, -2, -3, -4};
    return sb_tape_own(sb_tensor_from_doubles(SB_F64, 1, &dim[axis], values));
}

static void expect_rows(const sb_tensor *y, const double *x, int axis, row_function *row)
{
    MUST(y);
    expect_shape(y, RANK, dim);
    double *numbers = numbers_of(y), in[5], out[5];
    int64_t inner = 1, C = dim[axis];
    for (int i = axis + 1; i < RANK; i++)
        inner *= dim[i];
    for (int64_t start = 0; start < 60; start++) {
        if (start / inner % C != 0)
            continue; /* not the first of a row */
        for (int64_t i = 0; i < C; i++)
            in[i] = x[start + i * inner];
        row(C, in, out);
        for (int64_t i = 0; i < C; i++)
            cr_expect(fabs(numbers[start + i * inner] - out[i]) < 1e-13, "axis %d", axis);
    }
}

TEST(over_axis, each_axis_agrees_with_loops_over_its_rows)
{
    for (int axis = 0; axis < RANK; axis++)
        for (int from_last = 0; from_last < 2; from_last++) {
            const int named = from_last ? axis - RANK : axis;
            TAPE(SB_NO_RECORD);
            sb_tensor *x = test_leaf(SB_F64, 1, RANK, dim);
            double *values = numbers_of(x);
            expect_rows(sb_softmax_over(x, named), values, axis, softmax_row);
            expect_rows(sb_log_softmax_over(x, named), values, axis, log_softmax_row);
            expect_rows(sb_l2_normalize_over(x, named), values, axis, l2_row);
            expect_rows(sb_rms_norm_over(x, named, gain_of(axis), 0.1), values, axis, rms_row);
            expect_rows(sb_layer_norm_over(x, named, gain_of(axis), bias_of(axis), 0.1), values,
                        axis, layer_row);
            sb_tensor *rows = sb_log(sb_sum(sb_exp(x), axis, false));
            cr_expect(test_relative(sb_logsumexp_over(x, named), rows) < 1e-14);
        }
}

TEST(over_axis, the_last_axis_is_the_operation_itself)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = test_leaf(SB_F32, 1, RANK, dim);
    cr_expect(test_same_bits(sb_softmax_over(x, 2), sb_softmax(x)));
    cr_expect(test_same_bits(sb_logsumexp_over(x, -1), sb_logsumexp(x)));
}
