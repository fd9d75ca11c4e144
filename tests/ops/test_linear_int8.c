#include "ops/linear_int8.h"
#include "ops/packed_weights.h"
#include "tests/support/compare.h"
#include <math.h>

/* activation(x W' + b), on a tape that packs weights in 8 bits if `int8`; the caller releases it.
 */
static sb_tensor *multiply(bool int8, sb_tensor *x, sb_tensor *weight, sb_tensor *bias,
                           sb_activation activation)
{
    struct packed_weights *packed =
        packed_weights_new(int8 ? SB_WEIGHTS_INT8 : SB_WEIGHTS_AS_STORED);
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_NO_RECORD, &(sb_context){.packed = packed});
    sb_tensor *y = retained(sb_linear_activation(x, weight, bias, activation));
    cr_expect(sb_tape_end(&tape) && y, "%s", sb_error());
    packed_weights_free(packed);
    return y;
}

static double largest(const sb_tensor *x, int64_t row)
{
    const int64_t in = x->dim[1];
    double most = 0;
    for (int64_t i = 0; i < in; i++)
        most = fmax(most, fabs(sb_tensor_get(x, row * in + i)));
    return most;
}

/* Each factor is off by half a scale at most: |x'w' - xw| <= sum |x| e_w + |w| e_x + e_x e_w. */
static double bound(const sb_tensor *x, const sb_tensor *weight, int64_t r, int64_t o)
{
    const int64_t in = x->dim[1];
    const double unit = 0.5001 / 127, e_x = unit * largest(x, r), e_w = unit * largest(weight, o);
    double sum = 1e-6;
    for (int64_t i = 0; i < in; i++)
        sum += fabs(sb_tensor_get(x, r * in + i)) * e_w +
               fabs(sb_tensor_get(weight, o * in + i)) * e_x + e_x * e_w;
    return sum;
}

static void expect_within_bound(sb_dtype dtype, int64_t rows, int64_t in, int64_t out)
{
    sb_tensor *x = test_leaf(dtype, 1, SB_SHAPE(rows, in));
    sb_tensor *weight = test_leaf(dtype, 2, SB_SHAPE(out, in));
    sb_tensor *bias = test_leaf(dtype, 3, SB_SHAPE(out));
    sb_tensor *exact = multiply(false, x, weight, bias, SB_ACTIVATION_IDENTITY);
    sb_tensor *y = multiply(true, x, weight, bias, SB_ACTIVATION_IDENTITY);
    for (int64_t i = 0; i < rows * out; i++)
        cr_expect(fabs(sb_tensor_get(y, i) - sb_tensor_get(exact, i)) <=
                      bound(x, weight, i / out, i % out),
                  "%s, (%lld, %lld) times (%lld, %lld)': element %lld is %g, exactly %g",
                  sb_dtype_name(dtype), (long long)rows, (long long)in, (long long)out,
                  (long long)in, (long long)i, sb_tensor_get(y, i), sb_tensor_get(exact, i));
}

/* Calls test for each set of kernels that this processor has. */
static void with_each_set(void (*test)(void))
{
    const enum kernel_set usual = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_PLAIN; set++)
        if (kernel_use_cpu_set(set))
            test();
    kernel_use_cpu_set(usual);
}

static void expect_each_shape_within_bound(void)
{
    static const int64_t rows[] = {1, 3, 4, 9}, in[] = {1, 6, 64, 515}, out[] = {1, 15, 64, 131};
    for (int i = 0; i < 4 * 4 * 4 * 2; i++)
        expect_within_bound(i % 2 ? SB_F64 : SB_F32, rows[i / 2 % 4], in[i / 8 % 4],
                            out[i / 32 % 4]);
}

CPU_TEST(linear_int8, errors_stay_within_half_a_scale_of_each_factor)
{
    with_each_set(expect_each_shape_within_bound);
}

/* Rows whose largest number is 127 are integers times the scale 1: nothing is rounded. */
static void expect_integers_exact(void)
{
    enum { ROWS = 5, IN = 70, OUT = 37 };
    sb_tensor *x = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(ROWS, IN)));
    sb_tensor *weight = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(OUT, IN))));
    for (int64_t i = 0; i < ROWS * IN; i++)
        sb_tensor_set(x, i, i % IN == 3 ? -127 : (double)(i * 37 % 201 - 100));
    for (int64_t i = 0; i < OUT * IN; i++)
        sb_tensor_set(weight, i, i % IN == 5 ? 127 : (double)(i * 29 % 251 - 125));
    sb_tensor *y = multiply(true, x, weight, NULL, SB_ACTIVATION_RELU);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t o = 0; o < OUT; o++) {
            double sum = 0;
            for (int64_t i = 0; i < IN; i++)
                sum += sb_tensor_get(x, r * IN + i) * sb_tensor_get(weight, o * IN + i);
            cr_expect(sb_tensor_get(y, r * OUT + o) == fmax(sum, 0), "%s: (%lld, %lld)",
                      kernel_cpu_name(), (long long)r, (long long)o);
        }
}

