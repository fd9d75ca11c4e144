/* The gradient check, and the mistakes that it names. */
#include "autograd/node.h"
#include "tests/support/test.h"
#include <float.h>

/* ---- operations with a correct backward and some wrong ones, and their check ---- */

enum mistake {
    RIGHT,
    ASSIGNED,
    FRESH_ONLY,
    DOUBLED,
    HALVED,
    HALF_MORE,
    NEGATED,
    ZERO,
    ONE_NAN,
    ONE_WRONG
};

enum sum_mistake { SUMMED, FIRST_ONLY, LAST_ONLY };

enum product_mistake { PRODUCT_RIGHT, GRADIENT_TRANSPOSED, PRODUCT_TRANSPOSED };

/* The inputs of the checked functions. */
struct how {
    double scale;
    int mistake;
};

struct square {
    double scale;
    enum mistake mistake;
};

/* y = scale x^2 */
static bool square_backward(sb_node *node)
{
    const struct square *o = sb_node_options(node);
    const double *x = sb_tensor_data(sb_node_input(node, 0));
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    double *dx = sb_tensor_data(sb_node_dx(node, 0));
    for (int64_t i = 0; i < sb_tensor_size(sb_node_input(node, 0)); i++) {
        double right = 2 * o->scale * x[i] * dy[i];
        bool fresh = o->mistake == FRESH_ONLY || sb_node_fresh(node, 0);
        double part[] = {[RIGHT] = right,
                         [ASSIGNED] = right,
                         [FRESH_ONLY] = right,
                         [DOUBLED] = 2 * right,
                         [HALVED] = right / 2,
                         [HALF_MORE] = 1.5 * right,
                         [NEGATED] = -right,
                         [ZERO] = 0,
                         [ONE_NAN] = i == 1 ? NAN : right,
                         [ONE_WRONG] = right + (i == 2) * 1e-3};
        dx[i] = (o->mistake == ASSIGNED || fresh ? 0 : dx[i]) + part[o->mistake];
    }
    return true;
}

static const sb_operation square_operation = {"square", "x", square_backward, false, false};
static const sb_operation fresh_square_operation = {"square", "x", square_backward, true, false};

/* y = scale x^2 */
static sb_tensor *square(sb_tensor *x, double scale, enum mistake mistake)
{
    struct square o = {scale, mistake};
    sb_node *node = sb_node_new(mistake == FRESH_ONLY ? &fresh_square_operation : &square_operation,
                                1, &x, 1, &o, sizeof o);
    sb_tensor *y = node ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++)
        ((double *)y->data)[i] = scale * ((double *)x->data)[i] * ((double *)x->data)[i];
    return y;
}

/* y = a + b, where b (one row, one column or one number) is repeated. */
static bool sum_backward(sb_node *node)
{
    enum sum_mistake mistake = *(const enum sum_mistake *)sb_node_options(node);
    sb_tensor *a = sb_node_input(node, 0), *b = sb_node_input(node, 1);
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    sb_tensor *da = sb_node_dx(node, 0), *db = sb_node_dx(node, 1);
    int64_t stride[2], R = a->dim[0], C = a->dim[1];
    shape_strides(b->rank, b->dim, 2, a->dim, stride);
    for (int64_t i = 0; da && i < R * C; i++)
        ((double *)da->data)[i] += dy[i];
    for (int64_t i = 0; db && i < R * C; i++) {
        int64_t r = i / C, c = i % C;
        bool first = r * (stride[0] == 0) + c * (stride[1] == 0) == 0;
        bool last = (stride[0] || r == R - 1) && (stride[1] || c == C - 1);
        if (mistake == SUMMED || (mistake == FIRST_ONLY && first) || (mistake == LAST_ONLY && last))
            ((double *)db->data)[r * stride[0] + c * stride[1]] += dy[i];
    }
    return true;
}

static const sb_operation sum_operation = {"sum", "a b", sum_backward, false, false};

