/* Operations on single elements, and their broadcasting. */
#include "ops/arithmetic.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/elementwise.h"
#include "tests/support/compare.h"

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

/* ---- arithmetic ---- */

TEST(arithmetic, equal_shapes_give_the_hand_worked_values)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *a = constant(SB_F64, SB_SHAPE(3), NUMBERS(6, -1, 0.5));
    sb_tensor *b = constant(SB_F64, SB_SHAPE(3), NUMBERS(2, 4, -0.25));
    expect_numbers(sb_add(a, b), NUMBERS(8, 3, 0.25));
    expect_numbers(sb_subtract(a, b), NUMBERS(4, -5, 0.75));
    expect_numbers(sb_multiply(a, b), NUMBERS(12, -4, -0.125));
    expect_numbers(sb_divide(a, b), NUMBERS(3, -0.25, -2));
    sb_tensor *condition = constant(SB_BOOL, SB_SHAPE(3), NUMBERS(1, 0, 1));
    expect_numbers(sb_where(condition, a, b), NUMBERS(6, 4, 0.5));
}

/* a = (1, 2) is a column, b = (3, 4, 5) a row. */
TEST(arithmetic, a_column_and_a_row_make_a_table)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2, 1), NUMBERS(1, 2));
    sb_tensor *b = leaf(SB_SHAPE(3), NUMBERS(3, 4, 5));
    sb_tensor *y = sb_keep(sb_multiply(a, b));
    expect_shape(y, SB_SHAPE(2, 3));
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(2, 3), NUMBERS(1, 10, 100, 2, 20, 200));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(3, 4, 5, 6, 8, 10));
    expect_numbers(sb_tensor_grad(a), NUMBERS(3 + 40 + 500, 6 + 80 + 1000));
    expect_numbers(sb_tensor_grad(b), NUMBERS(1 + 4, 10 + 40, 100 + 400));
}

/* da = dy / b and db = -dy a / b^2 at a = 3, b = 2, dy = 4. */
TEST(arithmetic, divide_has_the_hand_worked_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SCALAR, NUMBERS(3));
    sb_tensor *b = leaf(SB_SCALAR, NUMBERS(2));
    cr_assert(sb_backward_from(sb_divide(a, b), constant(SB_F64, SB_SCALAR, NUMBERS(4))));
    expect_numbers(sb_tensor_grad(a), NUMBERS(2));
    expect_numbers(sb_tensor_grad(b), NUMBERS(-3));
}

/* b^2 = 1e400 overflows; the gradient, -1e200 / 1e400, does not. */
TEST(arithmetic, divide_by_large_numbers_has_a_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SCALAR, NUMBERS(1e200));
    sb_tensor *b = leaf(SB_SCALAR, NUMBERS(1e200));
    cr_assert(sb_backward(sb_divide(a, b)));
    expect_numbers(sb_tensor_grad(b), NUMBERS(-1e-200));
}

TEST(arithmetic, a_tensor_that_is_both_operands_gets_both_gradients)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(3, -5));
    MUST(sb_backward(sb_sum(sb_multiply(x, x), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(6, -10));
    sb_tensor_clear_grad(x);
    sb_tape_end(&tape);
    sb_tape_begin(&tape, SB_RECORD);
    x = leaf(SB_SHAPE(2), NUMBERS(3, -5));
    MUST(sb_backward(sb_sum(sb_subtract(x, x), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(0, 0));
    sb_tape_end(&tape);
}

TEST(arithmetic, where_sends_the_gradient_only_to_the_chosen_operand)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(3), NUMBERS(1, NAN, 3));
    sb_tensor *b = leaf(SB_SCALAR, NUMBERS(7));
    sb_tensor *condition = constant(SB_BOOL, SB_SHAPE(2, 3), NUMBERS(1, 0, 1, 1, 0, 0));
    sb_tensor *y = sb_keep(sb_where(condition, a, b));
    sb_tensor *dy = constant(SB_F64, SB_SHAPE(2, 3), NUMBERS(1, INFINITY, 3, 4, 5, 6));
    MUST(sb_backward_from(y, dy));
    expect_numbers(y, NUMBERS(1, 7, 3, 1, 7, 7));
    expect_numbers(sb_tensor_grad(a), NUMBERS(5, 0, 3));
    expect_numbers(sb_tensor_grad(b), NUMBERS(INFINITY));
}

TEST(arithmetic, an_input_without_requires_grad_gets_no_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2), NUMBERS(1, 2));
    sb_tensor *b = constant(SB_F64, SB_SHAPE(2), NUMBERS(3, 4));
    MUST(sb_backward(sb_sum(sb_multiply(b, a), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(a), NUMBERS(3, 4));
    cr_expect(sb_tensor_grad(b) == NULL);
}

TEST(arithmetic, nan_and_infinity_follow_ieee)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *a = constant(SB_F32, SB_SHAPE(3), NUMBERS(NAN, 1, 0));
    sb_tensor *zero = constant(SB_F32, SB_SCALAR, NUMBERS(0));
    expect_numbers(sb_multiply(a, zero), NUMBERS(NAN, 0, 0));
    expect_numbers(sb_divide(a, zero), NUMBERS(NAN, INFINITY, NAN));
}

