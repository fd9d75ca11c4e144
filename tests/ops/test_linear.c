#include "autograd/node.h"
#include "tests/support/compare.h"

/* x = (1, 2), W = (3 4; 5 6; 7 8), b = (10, 20, 30): x W' + b = (21, 37, 53). */
static const double weights[] = {3, 4, 5, 6, 7, 8};

TEST(linear, one_row_gives_the_hand_worked_values)
{
    TAPE(SB_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(2), (double[]){1, 2});
    sb_tensor *weight = owned(SB_F64, SB_SHAPE(3, 2), weights);
    sb_tensor *bias = owned(SB_F64, SB_SHAPE(3), (double[]){10, 20, 30});
    sb_tensor *y = sb_linear(x, weight, bias);
    cr_expect(sb_tensor_rank(y) == 1 && sb_tensor_dim(y, 0) == 3);
    cr_expect(sb_tensor_get(y, 0) == 21 && sb_tensor_get(y, 1) == 37 && sb_tensor_get(y, 2) == 53);
    y = sb_linear(x, weight, NULL);
    cr_expect(sb_tensor_get(y, 0) == 11 && sb_tensor_get(y, 1) == 17 && sb_tensor_get(y, 2) == 23);
    bias = owned(SB_F64, SB_SHAPE(3), (double[]){-20, -17, -13});
    y = sb_linear_activation(x, weight, bias, SB_ACTIVATION_RELU);
    cr_expect(sb_tensor_get(y, 0) == 0 && sb_tensor_get(y, 1) == 0 && sb_tensor_get(y, 2) == 10);
}

/* With dy = (1, 1, 1) and relu, whose third unit alone is positive: dz = (0, 0, 1). */
TEST(linear, backward_gives_the_hand_worked_gradients)
{
    sb_tensor *x = KEPT(
        sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2), (double[]){1, 2})));
    sb_tensor *weight =
        KEPT(sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(3, 2), weights)));
    sb_tensor *bias = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(SB_F64, SB_SHAPE(3), (double[]){-20, -17, -13})));
    TAPE(SB_RECORD);
    sb_tensor *dy = owned(SB_F64, SB_SHAPE(1, 3), (double[]){1, 1, 1});
    MUST(sb_backward_from(sb_linear_activation(x, weight, bias, SB_ACTIVATION_RELU), dy));
    const double dweight[] = {0, 0, 0, 0, 1, 2};
    cr_expect(sb_tensor_get(sb_tensor_grad(x), 0) == 7 && sb_tensor_get(sb_tensor_grad(x), 1) == 8);
    for (int i = 0; i < 6; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(weight), i) == dweight[i]);
    for (int i = 0; i < 3; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(bias), i) == (i == 2));
}

static sb_activation activation;

static sb_tensor *fused(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_linear_activation(x[0], x[1], x[2], activation);
}

static sb_tensor *composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_tensor *z = sb_add(sb_matmul_nt(x[0], x[1]), x[2]);
    switch (activation) {
    case SB_ACTIVATION_IDENTITY:
        return z;
    case SB_ACTIVATION_RELU:
        return sb_relu(z);
    case SB_ACTIVATION_GELU:
        return sb_gelu(z);
    case SB_ACTIVATION_GELU_TANH:
        return sb_gelu_tanh(z);
    case SB_ACTIVATION_SILU:
        return sb_silu(z);
    case SB_ACTIVATION_TANH:
        return sb_tanh(z);
    case SB_ACTIVATION_SIGMOID:
        return sb_sigmoid(z);
    }
    return NULL;
}

TEST(linear, every_activation_is_the_composition_of_its_steps)
{
    const char *const shapes[] = {"1x1 1x1 1",   "2x7 3x7 3",     "63x64 65x64 65", "2x3x4 5x4 5",
                                  "200x3 2x3 2", "=3x2 4x2 4",    "3x2 =4x2 4",     "3x2 4x2 =4",
                                  "5x0 2x0 2",   "3x2 300x2 300", "2x1x2x5 1x5 1"};
    for (activation = SB_ACTIVATION_IDENTITY; activation <= SB_ACTIVATION_SIGMOID; activation++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            expect_same_function(fused, composed, shapes[i]);
}

static sb_tensor *without_bias(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_linear_activation(x[0], x[1], NULL, SB_ACTIVATION_GELU);
}

static sb_tensor *without_bias_composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_gelu(sb_matmul_nt(x[0], x[1]));
}

TEST(linear, the_bias_is_optional)
{
    expect_same_function(without_bias, without_bias_composed, "2x3x4 5x4");
}

/* The weight is tied between two layers. */
static sb_tensor *tied(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_linear(sb_linear(x[0], x[1], x[2]), x[1], x[2]);
}

static sb_tensor *tied_composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_tensor *z = sb_add(sb_matmul_nt(x[0], x[1]), x[2]);
    return sb_add(sb_matmul_nt(z, x[1]), x[2]);
}

TEST(linear, gradients_of_a_tied_weight_add_up)
{
    expect_same_function(tied, tied_composed, "5x3 3x3 3");
}

TEST(linear, no_rows_give_zero_gradients)
{
    const struct inputs in = inputs_new("0x2 3x2 3", SB_F32, 1);
    sb_tensor *const *x = in.x;
    TAPE(SB_RECORD);
    sb_tensor *dy = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3)));
    MUST(sb_backward_from(sb_linear(x[0], x[1], x[2]), dy));
    for (int i = 0; i < 6; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(x[1]), i) == 0);
    for (int i = 0; i < 3; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(x[2]), i) == 0);
}

