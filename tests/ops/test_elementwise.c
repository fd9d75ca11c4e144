#include "ops/elementwise.h"
#include "tests/support/values.h"

/* Values and derivatives at four points, by PyTorch 2 in float64. */
static const struct {
    const char *name;
    sb_tensor *(*function)(sb_tensor *x);
    double x[4], y[4], dx[4];
} references[] = {
    {"negate", sb_negate, {-3, -0.5, 0.25, 2}, {3, 0.5, -0.25, -2}, {-1, -1, -1, -1}},
    {"sqrt",
     sb_sqrt,
     {3, 0.5, 0.25, 2},
     {1.7320508075688772, 0.70710678118654746, 0.5, 1.4142135623730949},
     {0.28867513459481292, 0.70710678118654757, 1, 0.35355339059327379}},
    {"exp",
     sb_exp,
     {-3, -0.5, 0.25, 2},
     {0.049787068367863944, 0.60653065971263342, 1.2840254166877414, 7.3890560989306504},
     {0.049787068367863944, 0.60653065971263342, 1.2840254166877414, 7.3890560989306504}},
    {"log",
     sb_log,
     {3, 0.5, 0.25, 2},
     {1.0986122886681098, -0.69314718055994529, -1.3862943611198906, 0.69314718055994529},
     {0.33333333333333331, 2, 4, 0.5}},
    {"tanh",
     sb_tanh,
     {-3, -0.5, 0.25, 2},
     {-0.99505475368673046, -0.46211715726000979, 0.24491866240370913, 0.9640275800758169},
     {0.0098660371654401662, 0.7864477329659274, 0.94001484880637798, 0.070650824853164429}},
    {"sigmoid",
     sb_sigmoid,
     {-3, -0.5, 0.25, 2},
     {0.047425873177566781, 0.37754066879814541, 0.56217650088579807, 0.88079707797788231},
     {0.045176659730912137, 0.23500371220159449, 0.24613408273759835, 0.10499358540350662}},
    {"relu", sb_relu, {-3, -0.5, 0.25, 2}, {0, 0, 0.25, 2}, {0, 0, 1, 1}},
    {"gelu",
     sb_gelu,
     {-3, -0.5, 0.25, 2},
     {-0.0040496940948903104, -0.15426876936299344, 0.14967658142073093, 1.9544997361036416},
     {-0.01194564720418392, 0.13250487534383712, 0.69537335488363605, 1.0852318010781969}},
    {"gelu_tanh",
     sb_gelu_tanh,
     {-3, -0.5, 0.25, 2},
     {-0.0036373920817729943, -0.15428599017485606, 0.149675350701685, 1.954597694087775},
     {-0.011584166630969648, 0.13263009646535764, 0.69535409515106039, 1.0860992566236183}},
    {"silu",
     sb_silu,
     {-3, -0.5, 0.25, 2},
     {-0.14227761953270035, -0.1887703343990727, 0.14054412522144952, 1.7615941559557646},
     {-0.088104106015169617, 0.26003881269734819, 0.62371002157019773, 1.0907842487848955}},
};

enum { REFERENCES = sizeof references / sizeof references[0] };

static void expect_close(const sb_tensor *t, const double *expected, double tolerance,
                         const char *what)
{
    cr_assert(t, "%s: %s", what, sb_error());
    for (int i = 0; i < 4; i++)
        cr_expect(fabs(sb_tensor_get(t, i) - expected[i]) <= tolerance,
                  "%s at %d: %.17g, not %.17g", what, i, sb_tensor_get(t, i), expected[i]);
}

TEST(elementwise, values_and_derivatives_agree_with_the_reference)
{
    for (int r = 0; r < REFERENCES; r++) {
        TAPE(SB_RECORD);
        sb_tensor *x = leaf(SB_SHAPE(4), 4, references[r].x);
        sb_tensor *y = sb_keep(references[r].function(x));
        MUST(sb_backward(sb_sum(y, SB_ALL, false)));
        expect_close(y, references[r].y, 4e-15, references[r].name);
        expect_close(sb_tensor_grad(x), references[r].dx, 4e-15, references[r].name);
    }
}

TEST(elementwise, f32_agrees_with_the_reference_to_its_precision)
{
    for (int r = 0; r < REFERENCES; r++) {
        TAPE(SB_RECORD);
        sb_tensor *x = sb_tensor_requires_grad(constant(SB_F32, SB_SHAPE(4), 4, references[r].x));
        sb_tensor *y = sb_keep(references[r].function(x));
        MUST(sb_backward(sb_sum(y, SB_ALL, false)));
        expect_close(y, references[r].y, 1e-6, references[r].name);
        expect_close(sb_tensor_grad(x), references[r].dx, 1e-6, references[r].name);
    }
}

TEST(elementwise, scale_multiplies_value_and_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(3, -4));
    sb_tensor *y = sb_keep(sb_scale(x, 2.5));
    cr_assert(sb_backward_from(y, constant(SB_F64, SB_SHAPE(2), NUMBERS(1, 10))));
    expect_numbers(y, NUMBERS(7.5, -10));
    expect_numbers(sb_tensor_grad(x), NUMBERS(2.5, 25));
}