/* The gradient of an operand that was broadcast to an empty shape is an empty sum. */
TEST(arithmetic, broadcasting_to_an_empty_shape_gives_a_gradient_of_zero)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(3, 1), NUMBERS(1, 2, 3));
    sb_tensor *b = sb_tape_own(sb_tensor_requires_grad(sb_tensor_zeros(SB_F64, SB_SHAPE(3, 0))));
    sb_tensor *c = leaf(SB_SCALAR, NUMBERS(1));
    sb_tensor *y = sb_add(sb_multiply(a, b), c);
    expect_shape(y, SB_SHAPE(3, 0));
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    expect_numbers(sb_tensor_grad(a), NUMBERS(0, 0, 0));
    expect_numbers(sb_tensor_grad(c), NUMBERS(0));
    expect_shape(sb_tensor_grad(b), SB_SHAPE(3, 0));
}

/* Long traversals by ops/broadcast.c and ops/cpu/broadcast.h, compared with plain loops over
   indices. */

CPU_TEST(broadcast, contiguous_axes_are_merged)
{
    const sb_tensor y = {.rank = 4, .dim = {2, 3, 1, 5}}, bias = {.rank = 1, .dim = {5}};
    const sb_tensor column = {.rank = 4, .dim = {2, 3, 1, 1}}, scalar = {.rank = 0};
    struct broadcast plan = broadcast_plan(2, (const sb_tensor *[]){&y, &y});
    cr_expect(plan.rank == 1 && plan.dim[0] == 30 && plan.stride[1][0] == 1);
    plan = broadcast_plan(2, (const sb_tensor *[]){&y, &bias});
    cr_expect(plan.rank == 2 && plan.dim[0] == 6 && plan.dim[1] == 5);
    cr_expect(plan.stride[1][0] == 0 && plan.stride[1][1] == 1);
    plan = broadcast_plan(2, (const sb_tensor *[]){&y, &column});
    cr_expect(plan.rank == 2 && plan.stride[1][0] == 1 && plan.stride[1][1] == 0);
    plan = broadcast_plan(2, (const sb_tensor *[]){&y, &scalar});
    cr_expect(plan.rank == 1 && plan.dim[0] == 30 && plan.stride[1][0] == 0);
    plan = broadcast_plan(2, (const sb_tensor *[]){&scalar, &scalar});
    cr_expect(plan.rank == 1 && plan.dim[0] == 1 && plan.stride[1][0] == 1);
}

/* The element of t that the index tuple of y's shape reads. */
static int64_t place(const sb_tensor *y, const sb_tensor *t, int64_t index)
{
    int64_t at = 0, step = 1;
    for (int i = 1; i <= y->rank; i++) {
        const int64_t size = y->dim[y->rank - i], j = index % size;
        index /= size;
        if (i > t->rank)
            continue;
        at += t->dim[t->rank - i] == 1 ? 0 : j * step;
        step *= t->dim[t->rank - i];
    }
    return at;
}

/* Frees dx. */
static void expect_gradient(const sb_tensor *x, double *dx, const sb_tensor *a, const sb_tensor *b)
{
    double *got = numbers_of(sb_tensor_grad(x));
    const double error = test_relative_arrays(sb_tensor_size(x), got, dx);
    cr_expect(error < 3e-7, "the gradient of %s, from %s times %s, differs by %g",
              tensor_shape(x).text, tensor_shape(a).text, tensor_shape(b).text, error);
}

