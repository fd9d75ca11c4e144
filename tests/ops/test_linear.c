/* Linear layers: alone, as a group, with weights of 8 bits, and with packed weights. */
#include "autograd/node.h"
#include "nn/flat.h"
#include "ops/linear.h"
#include "ops/linear_int8.h"
#include "ops/packed_weights.h"
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
    expect_shape(y, SB_SHAPE(3));
    expect_exact_numbers(y, NUMBERS(21, 37, 53));
    expect_exact_numbers(sb_linear(x, weight, NULL), NUMBERS(11, 17, 23));
    bias = owned(SB_F64, SB_SHAPE(3), (double[]){-20, -17, -13});
    y = sb_linear_activation(x, weight, bias, SB_ACTIVATION_RELU);
    expect_exact_numbers(y, NUMBERS(0, 0, 10));
}

/* With dy = (1, 1, 1) and relu, whose third unit alone is positive: dz = (0, 0, 1). */
TEST(linear, backward_gives_the_hand_worked_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(1, 2), NUMBERS(1, 2));
    sb_tensor *weight = leaf(SB_SHAPE(3, 2), 6, weights);
    sb_tensor *bias = leaf(SB_SHAPE(3), NUMBERS(-20, -17, -13));
    sb_tensor *dy = owned(SB_F64, SB_SHAPE(1, 3), (double[]){1, 1, 1});
    MUST(sb_backward_from(sb_linear_activation(x, weight, bias, SB_ACTIVATION_RELU), dy));
    expect_exact_numbers(sb_tensor_grad(x), NUMBERS(7, 8));
    expect_exact_numbers(sb_tensor_grad(weight), NUMBERS(0, 0, 0, 0, 1, 2));
    expect_exact_numbers(sb_tensor_grad(bias), NUMBERS(0, 0, 1));
}

static sb_activation fused_activation;

FUNCTION(fused, sb_linear_activation(x[0], x[1], x[2], fused_activation))

