/* Exact derivatives, their use in the gradient check, and watched tensors. */
#include "autograd/node.h"
#include "autograd/watch.h"
#include "tests/support/compare.h"
#include "tests/support/tiny.h"

FUNCTION(run_example, ((const struct example *)context)->run(NULL, x))

/* A direction of +-1 for each f64 input. */
static void directions_new(const struct inputs *in, uint64_t seed, sb_tensor *v[EXAMPLE_INPUTS])
{
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    for (int i = 0; i < in->n; i++) {
        const sb_tensor *x = in->x[i];
        v[i] = x->dtype == SB_F64 ? sb_tensor_zeros(SB_F64, x->rank, x->dim) : NULL;
        for (int64_t k = 0; v[i] && k < sb_tensor_size(x); k++)
            sb_tensor_set(v[i], k, sb_random_uniform(&random) < 0.5 ? 1 : -1);
    }
}

/* Whether the example computes in f64 alone, so that a derivative is exact. */
static bool is_exact(const struct example *e)
{
    return strcmp(e->name, "cast") != 0 && strcmp(e->name, "argmax") != 0 &&
           strcmp(e->name, "to_ranks") != 0 && strcmp(e->name, "from_ranks") != 0;
}

static void values_are_those_of_plain_kernels(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F64, 5);
    sb_tensor *v[EXAMPLE_INPUTS], *y, *dy;
    directions_new(&in, 6, v);
    sb_tape tape;
    example_begin(&tape, SB_NO_RECORD);
    const sb_tensor *expected = e->run(NULL, in.x);
    sb_random again = sb_random_new(11, SB_STREAM_TRAIN);
    example_stream = again;
    if (is_exact(e) && sb_dtype_is_real(expected->dtype)) {
        cr_assert(expected && sb_jvp(run_example, (void *)(uintptr_t)e, in.x, v, in.n, &y, &dy),
                  "%s %s: %s", e->name, shapes, sb_error());
        cr_expect(test_same_bits(y, expected), "%s %s", e->name, shapes);
        sb_tensor_release(y);
        sb_tensor_release(dy);
    }
    sb_tape_end(&tape);
    release_all(in.n, v);
}

CPU_TEST(derivative, values_of_a_dual_run_have_the_bits_of_plain_float64)
{
    const enum kernel_set usual = kernel_cpu_set();
    kernel_use_cpu_set(KERNELS_PLAIN);
    for_each_example(values_are_those_of_plain_kernels);
    kernel_use_cpu_set(usual);
}

/* A kink or a tie is no place for differences of gradients. */
static bool is_smooth(const struct example *e, const char *shapes)
{
    return is_exact(e) && !strchr(shapes, 'c') && strcmp(e->name, "relu") != 0 &&
           strcmp(e->name, "max") != 0 && strcmp(e->name, "linear_activation") != 0;
}

static void second_order_is_exact(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F64, 5);
    sb_gradcheck_result result;
    sb_gradcheck_options options = {
        .random = &example_stream, .method = SB_GRADCHECK_EXACT, .second_order = true};
    bool any = false;
    for (int i = 0; i < in.n; i++)
        any |= in.x[i]->requires_grad;
    if (any && is_smooth(e, shapes) && strcmp(e->name, "detach") != 0)
        cr_expect(sb_gradcheck(run_example, (void *)(uintptr_t)e, in.x, in.n, &options, &result),
                  "%s %s: %s", e->name, shapes, sb_error());
}

CPU_TEST(derivative, hessians_are_symmetric_and_agree_with_differences_of_gradients)
{
    for_each_example(second_order_is_exact);
}

FUNCTION(run_logsumexp, sb_logsumexp(x[0]))