CPU_TEST(linear_int8, products_of_integers_are_exact)
{
    with_each_set(expect_integers_exact);
}

/* The largest sum there is: the longest row, all of it 127. */
CPU_TEST(linear_int8, the_longest_row_does_not_overflow)
{
    sb_tensor *x = KEPT(sb_tensor_full(SB_F64, SB_SHAPE(1, LINEAR_INT8_LONGEST), 127));
    sb_tensor *weight = KEPT(
        sb_tensor_requires_grad(sb_tensor_full(SB_F64, SB_SHAPE(1, LINEAR_INT8_LONGEST), 127)));
    sb_tensor *y = multiply(true, x, weight, NULL, SB_ACTIVATION_IDENTITY);
    cr_expect(sb_tensor_value(y) == 127. * 127 * LINEAR_INT8_LONGEST, "%g", sb_tensor_value(y));
}

static void expect_values_that_are_not_finite(void)
{
    sb_tensor *x = KEPT(sb_tensor_from_doubles(SB_F32, SB_SHAPE(4, 2),
                                               (double[]){1, 2, NAN, 1, -INFINITY, 1, 0, 0}));
    sb_tensor *weight = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(SB_F32, SB_SHAPE(3, 2), (double[]){1, 1, INFINITY, 0, 0, 0})));
    sb_tensor *y = multiply(true, x, weight, NULL, SB_ACTIVATION_IDENTITY);
    static const bool is_nan[] = {false, true, false, true,  true, true,
                                  true,  true, true,  false, true, false};
    for (int64_t i = 0; i < 12; i++)
        cr_expect(!!isnan(sb_tensor_get(y, i)) == is_nan[i], "%s: element %lld is %g",
                  kernel_cpu_name(), (long long)i, sb_tensor_get(y, i));
    cr_expect(sb_tensor_get(y, 9) == 0 && sb_tensor_get(y, 11) == 0);
}

CPU_TEST(linear_int8, rows_that_are_not_finite_give_nan_and_zero_rows_zero)
{
    with_each_set(expect_values_that_are_not_finite);
}

/* Bits of a row with others, and alone; with several threads, which share panels, and with one. */
CPU_TEST(linear_int8, a_row_depends_on_no_other)
{
    enum { ROWS = 7, IN = 33, OUT = 150 };
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(ROWS, IN));
    sb_tensor *weight = test_leaf(SB_F32, 2, SB_SHAPE(OUT, IN));
    const int64_t usual = kernel_parallel_work;
    kernel_parallel_work = 0;
    sb_tensor *all = multiply(true, x, weight, NULL, SB_ACTIVATION_GELU);
    kernel_parallel_work = usual;
    for (int64_t r = 0; r < ROWS; r++) {
        double row[IN];
        for (int64_t i = 0; i < IN; i++)
            row[i] = sb_tensor_get(x, r * IN + i);
        sb_tensor *one = KEPT(sb_tensor_from_doubles(SB_F32, SB_SHAPE(1, IN), row));
        sb_tensor *y = multiply(true, one, weight, NULL, SB_ACTIVATION_GELU);
        for (int64_t o = 0; o < OUT; o++)
            cr_expect(sb_tensor_get(y, o) == sb_tensor_get(all, r * OUT + o), "(%lld, %lld)",
                      (long long)r, (long long)o);
    }
}

/* A quarter of f32's bytes, and from the first use on, so that all uses give the same. */
CPU_TEST(linear_int8, a_weight_takes_a_byte_a_number)
{
    const int64_t n = 128;
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(1, n)), *y[2];
    sb_tensor *weight = test_leaf(SB_F32, 2, SB_SHAPE(n, n));
    struct packed_weights *packed = packed_weights_new(SB_WEIGHTS_INT8);
    const int64_t before = memory_in_use().live_bytes;
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_NO_RECORD, &(sb_context){.packed = packed});
    for (int use = 0; use < 2; use++)
        y[use] = sb_linear(x, weight, NULL);
    cr_expect(test_same_bits(y[0], y[1]));
    cr_expect(sb_tape_end(&tape));
    const int64_t bytes = memory_in_use().live_bytes - before;
    cr_expect(bytes >= n * n && bytes < n * n * 3 / 2, "%lld bytes", (long long)bytes);
    packed_weights_free(packed);
}