FUNCTION_HEAD(composed)
{
    sb_tensor *z = sb_add(sb_matmul_nt(x[0], x[1]), x[2]);
    switch (fused_activation) {
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
    for (fused_activation = SB_ACTIVATION_IDENTITY; fused_activation <= SB_ACTIVATION_SIGMOID;
         fused_activation++)
        EXPECT_SAME_FUNCTION(fused, composed, "1x1 1x1 1", "2x7 3x7 3", "63x64 65x64 65",
                             "2x3x4 5x4 5", "200x3 2x3 2", "=3x2 4x2 4", "3x2 =4x2 4", "3x2 4x2 =4",
                             "5x0 2x0 2", "3x2 300x2 300", "2x1x2x5 1x5 1");
}

FUNCTION(without_bias, sb_linear_activation(x[0], x[1], NULL, SB_ACTIVATION_GELU))
FUNCTION(without_bias_composed, sb_gelu(sb_matmul_nt(x[0], x[1])))

TEST(linear, the_bias_is_optional)
{
    expect_same_function(without_bias, without_bias_composed, "2x3x4 5x4");
}

/* The weight is tied between two layers. */
FUNCTION(tied, sb_linear(sb_linear(x[0], x[1], x[2]), x[1], x[2]))

FUNCTION_HEAD(tied_composed)
{
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
    cr_expect(largest_of(sb_tensor_grad(x[1])) == 0);
    cr_expect(largest_of(sb_tensor_grad(x[2])) == 0);
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

TEST(linear, in_decoding_a_row_does_not_depend_on_its_batch, MANY_CASES)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        expect_rows_alone(67, 65, 131, 1);
    expect_rows_alone(601, 603, 605, 100); /* large enough for BLAS on a tape that records */
}

CPU_TEST(linear, results_have_the_same_bits_for_any_number_of_threads)
{
    int usual = sb_threads();
    sb_tensor *dx[2][3], *y[2];
    fused_activation = SB_ACTIVATION_SILU;
    const struct inputs in = inputs_new("700x33 129x33 129", SB_F32, 1);
    sb_tensor *const *x = in.x;
    for (int i = 0; i < 2; i++) {
        cr_assert(sb_set_threads(i == 0 ? 1 : 3));
        y[i] = run_with_gradients(fused, x, 3, dx[i]);
    }
    sb_set_threads(usual);
    cr_expect(test_same_bits(y[0], y[1]));
    for (int i = 0; i < 3; i++)
        cr_expect(test_same_bits(dx[0][i], dx[1][i]),
                  "the gradient of input %d depends on the threads", i);
}

/* y, dx, dW and db of a linear, with TF32 or without. */
static void run_with_tf32(sb_dtype dtype, bool tf32, bool biased, sb_tensor *got[4])
{
    const struct inputs in = inputs_new("40x96 72x96 72", dtype, 1);
    sb_tensor *const *x = in.x;
    TAPE(SB_RECORD);
    tape_open()->tf32 = tf32;
    sb_tensor *dy = test_leaf(dtype, 9, SB_SHAPE(40, 72));
    got[0] = retained(sb_linear(x[0], x[1], biased ? x[2] : NULL));
    MUST(sb_backward_from(got[0], dy));
    for (int i = 0; i < 3; i++)
        got[1 + i] = retained(sb_tensor_grad(x[i]));
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

/*
 * Linears of one x as a group: values and gradients are those of single linears, where the weights
 * lie at equal distances, and so a device computes one product, and where they do not.
 */

enum { HEADS = 2, GROUP_IN = 8, GROUP_OUT = 12, LENGTH = 35, MOST = LINEAR_GROUP };

struct scene {
    sb_parameters *set;
    sb_tensor *x, *weight[MOST], *bias[MOST]; /* bias[0] is NULL without biases */
    int n;
};

static struct scene scene_new(sb_dtype dtype, int n, bool biased, bool joined)
{
    static const char *const names[] = {"query", "key", "value"};
    struct scene s = {.set = KEPT(sb_parameters_of(dtype, 3)), .n = n};
    for (int i = 0; i < n; i++) {
        sb_linear_layer layer;
        MUST(sb_linear_layer_init(&layer, s.set, names[i], GROUP_IN, GROUP_OUT, biased));
        s.weight[i] = layer.weight;
        s.bias[i] = layer.bias;
        for (int64_t c = 0; biased && c < GROUP_OUT; c++)
            sb_tensor_set(layer.bias, c, 0.25 * (double)(c - 3 * i));
    }
    MUST(!joined || parameters_flatten(s.set));
    s.x = test_leaf(dtype, 5, SB_SHAPE(2, LENGTH, GROUP_IN));
    return s;
}

/* The results, split into heads. */
static bool scene_forward(const struct scene *s, bool grouped, sb_tensor *y[])
{
    if (grouped)
        return linear_group(s->x, s->n, s->weight, s->bias[0] ? s->bias : NULL, HEADS, y);
    for (int i = 0; i < s->n; i++)
        y[i] = sb_reshape(sb_linear(s->x, s->weight[i], s->bias[i]),
                          SB_SHAPE(2, LENGTH, HEADS, GROUP_OUT / HEADS));
    return y[s->n - 1] != NULL;
}

/* The sum of squares of all results but the first `unused`. */
static sb_tensor *scene_loss(const struct scene *s, bool grouped, int unused)
{
    sb_tensor *y[MOST], *sum = NULL;
    if (!scene_forward(s, grouped, y))
        return NULL;
    for (int i = unused; i < s->n; i++) {
        sb_tensor *part = sb_sum(sb_multiply(y[i], y[i]), SB_ALL, false);
        sum = sum ? sb_add(sum, part) : part;
    }
    return sum;
}

static void expect_near(const sb_tensor *a, const sb_tensor *b, const char *what)
{
    cr_assert(!a == !b, "%s: one of the two is missing", what);
    const bool f64 = a && sb_tensor_dtype(a) == SB_F64, f32 = a && sb_tensor_dtype(a) == SB_F32;
    const double limit = f64 ? 1e-14 : f32 ? 1e-5 : 1e-2;
    cr_expect(!a || test_relative(a, b) <= limit, "%s: they differ by %g", what,
              test_relative(a, b));
}

static void expect_values(sb_dtype dtype, int n, bool biased, bool joined, sb_mode mode)
{
    struct scene s = scene_new(dtype, n, biased, joined);
    sb_tensor *one[MOST], *all[MOST];
    TAPE(mode);
    MUST(scene_forward(&s, false, one) && scene_forward(&s, true, all));
    for (int i = 0; i < n; i++)
        expect_near(one[i], all[i], "values");
}

TEST(linear_group, values_are_those_of_single_linears)
{
    static const sb_dtype dtypes[] = {SB_F32, SB_F64, SB_BF16};
    for (int i = 0; i < 3 * 2 * 2 * 2 * 2; i++)
        expect_values(dtypes[i / 16], 2 + i % 2, i / 2 % 2, i / 4 % 2,
                      i / 8 % 2 ? SB_RECORD : SB_NO_RECORD);
}

/* Twice, so that the second gradients are added to the first. */
static void expect_gradients(struct scene *a, struct scene *b, int unused, const char *what)
{
    for (int round = 0; round < 2; round++)
        for (int grouped = 0; grouped < 2; grouped++) {
            TAPE(SB_RECORD);
            sb_tensor *loss = scene_loss(grouped ? b : a, grouped, unused);
            cr_assert(loss && sb_backward(loss), "%s: %s", what, sb_error());
        }
    expect_near(sb_tensor_grad(a->x), sb_tensor_grad(b->x), what);
    for (int i = 0; i < a->n; i++) {
        expect_near(sb_tensor_grad(a->weight[i]), sb_tensor_grad(b->weight[i]), what);
        expect_near(sb_tensor_grad(a->bias[i]), sb_tensor_grad(b->bias[i]), what);
    }
}

static void expect_same_step(sb_dtype dtype, int n, bool biased, bool joined, int unused)
{
    struct scene a = scene_new(dtype, n, biased, joined), b = scene_new(dtype, n, biased, joined);
    expect_gradients(&a, &b, unused, joined ? "joined" : "not joined");
}

TEST(linear_group, gradients_are_those_of_single_linears)
{
    static const sb_dtype dtypes[] = {SB_F32, SB_F64, SB_BF16};
    for (int i = 0; i < 3 * 2 * 2 * 2; i++)
        expect_same_step(dtypes[i / 8], 2 + i % 2, i / 2 % 2, i / 4 % 2, 0);
}

TEST(linear_group, an_unused_output_gives_no_gradients)
{
    expect_same_step(SB_F32, 3, true, true, 1);
    expect_same_step(SB_F32, 3, true, false, 2);
}

TEST(linear_group, a_frozen_weight_stays_without_a_gradient)
{
    struct scene a = scene_new(SB_F32, 3, true, true), b = scene_new(SB_F32, 3, true, true);
    for (int i = 0; i < 2; i++)
        cr_assert(sb_parameters_freeze(i ? b.set : a.set, "key.weight", true));
    expect_gradients(&a, &b, 0, "frozen");
    cr_expect(!sb_tensor_grad(b.weight[1]) && sb_tensor_grad(b.weight[2]));
}

static sb_tensor *checked(void *n_, sb_tensor *const x[])
{
    const int n = *(int *)n_;
    sb_tensor *y[MOST];
    if (!linear_group(x[0], n, x + 1, x + 1 + n, HEADS, y))
        return NULL;
    sb_tensor *product = sb_multiply(y[0], y[1]);
    return sb_sum(n > 2 ? sb_multiply(product, y[2]) : product, SB_ALL, false);
}

CPU_TEST(linear_group, gradients_agree_with_dual_numbers_and_differences)
{
    for (int n = 2; n <= MOST; n++)
        for (sb_gradcheck_method m = SB_GRADCHECK_EXACT; m <= SB_GRADCHECK_DIFFERENCES; m++) {
            sb_tensor *x[1 + 2 * MOST] = {test_leaf(SB_F64, 1, SB_SHAPE(3, 5))};
            for (int i = 1; i <= 2 * n; i++)
                x[i] = i <= n ? test_leaf(SB_F64, (uint64_t)i, SB_SHAPE(4, 5))
                              : test_leaf(SB_F64, (uint64_t)i, SB_SHAPE(4));
            const sb_gradcheck_options options = {.method = m};
            cr_expect(sb_gradcheck(checked, &n, x, 1 + 2 * n, &options, NULL), "%d linears: %s", n,
                      sb_error());
        }
}

static int64_t bytes_between(const sb_tensor *a, const sb_tensor *b)
{
    return (const char *)b->data - (const char *)a->data;
}

TEST(linear_group, results_and_their_gradients_lie_in_a_block_each)
{
    struct scene s = scene_new(SB_F32, 3, true, true);
    sb_tensor *y[MOST], *sum = NULL;
    TAPE(SB_RECORD);
    MUST(scene_forward(&s, true, y));
    for (int i = 2; i >= 0; i--) { /* the first is the last to get a gradient */
        sb_tensor *part = sb_sum(sb_exp(sb_keep(y[i])), SB_ALL, false);
        sum = sum ? sb_add(sum, part) : part;
    }
    MUST(sb_backward(sum));
    const sb_tensor *const dy[] = {sb_tensor_grad(y[0]), sb_tensor_grad(y[1]),
                                   sb_tensor_grad(y[2])};
    const int64_t distance = bytes_between(y[0], y[1]);
    cr_expect(distance >= 2 * LENGTH * GROUP_OUT * 4 && distance % 16 == 0);
    cr_expect(bytes_between(y[1], y[2]) == distance);
    cr_expect(bytes_between(dy[0], dy[1]) == distance && bytes_between(dy[1], dy[2]) == distance);
}

static int64_t kernels_until_now(void)
{
    device_cuda()->synchronize();
    return device_work().kernels;
}

static int64_t kernels_of_step(const struct scene *s, bool grouped)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y[MOST];
    const int64_t before = kernels_until_now();
    MUST(scene_forward(s, grouped, y));
    sb_tensor *all = sb_concatenate(y, s->n, 0);
    MUST(sb_backward_from(all, test_leaf(SB_F32, 9, all->rank, all->dim)));
    sb_tape_end(&tape);
    return kernels_until_now() - before;
}

static void begin_without_refusals(void)
{
    setenv("SOFTBACK_EMULATOR_ORDER", "forward", 1);
    test_begin();
    device_needed();
    device_cuda()->pool->poison = NULL;
}

/* Forward: 1 instead of 3 products. Backward: 2 instead of 6 sums for the biases, 3 products for
   dx, 1 instead of 3 for the weights. */
TEST_AFTER(begin_without_refusals, linear_group, is_one_product_at_equal_distances)
{
    struct scene joined = scene_new(SB_F32, 3, true, true),
                 apart = scene_new(SB_F32, 3, true, false);
    const int64_t single = kernels_of_step(&joined, false);
    cr_expect(kernels_of_step(&joined, true) == single - 8, "%lld kernels, of single linears %lld",
              (long long)kernels_of_step(&joined, true), (long long)single);
    cr_expect(kernels_of_step(&apart, true) == single);
}

static bool step(void *scene)
{
    struct scene *s = scene;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *loss = scene_loss(s, true, 0);
    const bool ok = loss && sb_backward(loss);
    sb_tensor_clear_grad(s->x);
    return sb_tape_end(&tape) && ok;
}

TEST(linear_group, each_failing_allocation_is_reported)
{
    struct scene s = scene_new(SB_F32, 3, true, true);
    cr_expect(test_each_allocation_fails(step, &s) > 0);
}

TEST(linear_group, what_does_not_fit_together_is_refused)
{
    struct scene s = scene_new(SB_F32, 3, true, false);
    sb_tensor *y[MOST];
    REFUSED_ON_TAPE(SB_NO_RECORD,
                    "linear: x is (2, 35, 8), weight is (12, 8): the result cannot be split into 5 "
                    "heads",
                    linear_group(s.x, 3, s.weight, s.bias, 5, y));
    REFUSED_ON_TAPE(SB_NO_RECORD, "linear: a group of 4; it must have 2 to 3",
                    linear_group(s.x, 4, s.weight, NULL, 1, y));
    FAILED_TAPE(SB_NO_RECORD);
    s.weight[1] = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(13, GROUP_IN)));
    REFUSED("linear: weights of a group are (12, 8) and (13, 8); they must have one shape",
            linear_group(s.x, 3, s.weight, NULL, 1, y));
}