CPU_TEST(derivative, the_hessian_of_log_sum_exp_is_that_of_softmax)
{
    const double values[3] = {0.5, -1, 2}, direction[3] = {1, 0, 0};
    sb_tensor *x = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(3), values)), *hv;
    sb_tensor *v = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(3), direction));
    double p[3], sum = 0;
    for (int i = 0; i < 3; i++)
        sum += p[i] = exp(values[i]);
    MUST(sb_hvp(run_logsumexp, NULL, &x, &v, 1, &hv));
    for (int i = 0; i < 3; i++) /* column 0 of diag(p) - p p' */
        cr_expect(fabs(sb_tensor_get(hv, i) - p[i] / sum * ((i == 0) - p[0] / sum)) <= 1e-16);
    sb_tensor_release(hv);
}

/* ---- what functions may do ---- */

FUNCTION(segment, sb_dropout(sb_gelu(sb_matmul(x[0], x[1])), 0.4))

/* x[1] is used twice and x[0] in a recomputed segment, with dropout and a constant made on the way;
   what passes sb_detach counts as constant. */
FUNCTION_HEAD(run_much)
{
    sb_tensor *y = sb_recompute(segment, NULL, 0, 2, x);
    sb_tensor *c = sb_tape_own(sb_tensor_full(SB_F64, SB_SHAPE(4, 4), 0.3));
    y = sb_add(sb_matmul(y, x[1]), sb_multiply(c, sb_detach(x[1])));
    return sb_mean(sb_reshape(sb_softmax(y), 1, (const int64_t[]){16}), 0, false);
}

CPU_TEST(derivative, recomputation_dropout_shared_inputs_and_constants_are_exact)
{
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(4, 4)), test_leaf(SB_F64, 2, SB_SHAPE(4, 4))};
    sb_random random = sb_random_new(3, SB_STREAM_TRAIN);
    sb_gradcheck_result result;
    sb_gradcheck_options options = {.random = &random, .method = SB_GRADCHECK_EXACT};
    cr_expect(sb_gradcheck(run_much, NULL, x, 2, &options, &result), "%s", sb_error());
    cr_expect(result.method == SB_GRADCHECK_EXACT && result.error <= 1e-13);
    cr_expect(!sb_tensor_grad(x[0]) && !sb_tensor_grad(x[1]));
}

static sb_tensor *run_padding(void *ids, sb_tensor *const x[])
{
    sb_tensor *y = sb_embedding_padded(x[0], ids, 2);
    return sb_sum(sb_multiply(y, y), SB_ALL, false);
}

CPU_TEST(derivative, the_row_of_padding_is_a_constant)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(3, 2));
    sb_tensor *ids = KEPT(sb_tensor_from_doubles(SB_I32, SB_SHAPE(4), (double[]){2, 0, 2, 1}));
    sb_gradcheck_result result;
    sb_gradcheck_options options = {.method = SB_GRADCHECK_EXACT, .second_order = true};
    cr_expect(sb_gradcheck(run_padding, ids, &x, 1, &options, &result), "%s", sb_error());
}

static sb_tensor *run_model(void *context, sb_tensor *const x[])
{
    (void)x;
    void **both = context;
    return sb_seq2seq_loss(both[0], both[1]);
}

CPU_TEST(derivative, every_variant_of_a_model_is_exact_to_the_second_order)
{
    for (int i = 0; tiny_variant(i); i += tiny_step()) {
        struct tiny tiny = tiny_new(SB_F64, 1, &tiny_variant(i)->options);
        sb_batch *batch = tiny_batch(tiny.vocabulary, 4, 2, 4);
        sb_tensor **inputs = tiny_parameters(tiny.weights);
        const bool kinks = tiny_variant(i)->options.transformer.activation == SB_ACTIVATION_RELU ||
                           tiny_variant(i)->options.transformer.activation == 0;
        sb_random random = sb_random_new(3, SB_STREAM_TRAIN);
        sb_gradcheck_options options = {.random = &random,
                                        .method = SB_GRADCHECK_EXACT,
                                        .directions = 1,
                                        .second_order = !kinks};
        cr_expect(sb_gradcheck(run_model, (void *[]){tiny.model, batch}, inputs,
                               (int)sb_parameters_count(tiny.weights), &options, NULL),
                  "%s: %s", tiny_variant(i)->name, sb_error());
    }
}