/* y = a + b, where b (one row, one column or one number) is repeated. */
static sb_tensor *sum(sb_tensor *a, sb_tensor *b, enum sum_mistake mistake)
{
    sb_node *node =
        sb_node_new(&sum_operation, 2, (sb_tensor *[]){a, b}, 1, &mistake, sizeof mistake);
    sb_tensor *y = node ? sb_node_output(node, a->dtype, a->rank, a->dim) : NULL;
    int64_t stride[2];
    shape_strides(b->rank, b->dim, a->rank, a->dim, stride);
    for (int64_t i = 0; i < sb_tensor_size(y); i++) {
        int64_t r = i / a->dim[1], c = i % a->dim[1];
        ((double *)y->data)[i] =
            ((double *)a->data)[i] + ((double *)b->data)[r * stride[0] + c * stride[1]];
    }
    return y;
}

/* y = a b for a (M, K), b (K, N) */
static bool product_backward(sb_node *node)
{
    enum product_mistake mistake = *(const enum product_mistake *)sb_node_options(node);
    sb_tensor *a = sb_node_input(node, 0), *b = sb_node_input(node, 1);
    const double *dy = sb_tensor_data(sb_node_dy(node, 0)), *A = a->data, *B = b->data;
    double *da = sb_tensor_data(sb_node_dx(node, 0)), *db = sb_tensor_data(sb_node_dx(node, 1));
    int64_t M = a->dim[0], K = a->dim[1], N = b->dim[1];
    for (int64_t m = 0; m < M; m++)
        for (int64_t k = 0; k < K; k++)
            for (int64_t n = 0; n < N; n++) {
                int64_t place = mistake == GRADIENT_TRANSPOSED ? k * M + m : m * K + k;
                da[place] +=
                    dy[m * N + n] * (mistake == PRODUCT_TRANSPOSED ? B[n * N + k] : B[k * N + n]);
                db[k * N + n] += A[m * K + k] * dy[m * N + n];
            }
    return true;
}

static const sb_operation product_operation = {"product", "a b", product_backward, false, false};

static sb_tensor *product(sb_tensor *a, sb_tensor *b, enum product_mistake mistake)
{
    sb_node *node =
        sb_node_new(&product_operation, 2, (sb_tensor *[]){a, b}, 1, &mistake, sizeof mistake);
    int64_t M = a->dim[0], K = a->dim[1], N = b->dim[1];
    sb_tensor *y = node ? sb_node_output(node, SB_F64, SB_SHAPE(M, N)) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++) {
        double dot = 0;
        for (int64_t k = 0; k < K; k++)
            dot += ((double *)a->data)[i / N * K + k] * ((double *)b->data)[k * N + i % N];
        ((double *)y->data)[i] = dot;
    }
    return y;
}

static sb_tensor *f_square(void *how_, sb_tensor *const x[])
{
    const struct how *how = how_;
    return square(x[0], how->scale, (enum mistake)how->mistake);
}

/* one input, used twice */
static sb_tensor *f_square_twice(void *how_, sb_tensor *const x[])
{
    const struct how *how = how_;
    sb_tensor *a = square(x[0], 1, (enum mistake)how->mistake);
    sb_tensor *b = square(x[0], 3, (enum mistake)how->mistake);
    return a && b ? sum(a, b, SUMMED) : NULL;
}

static sb_tensor *f_sum(void *how_, sb_tensor *const x[])
{
    const struct how *how = how_;
    return sum(x[0], x[1], (enum sum_mistake)how->mistake);
}

/* of matrices */
static sb_tensor *f_product(void *how_, sb_tensor *const x[])
{
    const struct how *how = how_;
    return product(x[0], x[1], (enum product_mistake)how->mistake);
}

static sb_gradcheck_result check(sb_function f, double scale, int mistake, int n,
                                 sb_tensor *const x[])
{
    struct how how = {scale, mistake};
    sb_gradcheck_result result;
    bool ok = sb_gradcheck(f, &how, x, n, NULL, &result);
    cr_expect(ok == result.ok);
    return result;
}