/* ---- linear int8 ---- */

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
    for (struct sets s = sets_up_to(KERNELS_PLAIN); next_set(&s);)
        test();
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

/* ---- packed weights ---- */

/* x W' + b, `times` times, on tapes inside one whose context has packed weights, if it `keeps`; the
   last result. */
static sb_tensor *packed_multiply(bool keeps, int times, sb_tensor *x, sb_tensor *weight,
                                  sb_tensor *bias)
{
    sb_tensor *y = NULL;
    struct packed_weights *packed = keeps ? packed_weights_new(SB_WEIGHTS_AS_STORED) : NULL;
    sb_tape around, tape;
    sb_tape_begin_with(&around, SB_NO_RECORD, &(sb_context){.packed = packed});
    for (int i = 0; i < times; i++) {
        sb_tape_begin(&tape, SB_NO_RECORD);
        y = retained(sb_linear_activation(x, weight, bias, SB_ACTIVATION_GELU));
        cr_expect(sb_tape_end(&tape) && y, "%s", sb_error());
    }
    sb_tape_end(&around);
    packed_weights_free(packed);
    return y;
}

static void expect_same_bits(sb_dtype dtype, int64_t rows, int64_t in, int64_t out)
{
    sb_tensor *x = test_leaf(dtype, 1, SB_SHAPE(rows, in));
    sb_tensor *weight = test_leaf(dtype, 2, SB_SHAPE(out, in));
    sb_tensor *bias = test_leaf(dtype, 3, SB_SHAPE(out));
    sb_tensor *plain = packed_multiply(false, 1, x, weight, bias);
    sb_tensor *packed = packed_multiply(true, 3, x, weight, bias);
    cr_expect(test_same_bits(plain, packed), "%s: (%lld, %lld) times (%lld, %lld)'",
              sb_dtype_name(dtype), (long long)rows, (long long)in, (long long)out, (long long)in);
}