/* ---- constants of another dtype ---- */

static const sb_operation alone_operation = {.name = "alone", .inputs = "x"};

FUNCTION(use_cast, x[0])
FUNCTION(use_bf16, sb_softmax(sb_cast(x[0], SB_BF16)))
FUNCTION(use_concatenate, sb_slice(sb_concatenate((sb_tensor *[]){x[0], x[0]}, 2, 1), 1, 1, 3))
FUNCTION(use_attention, sb_attention(x[0], x[0], x[0], NULL))
FUNCTION(use_detach, sb_detach(sb_multiply(sb_exp(x[0]), sb_sum(x[0], SB_ALL, false))))

FUNCTION_HEAD(use_alone)
{
    sb_node *node = sb_node_new(&alone_operation, 1, x, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, SB_F32, x[0]->rank, x[0]->dim) : NULL;
    for (int64_t i = 0; y && i < sb_tensor_size(y); i++)
        sb_tensor_set(y, i, 3 * sb_tensor_get(x[0], i));
    return y;
}

/* The dtype of the constant's cast is f64, or that of a f64 tensor. */
struct constant {
    sb_function use; /* of the constant alone */
    bool as_x;
};

/* sum(x^2 c), where c is computed from x[1] */
static sb_tensor *run_with_constant(void *context, sb_tensor *const x[])
{
    const struct constant *c = context;
    sb_tensor *square = sb_multiply(x[0], x[0]), *used = c->use(NULL, &x[1]);
    used = sb_cast(used, c->as_x ? sb_tensor_dtype(square) : SB_F64);
    return sb_sum(sb_multiply(used, square), SB_ALL, false);
}

static void a_constant_is_constant(struct constant *c)
{
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(2, 3)), test_leaf(SB_F32, 2, SB_SHAPE(2, 3))};
    sb_tensor *v[] = {test_leaf(SB_F64, 3, SB_SHAPE(2, 3)), NULL}, *y, *dy, *hv[2];
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const sb_tensor *k = c->use(NULL, &x[1]);
    MUST(sb_jvp(run_with_constant, c, x, v, 2, &y, &dy));
    MUST(sb_hvp(run_with_constant, c, x, v, 2, hv));
    double value = 0, along = 0;
    for (int64_t i = 0; i < 6; i++) {
        const double a = sb_tensor_get(x[0], i), ki = sb_tensor_get(k, i);
        const double vi = sb_tensor_get(v[0], i);
        value += ki * a * a;
        along += 2 * ki * a * vi;
        cr_expect(fabs(sb_tensor_get(hv[0], i) - 2 * ki * vi) <= 1e-15);
    }
    cr_expect(!hv[1] && fabs(sb_tensor_value(y) - value) <= 1e-14 &&
              fabs(sb_tensor_value(dy) - along) <= 1e-14);
    sb_tape_end(&tape);
    cr_expect(!sb_tensor_grad(x[0]) && !sb_tensor_grad(x[1]));
    x[1]->requires_grad = false;
    sb_gradcheck_result result;
    cr_expect(sb_gradcheck(run_with_constant, c, x, 2,
                           &(sb_gradcheck_options){.second_order = true}, &result),
              "%s", sb_error());
    cr_expect(result.method == SB_GRADCHECK_EXACT);
    release_all(3, (sb_tensor *[]){y, dy, hv[0]});
}

CPU_TEST(derivative, tensors_of_another_dtype_are_constants)
{
    const sb_function uses[] = {use_cast,      use_bf16,   use_concatenate,
                                use_attention, use_detach, use_alone};
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        for (int as_x = 0; as_x < 2; as_x++)
            a_constant_is_constant(&(struct constant){uses[i], as_x});
}