/* Checks square at a (2, 3). */
static sb_gradcheck_result check_square(double scale, enum mistake mistake)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 3));
    sb_gradcheck_result result = check(f_square, scale, mistake, 1, &x);
    return result;
}

#define EXPECT_PASS(result)                                                                        \
    cr_expect((result).ok && (result).error <= 1e-6 && (result).mistake[0] == '\0', "%s",          \
              sb_error())
#define EXPECT_MISTAKE(result, part)                                                               \
    do {                                                                                           \
        cr_expect(!(result).ok && !((result).error <= 1e-6));                                      \
        cr_expect(strstr((result).mistake, part), "\"%s\" is without \"%s\"", (result).mistake,    \
                  part);                                                                           \
        EXPECT_ERROR("gradcheck: input");                                                          \
    } while (0)

/* ---- the gradient check ---- */

FUNCTION(f_identity, x[0])

CPU_TEST(gradcheck, a_right_backward_passes)
{
    sb_gradcheck_result result = check_square(1, RIGHT);
    EXPECT_PASS(result);
    cr_expect(result.error < 1e-8 && result.input == 0);
    cr_expect(check_square(1, RIGHT).ok);
}

CPU_TEST(gradcheck, a_right_product_passes)
{
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(3, 4)), test_leaf(SB_F64, 2, SB_SHAPE(4, 2))};
    EXPECT_PASS(check(f_product, 0, PRODUCT_RIGHT, 2, x));
}

CPU_TEST(gradcheck, an_input_used_twice_passes)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 3));
    EXPECT_PASS(check(f_square_twice, 1, RIGHT, 1, &x));
}

CPU_TEST(gradcheck, a_function_that_returns_its_input_passes)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 3));
    EXPECT_PASS(check(f_identity, 0, 0, 1, &x));
}

CPU_TEST(gradcheck, tiny_functions_are_still_checked)
{
    for (double scale = 1e-7; scale > 1e-40; scale *= 1e-8) {
        EXPECT_PASS(check_square(scale, RIGHT));
        sb_gradcheck_result result = check_square(scale, ZERO);
        EXPECT_MISTAKE(result, "detached");
        cr_expect(fabs(result.error - 1) < 1e-9);
        EXPECT_MISTAKE(check_square(scale, DOUBLED), "2.000 times too large");
    }
}

CPU_TEST(gradcheck, a_nan_gradient_fails)
{
    sb_gradcheck_result result = check_square(1, ONE_NAN);
    EXPECT_MISTAKE(result, "not finite");
    cr_expect(isnan(result.error) && isnan(result.backward) && result.index == 1);
}

CPU_TEST(gradcheck, a_function_that_is_not_finite_fails)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 3));
    sb_tensor_set(x, 4, INFINITY);
    EXPECT_MISTAKE(check(f_square, 1, RIGHT, 1, &x), "function is not finite");
    sb_tensor_set(x, 4, NAN);
    EXPECT_MISTAKE(check(f_square, 1, ZERO, 1, &x), "function is not finite");
}

CPU_TEST(gradcheck, an_infinite_function_fails_even_if_its_differences_are_0)
{
    EXPECT_MISTAKE(check_square(INFINITY, ZERO), "function is not finite");
}

CPU_TEST(gradcheck, one_wrong_element_is_found)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 3));
    sb_gradcheck_result result = check(f_square, 1, ONE_WRONG, 1, &x);
    cr_expect(!result.ok && result.input == 0 && result.index == 2);
    cr_expect(fabs(result.backward - result.difference - 1e-3) < 1e-8);
    cr_expect(result.step == 1e-5 * fmax(1, fabs(sb_tensor_get(x, 2))));
    cr_expect(result.mistake[0] == '\0');
    EXPECT_ERROR("gradcheck: input 0, (2, 3), element 2: backward gives");
}