/* Each path from x adds its gradient: here of scale and negate, 3 - 1 = 2. */
TEST(elementwise, gradients_of_two_uses_add_up)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(1, 2));
    sb_tensor *a = sb_scale(x, 3);
    sb_tensor *b = sb_negate(x);
    MUST(sb_backward(sb_sum(sb_add(a, b), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(2, 2));
}

TEST(elementwise, relu_passes_no_gradient_at_0_or_below)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(4), NUMBERS(-1, -0.0, 0, 1e-300));
    cr_assert(sb_backward_from(sb_relu(x), constant(SB_F64, SB_SHAPE(4), NUMBERS(5, 6, 7, 8))));
    expect_numbers(sb_tensor_grad(x), NUMBERS(0, 0, 0, 8));
}

TEST(elementwise, abs_passes_no_gradient_at_0)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(4), NUMBERS(-2, -0.0, 0, 3));
    cr_assert(sb_backward_from(sb_abs(x), constant(SB_F64, SB_SHAPE(4), NUMBERS(5, 6, 7, 8))));
    expect_numbers(sb_tensor_grad(x), NUMBERS(-5, 0, 0, 8));
}

/* A product of an infinite gradient and a slope of 0 would be NaN. */
TEST(elementwise, relu_stops_an_infinite_gradient_at_0_or_below)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(-1, 1));
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(2), NUMBERS(INFINITY, INFINITY));
    cr_assert(sb_backward_from(sb_relu(x), dy));
    expect_numbers(sb_tensor_grad(x), NUMBERS(0, INFINITY));
}

TEST(elementwise, a_nan_stays_in_its_element)
{
    for (int r = 0; r < REFERENCES; r++) {
        TAPE(SB_NO_RECORD);
        sb_tensor *y = references[r].function(constant(SB_F32, SB_SHAPE(3), NUMBERS(1, NAN, 1)));
        cr_expect(isnan(sb_tensor_get(y, 1)), "%s", references[r].name);
        cr_expect(isfinite(sb_tensor_get(y, 0)) && isfinite(sb_tensor_get(y, 2)), "%s",
                  references[r].name);
    }
}

TEST(elementwise, special_values_follow_ieee)
{
    TAPE(SB_RECORD);
    sb_tensor *x = constant(SB_F64, SB_SHAPE(3), NUMBERS(-1, 0, INFINITY));
    expect_numbers(sb_sqrt(x), NUMBERS(NAN, 0, INFINITY));
    expect_numbers(sb_log(x), NUMBERS(NAN, -INFINITY, INFINITY));
    expect_numbers(sb_scale(x, INFINITY), NUMBERS(-INFINITY, NAN, INFINITY));
    sb_tensor *ends = constant(SB_F64, SB_SHAPE(2), NUMBERS(-INFINITY, INFINITY));
    expect_numbers(sb_exp(ends), NUMBERS(0, INFINITY));
    expect_numbers(sb_tanh(ends), NUMBERS(-1, 1));
    expect_numbers(sb_sigmoid(ends), NUMBERS(0, 1));
    expect_numbers(sb_relu(ends), NUMBERS(0, INFINITY));
}

/* Above PARALLEL_WORK and not a multiple of a block: every element is reached, once. */
TEST(elementwise, long_tensors_are_covered_by_any_number_of_threads)
{
    const int64_t n = 40013;
    const int threads = sb_threads();
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(n));
    sb_tensor *first = NULL;
    for (int t = 1; t <= 3; t++) {
        sb_set_threads(t);
        TAPE(SB_RECORD);
        sb_tensor_clear_grad(x);
        sb_tensor *y = sb_keep(sb_silu(x));
        MUST(sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
        double *value = numbers_of(x), *got = numbers_of(y),
               *got_dx = numbers_of(sb_tensor_grad(x));
        for (int64_t i = 0; i < n; i++) {
            const double z = value[i], s = 1 / (1 + exp(-z));
            const double dx = 2 * z * s * s * (1 + z * (1 - s));
            cr_assert(fabs(got[i] - z * s) < 1e-6, "y at %lld", (long long)i);
            cr_assert(fabs(got_dx[i] - dx) < 3e-6, "dx at %lld", (long long)i);
        }
        if (!first)
            first = retained(sb_tensor_grad(x));
        cr_expect(test_same_bits(first, sb_tensor_grad(x)));
    }
    sb_set_threads(threads);
}

TEST(elementwise, an_empty_input_gives_an_empty_result)
{
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(3, 0))));
    sb_tensor *y = sb_gelu(x);
    expect_shape(y, SB_SHAPE(3, 0));
    cr_expect(sb_backward(sb_sum(y, SB_ALL, false)), "%s", sb_error());
    expect_shape(sb_tensor_grad(x), SB_SHAPE(3, 0));
}