/* ---- what is refused ---- */

FUNCTION(run_in_f32, sb_cast(sb_cast(x[0], SB_F32), SB_F64))
FUNCTION(run_nothing, NULL)
FUNCTION(run_softmax, sb_softmax(x[0]))

FUNCTION_HEAD(run_cached)
{
    sb_kv_cache *cache = KEPT(sb_kv_cache_new());
    sb_tensor *k = sb_softmax(x[0]),
              *y = sb_kv_cache_append(cache, k, k) ? sb_attention_cached(x[0], cache, NULL) : NULL;
    return y;
}

FUNCTION_HEAD(run_alone)
{
    sb_node *node = sb_node_new(&alone_operation, 1, x, 1, NULL, 0);
    return node ? sb_node_output(node, SB_F64, x[0]->rank, x[0]->dim) : NULL;
}

static sb_tensor *run_derivative(void *unused, sb_tensor *const x[])
{
    sb_tensor *dy = NULL;
    return sb_jvp(run_softmax, unused, x, x, 1, NULL, &dy) ? KEPT(dy) : NULL;
}

CPU_TEST(derivative, what_cannot_be_exact_is_refused_with_one_sentence)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(1, 2, 1, 3)), *y, *dy, *hv;
    sb_tensor *v = test_leaf(SB_F64, 2, SB_SHAPE(1, 2, 1, 3));
    sb_tensor *narrow = test_leaf(SB_F32, 2, SB_SHAPE(1, 2, 1, 3)), *none = NULL;
    sb_tensor *flat = test_leaf(SB_F64, 2, SB_SHAPE(6));
    const struct {
        sb_function f;
        sb_tensor *x, *v;
        const char *message;
    } bad[] = {
        {NULL, x, v, "jvp: f is NULL"},
        {run_softmax, NULL, v, "jvp: x[0] is NULL"},
        {run_softmax, narrow, NULL, "jvp: the function gives f32, not f64"},
        {run_softmax, x, narrow, "v[0] is (1, 2, 1, 3) of f32 on cpu; both must be f64"},
        {run_softmax, x, flat, "v[0] is (6) of f64 on cpu; both must be f64 of one shape"},
        {run_nothing, x, v, "jvp: the function gives no tensor"},
        {run_in_f32, x, v, "cast: x is dual, the result would be f32"},
        {run_cached, x, v, "kv_cache_append: k is of dual numbers"},
        {run_alone, x, v, "alone: no exact derivative; set `dual`"},
        {run_derivative, x, v, "an exact derivative inside the function of another one would be"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(!sb_jvp(bad[i].f, NULL, &bad[i].x, &bad[i].v, 1, &y, &dy) && !y && !dy);
        EXPECT_ERROR(bad[i].message);
    }
    cr_expect(!sb_hvp(run_softmax, NULL, &x, &v, 1, &hv) && !hv);
    EXPECT_ERROR("hvp: the function gives (1, 2, 1, 3), not one number");
    REFUSED("hvp: n is 0; it needs at least 1 input", sb_hvp(run_softmax, NULL, &x, &none, 0, &hv));
    cr_expect(sb_jvp(run_softmax, NULL, &x, &none, 1, &y, &dy), "%s",
              sb_error()); /* usable still */
    sb_tensor_release(y);
    sb_tensor_release(dy);
}

CPU_TEST(derivative, data_of_dual_numbers_is_read_as_such)
{
    sb_tensor *x = KEPT(sb_tensor_zeros(SB_DUAL, SB_SHAPE(2)));
    sb_dual *data = sb_tensor_dual_data(x);
    data[1] = sb_dual_make(3, -0.25);
    cr_expect(sb_tensor_get(x, 1) == 3 && sb_tensor_tangent(x, 1) == -0.25);
    cr_expect(sb_tensor_tangent(x, 0) == 0);
    REFUSED("tensor_data: the elements are dual numbers; call sb_tensor_dual_data()",
            sb_tensor_data(x));
    REFUSED("\"x\" is of dual numbers; a file holds f64 at most",
            sb_safetensors_save(test_temporary("dual"), 1, &(sb_named_tensor){"x", x}, 0, NULL));
}