CPU_TEST(gradcheck, results_are_deterministic)
{
    for (enum mistake mistake = RIGHT; mistake <= ONE_WRONG; mistake++) {
        sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 3));
        sb_gradcheck_result a = check(f_square, 1, mistake, 1, &x);
        sb_gradcheck_result b = check(f_square, 1, mistake, 1, &x);
        cr_expect((a.error == b.error || isnan(a.error)) && a.index == b.index &&
                  (a.backward == b.backward || isnan(a.backward)) && a.ok == b.ok &&
                  a.difference == b.difference && strcmp(a.mistake, b.mistake) == 0);
    }
}

FUNCTION_HEAD(f_square_first_plus_second)
{
    sb_tensor *a = square(x[0], 1, RIGHT);
    return a ? sum(a, x[1], SUMMED) : NULL;
}

CPU_TEST(gradcheck, gradients_are_restored)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(1, 2)), *both[] = {x, x};
    sb_tensor *dy = KEPT(sb_tensor_full(SB_F64, SB_SHAPE(1, 2), 1));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_assert(sb_backward_from(square(x, 1, RIGHT), dy));
    sb_tape_end(&tape);
    sb_tensor *grad = sb_tensor_grad(x);
    double value = sb_tensor_get(grad, 0);
    EXPECT_PASS(check(f_square, 1, RIGHT, 1, &x));
    cr_expect(sb_tensor_grad(x) == grad && sb_tensor_get(grad, 0) == value);
    EXPECT_PASS(check(f_square_first_plus_second, 1, 0, 2, both));
    cr_expect(sb_tensor_grad(x) == grad && sb_tensor_get(grad, 0) == value);
    cr_expect(!check(f_square, 1, ASSIGNED, 1, &x).ok);
    cr_expect(sb_tensor_grad(x) == grad && sb_tensor_get(grad, 0) == value);
    sb_tensor_clear_grad(x);
    EXPECT_PASS(check(f_square_first_plus_second, 1, 0, 2, both));
    cr_expect(sb_tensor_grad(x) == NULL);
}

CPU_TEST(gradcheck, values_are_restored_to_the_bit)
{
    const double values[] = {-0.0, 5e-324, 1 / 3.0, -1e300, 0.1, DBL_MIN};
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_from(SB_F64, SB_SHAPE(6), values)));
    check(f_identity, 1, 0, 1, &x);
    cr_expect(memcmp(x->data, values, sizeof values) == 0);
    check(f_square, 1, NEGATED, 1, &x);
    cr_expect(memcmp(x->data, values, sizeof values) == 0);
}

/* Strong curvature: y = x / sqrt(x^2 + 1e-6) at 0, as in a norm of a row without variance. */
static bool bend_backward(sb_node *node)
{
    const double *x = sb_tensor_data(sb_node_input(node, 0));
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    double *dx = sb_tensor_data(sb_node_dx(node, 0));
    for (int64_t i = 0; i < sb_tensor_size(sb_node_input(node, 0)); i++)
        dx[i] += dy[i] * 1e-6 / pow(x[i] * x[i] + 1e-6, 1.5);
    return true;
}

static const sb_operation bend_operation = {"bend", "x", bend_backward, false, false};

FUNCTION_HEAD(f_bend)
{
    sb_node *node = sb_node_new(&bend_operation, 1, x, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, SB_F64, x[0]->rank, x[0]->dim) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++) {
        double value = ((double *)x[0]->data)[i];
        ((double *)y->data)[i] = value / sqrt(value * value + 1e-6);
    }
    return y;
}

CPU_TEST(gradcheck, a_strong_curvature_passes)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F64, SB_SHAPE(3))));
    EXPECT_PASS(check(f_bend, 0, 0, 1, &x));
}

FUNCTION_HEAD(f_cancelling)
{
    sb_tensor *a = square(x[0], 0.3, RIGHT), *b = square(x[0], -0.3, RIGHT);
    return a && b ? sum(a, b, SUMMED) : NULL;
}

CPU_TEST(gradcheck, gradients_that_cancel_pass)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(5, 13));
    EXPECT_PASS(check(f_cancelling, 0, 0, 1, &x));
}