/* y = a b, with dy = y: da = sum of a b^2 if a is broadcast. */
static void check_product(sb_tensor *a, sb_tensor *b)
{
    TAPE(SB_RECORD);
    sb_tensor_clear_grad(a);
    sb_tensor_clear_grad(b);
    sb_tensor *y = sb_keep(sb_multiply(a, b));
    MUST(sb_backward(sb_scale(sb_sum(sb_multiply(y, y), SB_ALL, false), 0.5)));
    double *value = numbers_of(y), *value_a = numbers_of(a), *value_b = numbers_of(b);
    double *da = calloc(sb_tensor_size(a), sizeof *da), *db = calloc(sb_tensor_size(b), sizeof *db);
    for (int64_t i = 0; i < sb_tensor_size(y); i++) {
        const int64_t at_a = place(y, a, i), at_b = place(y, b, i);
        cr_assert(fabs(value[i] - value_a[at_a] * value_b[at_b]) < 1e-6, "y at %lld", (long long)i);
        da[at_a] += value_a[at_a] * value_b[at_b] * value_b[at_b];
        db[at_b] += value_a[at_a] * value_a[at_a] * value_b[at_b];
    }
    expect_gradient(a, da, a, b);
    expect_gradient(b, db, a, b);
}

/* Shapes that cross strips, column blocks, slabs and threads. */
static const struct {
    int rank_a;
    int64_t a[4];
    int rank_b;
    int64_t b[4];
} shapes[] = {
    {1, {1537}, 1, {1537}},       {2, {70, 600}, 1, {600}},
    {2, {5, 9001}, 1, {9001}},    {1, {40000}, 0, {0}},
    {2, {600, 70}, 2, {600, 1}},  {2, {3, 12000}, 2, {3, 1}},
    {3, {7, 1, 65}, 2, {80, 1}},  {4, {3, 1, 40, 9}, 3, {5, 1, 9}},
    {2, {1200, 1}, 1, {33}},      {4, {2, 30, 1, 20}, 3, {1, 31, 1}},
    {3, {130, 1, 3}, 2, {90, 1}},
};

TEST(broadcast, long_tensors_agree_with_plain_loops_in_every_instruction_set)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            sb_tensor *a = test_leaf(SB_F32, 2 * i, shapes[i].rank_a, shapes[i].a);
            sb_tensor *b = test_leaf(SB_F32, 2 * i + 1, shapes[i].rank_b, shapes[i].b);
            check_product(a, b);
        }
    }
}

CPU_TEST(broadcast, sums_have_the_same_bits_for_any_number_of_threads)
{
    const int threads = sb_threads();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        sb_tensor *a = test_leaf(SB_F32, 1, shapes[i].rank_a, shapes[i].a);
        sb_tensor *b = test_leaf(SB_F32, 2, shapes[i].rank_b, shapes[i].b);
        sb_tensor *first = NULL;
        for (int t = 1; t <= 4; t++) {
            sb_set_threads(t);
            TAPE(SB_RECORD);
            sb_tensor_clear_grad(b);
            MUST(sb_backward(sb_sum(sb_divide(a, b), SB_ALL, false)));
            if (!first)
                first = retained(sb_tensor_grad(b));
            cr_expect(test_same_bits(first, sb_tensor_grad(b)));
        }
    }
    sb_set_threads(threads);
}

/* The sum is accumulated in float64: in float32 the small terms would be lost. */
TEST(broadcast, a_sum_of_a_million_floats_is_right_to_the_last_bit)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(1000, 1000), (float)0.1));
    const float exact = (float)((double)(float)0.1 * 1e6);
    cr_expect(sb_tensor_get(sb_sum(x, SB_ALL, false), 0) == exact);
    sb_tensor *rows = sb_sum(x, 0, false);
    cr_expect(sb_tensor_get(rows, 999) == (float)((double)(float)0.1 * 1000));
}

/* ---- cast ---- */