/* The constant's twin is made when a node reads it. */
FUNCTION(run_product, sb_logsumexp(sb_multiply(x[0], context)))

static bool product_without_memory(void *unused)
{
    (void)unused;
    sb_tensor *x = sb_tensor_full(SB_F64, SB_SHAPE(3), 0.5), *hv = NULL;
    sb_tensor *constant = x ? sb_tensor_full(SB_F64, SB_SHAPE(3), 2) : NULL;
    const bool ok = constant && sb_hvp(run_product, constant, &x, &x, 1, &hv);
    sb_tensor_release(constant);
    sb_tensor_release(x);
    sb_tensor_release(hv);
    return ok;
}

CPU_TEST(derivative, each_failed_allocation_is_an_error)
{
    test_each_allocation_fails(product_without_memory, NULL);
}

/* ---- What the exact gradient check finds, and what differences miss ---- */

/*
 * y = x in float64 and in dual numbers, with a backward that is wrong on purpose. It stands before
 * an operation of the library, whose gradient then has the mistake.
 */
enum wrong {
    NOTHING,
    ONE_FACTOR, /* 1 + 1e-9, of one element */
    ALL_FACTOR, /* 1 + 1e-9 */
    SMALL_TERM, /* 1e-8 of the next element is added */
    LAST_BELOW_DIFFERENCES = SMALL_TERM,
    DOUBLED,
    NEGATED,
    ZERO,
    ONE_ZERO,
    ONE_NAN,
    ASSIGNED,
    TRANSPOSED,
    ROW_SUM_MISSING,
    MEAN_OVER_ALL,
    SUM_FOR_MEAN,
    WRONGS,
    SUPPORT_IGNORED = WRONGS, /* a gradient where the function depends on nothing */
};

static double mean_of(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* Element i of dx from dy, both (rows, C). */
static double wrong_dx(enum wrong wrong, int64_t n, int64_t C, int64_t i, const double *dy)
{
    const int64_t row = i / C * C;
    switch (wrong) {
    case ONE_FACTOR:
        return dy[i] * (i == 4 ? 1 + 1e-9 : 1);
    case ALL_FACTOR:
        return dy[i] * (1 + 1e-9);
    case SMALL_TERM:
        return dy[i] + 1e-8 * dy[(i + 1) % n];
    case DOUBLED:
        return 2 * dy[i];
    case NEGATED:
        return -dy[i];
    case ZERO:
        return 0;
    case ONE_ZERO:
        return i == 4 ? 0 : dy[i];
    case ONE_NAN:
        return i == 4 ? NAN : dy[i];
    case TRANSPOSED:
        return dy[i % C * C + i / C];
    case ROW_SUM_MISSING:
        return dy[i] + dy[row] * (double)(1 + row);
    case MEAN_OVER_ALL:
        return dy[i] - mean_of(C, dy + row) + mean_of(n, dy);
    case SUM_FOR_MEAN:
        return dy[i] * (double)C;
    case SUPPORT_IGNORED:
        return dy[i] + 0.1;
    default:
        return dy[i];
    }
}

static bool blame_backward(sb_node *node)
{
    const enum wrong wrong = *(const enum wrong *)sb_node_options(node);
    sb_tensor *dx = sb_node_dx(node, 0), *dy = sb_node_dy(node, 0);
    const int64_t n = sb_tensor_size(dx), C = sb_tensor_dim(dx, -1);
    const bool dual = sb_tensor_dtype(dy) == SB_DUAL;
    for (int64_t i = 0; dual && i < n; i++) /* dual numbers follow a right backward */
        ((sb_dual *)sb_tensor_dual_data(dx))[i] += ((sb_dual *)sb_tensor_dual_data(dy))[i];
    for (int64_t i = 0; !dual && i < n; i++) {
        double *to = &((double *)sb_tensor_data(dx))[i];
        const double part = wrong_dx(wrong, n, C, i, sb_tensor_data(dy));
        *to = wrong == ASSIGNED ? part : *to + part;
    }
    return true;
}

static const sb_operation blame_operation = {
    .name = "blame", .inputs = "x", .backward = blame_backward, .dual = true};

static sb_tensor *blame(sb_tensor *x, enum wrong wrong)
{
    sb_node *node = sb_node_new(&blame_operation, 1, &x, 1, &wrong, sizeof wrong);
    x = sb_node_input(node, 0);
    const int64_t dim[] = {sb_tensor_dim(x, 0), sb_tensor_dim(x, 1)};
    sb_tensor *y = sb_node_output(node, sb_tensor_dtype(x), 2, dim);
    if (y)
        memcpy(y->data, x->data, tensor_bytes(x));
    return y;
}

struct blamed {
    enum wrong wrong;
    int operation;
};

static sb_tensor *run_blamed(void *context, sb_tensor *const x[])
{
    const struct blamed *b = context;
    sb_tensor *a = blame(x[0], b->wrong);
    switch (b->operation) {
    case 0:
        return sb_softmax(a);
    case 1:
        return sb_gelu(sb_matmul(a, x[0]));
    case 2:
        return sb_log_softmax(sb_multiply(a, a));
    default:
        return sb_scale(sb_tanh(a), 3);
    }
}

static sb_gradcheck_result check_blamed(struct blamed b, sb_gradcheck_method method)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(4, 4));
    sb_gradcheck_result result;
    const bool ok =
        sb_gradcheck(run_blamed, &b, &x, 1, &(sb_gradcheck_options){.method = method}, &result);
    cr_expect(ok == result.ok);
    return result;
}