/* y = 3x / 7x, constant up to its last bit */
static bool ratio_backward(sb_node *node)
{
    (void)node;
    return true;
}

static const sb_operation ratio_operation = {"ratio", "x", ratio_backward, false, false};

FUNCTION_HEAD(f_ratio)
{
    sb_node *node = sb_node_new(&ratio_operation, 1, x, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, SB_F64, x[0]->rank, x[0]->dim) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++)
        sb_tensor_set(y, i, sb_tensor_get(x[0], i) * 3 / (sb_tensor_get(x[0], i) * 7));
    return y;
}

CPU_TEST(gradcheck, rounding_errors_are_not_taken_for_gradients)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(65));
    EXPECT_PASS(check(f_ratio, 0, 0, 1, &x));
}

/* Noise: y = x u, u drawn from the open tape's stream, or from `own`. */
static bool noise_backward(sb_node *node)
{
    const double *u = sb_tensor_data(sb_node_saved(node, 0));
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    double *dx = sb_tensor_data(sb_node_dx(node, 0));
    for (int64_t i = 0; i < sb_tensor_size(sb_node_input(node, 0)); i++)
        dx[i] += dy[i] * u[i];
    return true;
}

static const sb_operation noise_operation = {"noise", "x", noise_backward, false, false};

static sb_tensor *f_noise(void *own, sb_tensor *const x[])
{
    sb_random *random = own ? own : tape_open()->random;
    sb_node *node = sb_node_new(&noise_operation, 1, x, 1, NULL, 0);
    sb_tensor *u = node ? sb_node_save(node, sb_tensor_zeros(SB_F64, SB_SHAPE(3))) : NULL;
    sb_tensor *y = u ? sb_node_output(node, SB_F64, SB_SHAPE(3)) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++) {
        sb_tensor_set(u, i, sb_random_uniform(random));
        sb_tensor_set(y, i, sb_tensor_get(u, i) * sb_tensor_get(x[0], i));
    }
    return y;
}

CPU_TEST(gradcheck, the_random_stream_is_rewound_for_each_evaluation)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(3));
    sb_random random = sb_random_new(7, SB_STREAM_TRAIN), start = random;
    sb_gradcheck_options options = {.random = &random};
    cr_expect(sb_gradcheck(f_noise, NULL, &x, 1, &options, NULL), "%s", sb_error());
    cr_expect(random.position == start.position);
    TAPE(SB_RECORD); /* the stream of the outer tape */
    sb_tape_random(&tape, &random);
    cr_expect(sb_gradcheck(f_noise, NULL, &x, 1, NULL, NULL), "%s", sb_error());
    cr_expect(random.position == start.position);
}

CPU_TEST(gradcheck, a_function_with_random_values_is_refused)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(3));
    sb_random random = sb_random_new(7, SB_STREAM_TRAIN);
    REFUSED("different values for equal inputs", sb_gradcheck(f_noise, &random, &x, 1, NULL, NULL));
}

CPU_TEST(gradcheck, it_nests_in_an_open_tape)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2)),
              *dy = KEPT(sb_tensor_full(SB_F64, SB_SHAPE(2), 1));
    TAPE(SB_RECORD);
    sb_tensor *y = square(x, 1, RIGHT);
    EXPECT_PASS(check(f_square, 1, RIGHT, 1, &x));
    MUST(sb_backward_from(square(y, 1, RIGHT), dy));
    double value = sb_tensor_get(x, 1); /* d x^4 = 4 x^3 */
    cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), 1) - 4 * value * value * value) < 1e-12);
}

CPU_TEST(gradcheck, a_failure_fails_the_outer_tape)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!check(f_square, 1, NEGATED, 1, &x).ok);
    REFUSED("sign", sb_tape_end(&tape));
}

struct failing {
    int calls, fail_at;
    bool leave_open;
};