TEST(cast, reals_round_and_whole_numbers_are_exact)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = constant(SB_F64, SB_SHAPE(4), NUMBERS(0.1, -0.0, 1e300, NAN));
    sb_tensor *y = sb_cast(x, SB_F32);
    MUST(y && sb_tensor_dtype(y) == SB_F32);
    expect_numbers(y, NUMBERS((float)0.1, 0, INFINITY, NAN));
    cr_expect(signbit(sb_tensor_get(y, 1)), "the sign of zero stays");
    expect_numbers(sb_cast(y, SB_F64), NUMBERS((float)0.1, 0, INFINITY, NAN));
    sb_tensor *ids = constant(SB_I32, SB_SHAPE(3), NUMBERS(-7, 0, 2147483647));
    expect_numbers(sb_cast(ids, SB_F64), NUMBERS(-7, 0, 2147483647));
    expect_numbers(sb_cast(ids, SB_F32), NUMBERS(-7, 0, 2147483648));
    expect_numbers(sb_cast(ids, SB_BOOL), NUMBERS(1, 0, 1));
    sb_tensor *flags = constant(SB_BOOL, SB_SHAPE(2), NUMBERS(1, 0));
    expect_numbers(sb_cast(flags, SB_I32), NUMBERS(1, 0));
    expect_numbers(sb_cast(flags, SB_F32), NUMBERS(1, 0));
}

/* Halfway between two numbers of bf16 for a float, but not for a double or an integer. */
TEST(cast, wide_numbers_are_rounded_to_bf16_once)
{
    static const double from[] = {1 + 0x1p-8 + 0x1p-40,
                                  1 + 0x1p-8 - 0x1p-40,
                                  1 + 3 * 0x1p-8 - 0x1p-40,
                                  -1 - 0x1p-8 - 0x1p-40,
                                  1 + 0x1p-8,
                                  -0.0,
                                  0x1.fep127 + 0x1p119,
                                  0x1.fep127 + 0x1p119 - 0x1p80,
                                  1e300,
                                  0x1.01p-130 + 0x1p-160};
    static const double to[] = {1 + 0x1p-7, 1,        1 + 0x1p-7, -1 - 0x1p-7, 1,
                                -0.0,       INFINITY, 0x1.fep127, INFINITY,    0x1p-130};
    enum { N = sizeof from / sizeof *from };
    static const int32_t whole[] = {(1 << 30) + (1 << 22) + 1, (1 << 30) + (1 << 22) - 1, 7};
    static const double rounded[] = {0x1.02p30, 0x1p30, 7};
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(N), from));
    sb_tensor *y = sb_cast(x, SB_BF16),
              *written = sb_tape_own(sb_tensor_from_doubles(SB_BF16, SB_SHAPE(N), from));
    for (int i = 0; i < N; i++) {
        const double got = sb_tensor_get(y, i);
        cr_expect(got == to[i] && signbit(got) == signbit(to[i]), "%a becomes %a, not %a", from[i],
                  got, to[i]);
        cr_expect(sb_tensor_get(written, i) == to[i], "%a is written as %a", from[i],
                  sb_tensor_get(written, i));
    }
    y = sb_cast(sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(3), whole)), SB_BF16);
    for (int i = 0; i < 3; i++)
        cr_expect(sb_tensor_get(y, i) == rounded[i], "%d becomes %a", whole[i],
                  sb_tensor_get(y, i));
    /* a gradient of 1 and one of 2^-8 + 2^-40 */
    sb_tensor *leaf = sb_tape_own(sb_tensor_from_doubles(SB_BF16, SB_SHAPE(1), (double[]){1}));
    sb_tensor_requires_grad(leaf);
    sb_tensor *small = sb_scale(sb_cast(leaf, SB_F64), 0x1p-8 + 0x1p-40);
    MUST(sb_backward(sb_sum(sb_add(small, sb_cast(leaf, SB_F64)), SB_ALL, false)));
    cr_expect(sb_tensor_value(sb_tensor_grad(leaf)) == 1 + 0x1p-7);
}