CPU_TEST(exact_gradcheck, every_planted_mistake_is_found)
{
    for (int operation = 0; operation < 4; operation++)
        for (int wrong = NOTHING; wrong < WRONGS; wrong++) {
            const struct blamed b = {(enum wrong)wrong, operation};
            /* softmax ignores what is constant along a row */
            const bool invisible = operation == 0 && wrong == MEAN_OVER_ALL;
            const sb_gradcheck_result r = check_blamed(b, SB_GRADCHECK_AUTOMATIC);
            cr_expect(r.method == SB_GRADCHECK_EXACT);
            cr_expect(r.ok == (wrong == NOTHING || invisible), "mistake %d, operation %d: %.2e",
                      wrong, operation, r.error);
        }
}

CPU_TEST(exact_gradcheck, differences_pass_what_is_below_their_reach)
{
    for (int operation = 0; operation < 4; operation++)
        for (int wrong = ONE_FACTOR; wrong <= LAST_BELOW_DIFFERENCES; wrong++)
            cr_expect(check_blamed((struct blamed){(enum wrong)wrong, operation},
                                   SB_GRADCHECK_DIFFERENCES)
                          .ok,
                      "mistake %d, operation %d: %s", wrong, operation, sb_error());
}

CPU_TEST(exact_gradcheck, mistakes_are_named)
{
    static const struct {
        enum wrong wrong;
        const char *name;
    } mistakes[] = {
        {DOUBLED, "exactly 2.000 times too large everywhere: a factor is lost"},
        {NEGATED, "a sign is lost"},
        {ZERO, "as if the input were detached"},
        {ONE_NAN, "backward gives a number that is not finite"},
        {ASSIGNED, "assigned instead of added"},
        {TRANSPOSED, "transposed in its last two axes"},
        {ROW_SUM_MISSING, "a constant within each row: a sum over the row is missing"},
        {MEAN_OVER_ALL, "a mean over all rows instead of over each"},
        {SUM_FOR_MEAN, "exactly 4.000 times too large everywhere, the length of a row"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const sb_gradcheck_result r =
            check_blamed((struct blamed){mistakes[i].wrong, 3}, SB_GRADCHECK_EXACT);
        cr_expect(strstr(r.mistake, mistakes[i].name), "\"%s\" is without \"%s\"", r.mistake,
                  mistakes[i].name);
    }
}

/* Softmax over the first two of each row; the others do not count. */
static sb_tensor *run_supported(void *context, sb_tensor *const x[])
{
    const enum wrong wrong = *(const enum wrong *)context;
    sb_tensor *kept = sb_slice(x[0], 1, 0, 2), *blocked = sb_slice(x[0], 1, 2, 2);
    sb_tensor *zero = sb_scale(blame(blocked, wrong), 0);
    return sb_concatenate((sb_tensor *[]){sb_softmax(kept), zero}, 2, 1);
}

CPU_TEST(exact_gradcheck, an_ignored_support_is_named)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(3, 4));
    enum wrong wrong = NOTHING;
    cr_expect(sb_gradcheck(run_supported, &wrong, &x, 1, NULL, NULL), "%s", sb_error());
    wrong = SUPPORT_IGNORED;
    REFUSED("the support of a mask is ignored",
            sb_gradcheck(run_supported, &wrong, &x, 1, NULL, NULL));
}