static sb_tensor *f_failing(void *failing_, sb_tensor *const x[])
{
    struct failing *failing = failing_;
    if (failing->calls++ < failing->fail_at)
        return square(x[0], 1, RIGHT);
    static sb_tape never_closed;
    if (failing->leave_open) {
        sb_tape_begin(&never_closed, SB_RECORD);
        return square(x[0], 1, RIGHT);
    }
    return sb_fail("a planned failure");
}

CPU_TEST(gradcheck, a_function_that_fails_leaves_nothing_open)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 2));
    double before[4], after[4];
    sb_tensor_read(x, before);
    for (int fail_at = 0; fail_at < 10; fail_at++) {
        struct failing failing = {.fail_at = fail_at};
        sb_gradcheck_result result;
        REFUSED("gradcheck: a planned failure",
                sb_gradcheck(f_failing, &failing, &x, 1, NULL, &result));
        cr_expect(!result.ok && isnan(result.error) && result.input == -1);
        failing = (struct failing){.fail_at = fail_at, .leave_open = true};
        REFUSED("never closed", sb_gradcheck(f_failing, &failing, &x, 1, NULL, NULL));
        cr_expect(tape_open() == NULL && sb_tensor_grad(x) == NULL);
    }
    sb_tensor_read(x, after);
    cr_expect(memcmp(before, after, sizeof before) == 0);
}

/* y_i = x[ids_i], with a mask and a constant that are not checked. */
static bool pick_backward(sb_node *node)
{
    const int32_t *ids = sb_tensor_data(sb_node_input(node, 1));
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    double *dx = sb_tensor_data(sb_node_dx(node, 0));
    for (int64_t i = 0; i < sb_tensor_size(sb_node_input(node, 1)); i++)
        dx[ids[i]] += dy[i];
    return true;
}

static const sb_operation pick_operation = {"pick", "x ids mask constant", pick_backward, false,
                                            false};

FUNCTION_HEAD(f_pick)
{
    sb_node *node = sb_node_new(&pick_operation, 4, x, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, SB_F64, x[1]->rank, x[1]->dim) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++)
        sb_tensor_set(y, i, sb_tensor_get(x[0], (int64_t)sb_tensor_get(x[1], i)));
    return y;
}

CPU_TEST(gradcheck, ids_masks_and_constants_are_held_fixed)
{
    const int32_t ids[] = {1, 0, 1, 1};
    sb_tensor *x[] = {test_leaf(SB_F64, 3, SB_SHAPE(3)),
                      KEPT(sb_tensor_from(SB_I32, SB_SHAPE(4), ids)),
                      KEPT(sb_tensor_full(SB_BOOL, SB_SHAPE(2, 2), 1)),
                      KEPT(sb_tensor_full(SB_F64, SB_SHAPE(2), 3))};
    EXPECT_PASS(check(f_pick, 0, 0, 4, x));
    cr_expect(memcmp(x[1]->data, ids, sizeof ids) == 0);
    cr_expect(sb_tensor_get(x[3], 1) == 3 && !sb_tensor_grad(x[3]));
}

FUNCTION(f_nothing, NULL)
FUNCTION(f_i32, sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(2))))
FUNCTION(f_growing, sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(++*(int *)context))))

#define EXPECT_REFUSED(expected, ...) REFUSED("gradcheck: " expected, sb_gradcheck(__VA_ARGS__))