TEST(cast, values_out_of_an_integers_range_are_clamped_and_nan_becomes_0)
{
    TAPE(SB_NO_RECORD);
    for (sb_dtype real = SB_F32; real <= SB_F64; real++) {
        sb_tensor *x =
            constant(real, SB_SHAPE(7), NUMBERS(2.75, -2.75, 3e9, -3e9, INFINITY, -INFINITY, NAN));
        expect_numbers(sb_cast(x, SB_I32),
                       NUMBERS(2, -2, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0));
        expect_numbers(sb_cast(constant(real, SB_SHAPE(3), NUMBERS(0, 0.25, -1)), SB_BOOL),
                       NUMBERS(0, 1, 1));
    }
    sb_tensor *edge = constant(SB_F64, SB_SHAPE(4),
                               NUMBERS(2147483647.5, 2147483648, -2147483648.5, -2147483649));
    expect_numbers(sb_cast(edge, SB_I32), NUMBERS(INT32_MAX, INT32_MAX, INT32_MIN, INT32_MIN));
}

TEST(cast, the_gradient_is_cast_back_and_added)
{
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tensor_requires_grad(constant(SB_F32, SB_SHAPE(2), NUMBERS(3, 4)));
    sb_tensor *y = sb_cast(x, SB_F64);
    sb_tensor *z = sb_cast(x, SB_F64);
    sb_tensor *same = sb_cast(sb_cast(x, SB_F32), SB_F64);
    sb_tensor *product = sb_multiply(sb_multiply(y, z), same);
    MUST(sb_backward(sb_sum(product, SB_ALL, false)));
    cr_expect(sb_tensor_dtype(sb_tensor_grad(x)) == SB_F32);
    expect_numbers(sb_tensor_grad(x), NUMBERS(27, 48)); /* 3 x^2 */
}

enum { TENSORS = 7 };

/* Forward and backward of the sum of squares of rounded tensors. */
static void cast_step(sb_tensor *const x[], bool together)
{
    sb_tensor *y[TENSORS], *sum = NULL;
    TAPE(SB_RECORD);
    for (int i = 0; i < TENSORS && !together; i++)
        y[i] = sb_cast(x[i], SB_BF16);
    MUST(!together || cast_all(TENSORS, x, y));
    for (int i = 0; i < TENSORS; i++) {
        sb_tensor *part = sb_sum(sb_multiply(y[i], y[i]), SB_ALL, false);
        sum = sum ? sb_add(sum, part) : part;
    }
    MUST(sb_backward(sum));
}

static void list_is_cast_as_its_tensors(void)
{
    const int64_t size[TENSORS] = {0, 1, 7, 8, 2048, 2049, 5000};
    sb_tensor *one[TENSORS], *all[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        one[i] = test_leaf(SB_F32, (uint64_t)i, 1, &size[i]);
        all[i] = test_leaf(SB_F32, (uint64_t)i, 1, &size[i]);
    }
    for (int step = 0; step < 2; step++) { /* the second adds to the gradients */
        cast_step(one, false);
        cast_step(all, true);
        for (int i = 0; i < TENSORS; i++)
            cr_expect(test_same_bits(sb_tensor_grad(one[i]), sb_tensor_grad(all[i])),
                      "step %d: the gradients of %lld numbers differ", step, (long long)size[i]);
    }
}

TEST(cast, a_list_of_tensors_is_cast_as_each_of_them)
{
    for (struct sets s = sets_up_to(KERNELS_PLAIN); next_set(&s);)
        list_is_cast_as_its_tensors();
}

TEST(cast, no_gradient_passes_through_integers)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(3, 4));
    sb_tensor *y = sb_cast(sb_cast(x, SB_I32), SB_F64);
    sb_tensor *z = sb_multiply(x, y);
    MUST(sb_backward(sb_sum(z, SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(3, 4));
}

TEST(cast, the_same_dtype_shares_the_data)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(3, 4));
    sb_tensor *y = sb_cast(x, SB_F64);
    cr_expect(y->data == x->data);
}

TEST(cast, every_element_of_long_and_empty_tensors_is_cast)
{
    TAPE(SB_NO_RECORD);
    enum { N = 40001 };
    static int32_t numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = i;
    sb_tensor *x = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(N), numbers));
    sb_tensor *back = sb_cast(sb_cast(x, SB_F64), SB_I32);
    cr_expect(!memcmp(test_data(back), numbers, sizeof numbers));
    expect_shape(sb_cast(sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3))), SB_BOOL),
                 SB_SHAPE(0, 3));
}