/* Rows above and below the number from which strips are used, depths of several blocks, columns
   that do not fill vectors; for each instruction set. */
CPU_TEST(packed_weights, results_have_the_same_bits)
{
    static const int64_t rows[] = {1, 3, 5, 70}, in[] = {1, 17, 256, 300, 1000},
                         out[] = {1, 31, 64, 200};
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (int i = 0; i < 4 * 5 * 4 * 2; i++)
            expect_same_bits(i % 2 ? SB_F64 : SB_F32, rows[i / 2 % 4], in[i / 8 % 5],
                             out[i / 40 % 4]);
}

/* Another tensor than a parameter may be replaced, or have another value, before its next use. */
CPU_TEST(packed_weights, only_parameters_are_packed)
{
    sb_tensor *x = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2), (double[]){1, 10}));
    sb_tensor *weight = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2), (double[]){0, 1}));
    struct packed_weights *packed = packed_weights_new(SB_WEIGHTS_AS_STORED);
    TAPE_WITH(SB_NO_RECORD, &(sb_context){.packed = packed});
    for (int i = 0; i < 4; i++) {
        sb_tensor_set(weight, 0, i);
        cr_expect(sb_tensor_value(sb_linear(x, weight, NULL)) == 10 + i);
    }
    packed_weights_free(packed);
}