TEST(linear, a_nan_or_an_infinity_propagates)
{
    TAPE(SB_RECORD);
    sb_tensor *weight = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(2, 3), 0));
    sb_tensor *bias = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2)));
    for (sb_activation kind = SB_ACTIVATION_IDENTITY; kind <= SB_ACTIVATION_SIGMOID; kind++)
        for (int place = 0; place < 3; place++) {
            double values[3] = {1, 1, 1};
            values[place] = place == 1 ? INFINITY : NAN; /* 0 times infinity */
            sb_tensor *x = owned(SB_F32, SB_SHAPE(3), values);
            sb_tensor *y = sb_linear_activation(x, weight, bias, kind);
            cr_expect(isnan(sb_tensor_get(y, 0)) && isnan(sb_tensor_get(y, 1)), "activation %d",
                      (int)kind);
        }
}

/* All rows together, compared with every n-th row alone: decoding relies on this. */
static void expect_rows_alone(int64_t rows, int64_t in, int64_t out, int64_t every)
{
    TAPE_WITH(SB_NO_RECORD, &(sb_context){.batch_invariant = true});
    sb_tensor *weight = test_leaf(SB_F32, 1, SB_SHAPE(out, in));
    sb_tensor *bias = test_leaf(SB_F32, 2, SB_SHAPE(out));
    sb_tensor *x = test_leaf(SB_F32, 3, SB_SHAPE(rows, in));
    const float *values = test_data(x);
    const float *all = test_data(sb_linear_activation(x, weight, bias, SB_ACTIVATION_GELU));
    for (int64_t r = 0; r < rows; r += every) {
        sb_tensor *row = sb_tape_own(sb_tensor_from(SB_F32, SB_SHAPE(1, in), values + r * in));
        const float *alone = test_data(sb_linear_activation(row, weight, bias, SB_ACTIVATION_GELU));
        cr_expect(memcmp(alone, all + r * out, (size_t)out * sizeof *alone) == 0,
                  "row %lld of %lld with %s", (long long)r, (long long)rows, kernel_cpu_name());
    }
}

TEST(linear, in_decoding_a_row_does_not_depend_on_its_batch)
{
    too_slow(EMULATED_SANITIZED, "it runs many cases of kernels that shorter tests run too");
    enum kernel_set usual = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        if (test_kernel_set(set))
            expect_rows_alone(67, 65, 131, 1);
    kernel_use_cpu_set(usual);
    expect_rows_alone(601, 603, 605, 100); /* large enough for BLAS on a tape that records */
}

CPU_TEST(linear, results_have_the_same_bits_for_any_number_of_threads)
{
    int usual = sb_threads();
    sb_tensor *dx[2][3], *y[2];
    activation = SB_ACTIVATION_SILU;
    const struct inputs in = inputs_new("700x33 129x33 129", SB_F32, 1);
    sb_tensor *const *x = in.x;
    for (int i = 0; i < 2; i++) {
        cr_assert(sb_set_threads(i == 0 ? 1 : 3));
        y[i] = run_with_gradients(fused, x, 3, dx[i]);
    }
    sb_set_threads(usual);
    cr_expect(test_same_bits(y[0], y[1]));
    for (int i = 0; i < 3; i++) {
        cr_expect(test_same_bits(dx[0][i], dx[1][i]),
                  "the gradient of input %d depends on the threads", i);
    }
}

/* y, dx, dW and db of a linear, with TF32 or without. */
static void run_with_tf32(sb_dtype dtype, bool tf32, bool biased, sb_tensor *got[4])
{
    const struct inputs in = inputs_new("40x96 72x96 72", dtype, 1);
    sb_tensor *const *x = in.x;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    tape_open()->tf32 = tf32;
    sb_tensor *dy = test_leaf(dtype, 9, SB_SHAPE(40, 72));
    got[0] = retained(sb_linear(x[0], x[1], biased ? x[2] : NULL));
    MUST(sb_backward_from(got[0], dy));
    sb_tape_end(&tape);
    for (int i = 0; i < 3; i++) {
        got[1 + i] = retained(sb_tensor_grad(x[i]));
    }
}

/* Each operand is rounded to 11 bits, so a result errs by at most 2^-11 of the sum of its terms'
   sizes, and usually by much less. */
TEST(linear, tf32_rounds_the_products_of_f32_on_a_device_alone)
{
    for (int i = 0; i < 4; i++) {
        const sb_dtype dtype = i / 2 ? SB_F64 : SB_F32;
        const bool rounds = dtype == SB_F32 && sb_device_in_use() != sb_device_cpu();
        sb_tensor *with[4], *again[4], *without[4];
        run_with_tf32(dtype, true, i % 2, with);
        run_with_tf32(dtype, true, i % 2, again);
        run_with_tf32(dtype, false, i % 2, without);
        for (int j = 0; j < (i % 2 ? 4 : 3); j++) {
            const double error = test_relative(with[j], without[j]);
            cr_expect(test_same_bits(with[j], again[j]));
            cr_expect(rounds && j < 3 ? error > 0x1p-18 && error < 0x1p-10 : error == 0,
                      "%s, result %d: %g", sb_dtype_name(dtype), j, error);
        }
    }
}