CPU_TEST(gradcheck, invalid_calls_are_refused)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2)), *single = test_leaf(SB_F32, 3, SB_SHAPE(2));
    sb_tensor *constant = sb_tensor_zeros(SB_F64, SB_SHAPE(2)), *none = NULL;
    struct how how = {1, RIGHT};
    int calls = 0;
    EXPECT_REFUSED("f is NULL", NULL, &how, &x, 1, NULL, NULL);
    EXPECT_REFUSED("inputs is NULL", f_square, &how, NULL, 1, NULL, NULL);
    EXPECT_REFUSED("input 0 is NULL", f_square, &how, &none, 1, NULL, NULL);
    EXPECT_REFUSED("input 0, (2), is f32", f_square, &how, &single, 1, NULL, NULL);
    EXPECT_REFUSED("none of the 1 inputs", f_square, &how, &constant, 1, NULL, NULL);
    EXPECT_REFUSED("none of the 0 inputs", f_square, &how, &constant, 0, NULL, NULL);
    EXPECT_REFUSED("the function returns no tensor", f_nothing, NULL, &x, 1, NULL, NULL);
    EXPECT_REFUSED("the function returns i32", f_i32, NULL, &x, 1, NULL, NULL);
    EXPECT_REFUSED("the function returns 1 elements, then 2", f_growing, &calls, &x, 1, NULL, NULL);
    EXPECT_REFUSED("the step is nan", f_square, &how, &x, 1, &(sb_gradcheck_options){.step = NAN},
                   NULL);
    EXPECT_REFUSED("the tolerance is -1", f_square, &how, &x, 1,
                   &(sb_gradcheck_options){.tolerance = -1}, NULL);
    FAILED_TAPE(SB_RECORD);
    sb_tensor *y = square(x, 1, RIGHT);
    EXPECT_REFUSED("input 0, (2), is not a leaf", f_square, &how, &y, 1, NULL, NULL);
    sb_tensor_release(constant);
}

TEST(gradcheck, inputs_on_a_device_are_checked_by_differences_only, device_needed())
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2));
    sb_gradcheck_result result;
    EXPECT_REFUSED("input 0 is (2) of f64 on cuda; exact derivatives need the CPU", f_identity,
                   NULL, &x, 1, &(sb_gradcheck_options){.method = SB_GRADCHECK_EXACT}, &result);
    cr_expect(sb_gradcheck(f_identity, NULL, &x, 1, NULL, &result) && result.ok);
    cr_expect(result.method == SB_GRADCHECK_DIFFERENCES);
}

CPU_TEST(gradcheck, step_and_tolerance_are_used)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 3));
    struct how how = {1, ONE_WRONG};
    sb_gradcheck_options options = {.tolerance = 1e-2, .step = 1e-4};
    sb_gradcheck_result result;
    cr_expect(sb_gradcheck(f_square, &how, &x, 1, &options, &result));
    cr_expect(result.ok && result.error > 1e-4);
    cr_expect(result.step == 1e-4 * fmax(1, fabs(sb_tensor_get(x, result.index))));
}

static bool whole_check(void *mistake)
{
    sb_tensor *x[] = {sb_tensor_full(SB_F64, SB_SHAPE(2, 2), 0.5),
                      sb_tensor_full(SB_F64, SB_SHAPE(2, 2), 0.7)};
    struct how how = {0, *(enum product_mistake *)mistake};
    sb_gradcheck_result result = {0};
    bool ok = x[0] && x[1] && sb_tensor_requires_grad(x[0]) && sb_tensor_requires_grad(x[1]) &&
              sb_gradcheck(f_product, &how, x, 2, NULL, &result);
    release_all(2, x);
    return ok || (how.mistake == PRODUCT_TRANSPOSED && strstr(result.mistake, "transposed"));
}

CPU_TEST(gradcheck, each_allocation_that_fails_is_reported)
{
    enum product_mistake mistake = PRODUCT_RIGHT;
    cr_expect(test_each_allocation_fails(whole_check, &mistake) > 50);
}

/* ---- mistake ---- */

/* y = x, without a backward */
static const sb_operation cut_operation = {"cut", "x", NULL, false, false};
static sb_tensor *cut(sb_tensor *x)
{
    sb_node *node = sb_node_new(&cut_operation, 1, &x, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    if (y)
        memcpy(y->data, x->data, tensor_bytes(x));
    return y;
}

FUNCTION_HEAD(f_cut_first)
{
    sb_tensor *a = cut(x[0]);
    return a ? sum(a, x[1], SUMMED) : NULL;
}

CPU_TEST(mistake, a_detached_input_fails)
{
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(2, 3)), test_leaf(SB_F64, 2, SB_SHAPE(3))};
    sb_gradcheck_result result = check(f_cut_first, 0, 0, 2, x);
    EXPECT_MISTAKE(result, "detached");
    cr_expect(result.input == 0 && result.backward == 0 && fabs(result.error - 1) < 1e-9);
}