FUNCTION(run_product_of_both, sb_multiply(sb_tanh(x[0]), x[1]))

CPU_TEST(exact_gradcheck, a_tensor_that_is_two_inputs_keeps_its_values_to_the_bit)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(3, 4)), *both[] = {x, x};
    double *before = numbers_of(x);
    const sb_gradcheck_options options = {.method = SB_GRADCHECK_EXACT, .second_order = true};
    cr_expect(sb_gradcheck(run_product_of_both, NULL, both, 2, &options, NULL), "%s", sb_error());
    double *after = numbers_of(x);
    cr_expect(memcmp(before, after, 12 * sizeof(double)) == 0);
}

CPU_TEST(exact_gradcheck, an_open_tape_that_read_the_inputs_before_can_run_backward)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(3)), *both[] = {x, x};
    const sb_gradcheck_options options = {.method = SB_GRADCHECK_EXACT, .second_order = true};
    TAPE(SB_RECORD);
    sb_tensor *loss = sb_sum(sb_tanh(x), 0, false);
    cr_expect(sb_gradcheck(run_product_of_both, NULL, both, 2, &options, NULL), "%s", sb_error());
    cr_expect(sb_backward(loss), "%s", sb_error());
}

/* ---- watch ---- */

/* The observed calls: "+scale" is forward, "-scale" backward, and "." the end. */
static char seen[256];

static void see(void *context, enum watched what, const sb_node *node)
{
    (void)context;
    strcat(seen, what == WATCHED_FORWARD ? "+" : what == WATCHED_BACKWARD ? "-" : ".");
    strcat(seen, node ? node->operation->name : "");
}

TEST(watch, forward_and_backward_of_operations_are_reported)
{
    const struct watcher watcher = {see, NULL};
    sb_tape tape;
    seen[0] = 0;
    watch_operations(&watcher);
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(1, 2));
    sb_tensor *y = sb_sum(sb_multiply(sb_scale(x, 3), constant(SB_F64, SB_SHAPE(2), NUMBERS(1, 2))),
                          SB_ALL, false);
    MUST(sb_backward(y));
    sb_tape_end(&tape);
    watch_operations(NULL);
    cr_expect(strcmp(seen, "+scale+multiply+sum-sum-multiply-scale..") == 0, "%s", seen);
}

TEST(watch, without_a_watcher_nothing_is_reported)
{
    sb_tape tape;
    seen[0] = 0;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_scale(constant(SB_F64, SB_SHAPE(1), NUMBERS(1)), 2);
    sb_tape_end(&tape);
    cr_expect(seen[0] == 0, "%s", seen);
}