/* A weight that is used once costs nothing. */
CPU_TEST(packed_weights, weights_are_packed_at_their_second_use)
{
    const int64_t n = 64, bytes = n * n * (int64_t)sizeof(float);
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(1, n)),
              *weight = test_leaf(SB_F32, 2, SB_SHAPE(n, n));
    const int64_t before = memory_in_use().live_bytes;
    struct packed_weights *packed = packed_weights_new(SB_WEIGHTS_AS_STORED);
    sb_tape around, tape;
    sb_tape_begin_with(&around, SB_NO_RECORD, &(sb_context){.packed = packed});
    for (int use = 1; use <= 3; use++) {
        sb_tape_begin(&tape, SB_NO_RECORD);
        cr_expect(sb_linear(x, weight, NULL) != NULL);
        cr_expect(sb_tape_end(&tape));
        cr_expect((memory_in_use().live_bytes - before >= bytes) == (use > 1), "use %d: %lld bytes",
                  use, (long long)(memory_in_use().live_bytes - before));
    }
    cr_expect(sb_tape_end(&around));
    packed_weights_free(packed);
    cr_expect(memory_in_use().live_bytes == before);
}

/* A recording tape is for training, which changes weights. */
CPU_TEST(packed_weights, a_recording_tape_does_not_pack_weights)
{
    sb_tensor *x = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2), (double[]){1, 10}));
    sb_tensor *weight = KEPT(
        sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2), (double[]){0, 1})));
    struct packed_weights *packed = packed_weights_new(SB_WEIGHTS_AS_STORED);
    sb_tape around, tape;
    sb_tape_begin_with(&around, SB_NO_RECORD, &(sb_context){.packed = packed});
    for (int i = 0; i < 3; i++) {
        sb_tensor_set(weight, 0, i);
        sb_tape_begin(&tape, SB_RECORD);
        cr_expect(sb_tensor_value(sb_linear(x, weight, NULL)) == 10 + i);
        cr_expect(sb_tape_end(&tape));
    }
    cr_expect(sb_tape_end(&around));
    packed_weights_free(packed);
}