FUNCTION(f_cut, cut(x[0]))

CPU_TEST(mistake, a_function_detached_from_all_inputs_fails)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(2, 3));
    EXPECT_MISTAKE(check(f_cut, 0, 0, 1, &x), "detached");
}

CPU_TEST(mistake, assigning_instead_of_adding_is_named)
{
    EXPECT_MISTAKE(check_square(1, ASSIGNED), "assigned instead of added");
    EXPECT_MISTAKE(check_square(1e-9, ASSIGNED), "assigned instead of added");
    EXPECT_MISTAKE(check_square(1, FRESH_ONLY), "assigned instead of added");
}

CPU_TEST(mistake, assigning_where_an_input_is_used_twice_is_named)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 3));
    EXPECT_MISTAKE(check(f_square_twice, 1, ASSIGNED, 1, &x), "assigned instead of added");
}

CPU_TEST(mistake, a_lost_factor_is_named)
{
    EXPECT_MISTAKE(check_square(1, DOUBLED),
                   "exactly 2.000 times too large everywhere: a factor is lost");
    EXPECT_MISTAKE(check_square(1, HALVED),
                   "exactly 2.000 times too small everywhere: a factor is lost");
}

/* A single number is always a multiple of another: only a simple factor is reported. */
CPU_TEST(mistake, the_factor_of_a_single_element_is_named_only_if_it_is_an_integer)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_scalar(SB_F64, 0.7)));
    EXPECT_MISTAKE(check(f_square, 1, HALVED, 1, &x), "exactly 2.000 times too small");
    sb_gradcheck_result result = check(f_square, 1, HALF_MORE, 1, &x);
    cr_expect(!result.ok && result.mistake[0] == '\0', "%s", result.mistake);
    EXPECT_MISTAKE(check_square(1, HALF_MORE), "exactly 1.500 times too large");
}

CPU_TEST(mistake, a_wrong_sign_is_named)
{
    EXPECT_MISTAKE(check_square(1, NEGATED), "sign");
}

CPU_TEST(mistake, a_transposed_gradient_is_named)
{
    for (int64_t M = 3; M <= 4; M++) {
        sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(M, 4)),
                          test_leaf(SB_F64, 2, SB_SHAPE(4, 2))};
        sb_gradcheck_result result = check(f_product, 0, GRADIENT_TRANSPOSED, 2, x);
        EXPECT_MISTAKE(result, "transposed");
        cr_expect(result.input == 0);
    }
}

CPU_TEST(mistake, a_transposed_product_is_named)
{
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(4, 4)), test_leaf(SB_F64, 2, SB_SHAPE(4, 4))};
    double before[16], after[16];
    sb_tensor_read(x[1], before);
    EXPECT_MISTAKE(check(f_product, 0, PRODUCT_TRANSPOSED, 2, x), "as if input 1 were transposed");
    sb_tensor_read(x[1], after);
    cr_expect(memcmp(before, after, sizeof before) == 0, "the input is not restored");
}

CPU_TEST(mistake, an_unsummed_broadcast_is_named)
{
    static const struct {
        int rank;
        int64_t dim[2];
    } shapes[] = {{1, {3}}, {2, {1, 3}}, {2, {4, 1}}, {2, {1, 1}}, {0, {0}}};
    for (int i = 0; i < 5; i++) {
        sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(4, 3)),
                          test_leaf(SB_F64, 2, shapes[i].rank, shapes[i].dim)};
        EXPECT_PASS(check(f_sum, 0, SUMMED, 2, x));
        EXPECT_MISTAKE(check(f_sum, 0, FIRST_ONLY, 2, x), "a broadcast is not summed");
        EXPECT_MISTAKE(check(f_sum, 0, LAST_ONLY, 2, x), "a broadcast is not summed");
    }
}
