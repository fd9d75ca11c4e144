/* Exact derivatives: dual numbers, Jacobian- and Hessian-vector products. */
#include "ops/kernel.h"
#include "tests/support/examples.h"
#include "tests/support/tiny.h"
#include "tests/support/values.h"

static sb_tensor *run_example(void *example, sb_tensor *const x[])
{
    return ((const struct example *)example)->run(NULL, x);
}

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

static sb_tensor *run_logsumexp(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_logsumexp(x[0]);
}

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

static sb_tensor *segment(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_dropout(sb_gelu(sb_matmul(x[0], x[1])), 0.4);
}

/* x[1] is used twice and x[0] in a recomputed segment, with dropout and a constant made on the way;
   what passes sb_detach counts as constant. */
static sb_tensor *run_much(void *unused, sb_tensor *const x[])
{
    (void)unused;
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

static sb_tensor *use_cast(sb_tensor *c)
{
    return c;
}

static sb_tensor *use_bf16(sb_tensor *c)
{
    return sb_softmax(sb_cast(c, SB_BF16));
}

static sb_tensor *use_concatenate(sb_tensor *c)
{
    return sb_slice(sb_concatenate((sb_tensor *[]){c, c}, 2, 1), 1, 1, 3);
}

static sb_tensor *use_attention(sb_tensor *c)
{
    return sb_attention(c, c, c, NULL);
}

static sb_tensor *use_detach(sb_tensor *c)
{
    return sb_detach(sb_multiply(sb_exp(c), sb_sum(c, SB_ALL, false)));
}

static sb_tensor *use_alone(sb_tensor *c)
{
    sb_node *node = sb_node_new(&alone_operation, 1, &c, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, SB_F32, c->rank, c->dim) : NULL;
    for (int64_t i = 0; y && i < sb_tensor_size(y); i++)
        sb_tensor_set(y, i, 3 * sb_tensor_get(c, i));
    return y;
}

/* The dtype of the constant's cast is f64, or that of a f64 tensor. */
struct constant {
    sb_tensor *(*use)(sb_tensor *c);
    bool as_x;
};

/* sum(x^2 c), where c is computed from x[1] */
static sb_tensor *run_with_constant(void *context, sb_tensor *const x[])
{
    const struct constant *c = context;
    sb_tensor *square = sb_multiply(x[0], x[0]), *used = c->use(x[1]);
    used = sb_cast(used, c->as_x ? sb_tensor_dtype(square) : SB_F64);
    return sb_sum(sb_multiply(used, square), SB_ALL, false);
}

static void a_constant_is_constant(struct constant *c)
{
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(2, 3)), test_leaf(SB_F32, 2, SB_SHAPE(2, 3))};
    sb_tensor *v[] = {test_leaf(SB_F64, 3, SB_SHAPE(2, 3)), NULL}, *y, *dy, *hv[2];
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const sb_tensor *k = c->use(x[1]);
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
    sb_tensor *(*const uses[])(sb_tensor *) = {use_cast,      use_bf16,   use_concatenate,
                                               use_attention, use_detach, use_alone};
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        for (int as_x = 0; as_x < 2; as_x++)
            a_constant_is_constant(&(struct constant){uses[i], as_x});
}

/* ---- what is refused ---- */

static sb_tensor *run_in_f32(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_cast(sb_cast(x[0], SB_F32), SB_F64);
}

static sb_tensor *run_nothing(void *unused, sb_tensor *const x[])
{
    (void)unused;
    (void)x;
    return NULL;
}

static sb_tensor *run_softmax(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_softmax(x[0]);
}

static sb_tensor *run_cached(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_kv_cache *cache = KEPT(sb_kv_cache_new());
    sb_tensor *k = sb_softmax(x[0]),
              *y = sb_kv_cache_append(cache, k, k) ? sb_attention_cached(x[0], cache, NULL) : NULL;
    return y;
}

static sb_tensor *run_alone(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_node *node = sb_node_new(&alone_operation, 1, x, 1, NULL, 0);
    return node ? sb_node_output(node, SB_F64, x[0]->rank, x[0]->dim) : NULL;
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
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(!sb_jvp(bad[i].f, NULL, &bad[i].x, &bad[i].v, 1, &y, &dy) && !y && !dy);
        EXPECT_ERROR(bad[i].message);
    }
    cr_expect(!sb_hvp(run_softmax, NULL, &x, &v, 1, &hv) && !hv);
    EXPECT_ERROR("hvp: the function gives (1, 2, 1, 3), not one number");
    cr_expect(!sb_hvp(run_softmax, NULL, &x, &none, 0, &hv));
    EXPECT_ERROR("hvp: n is 0; it needs at least 1 input");
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
    cr_expect(!sb_tensor_data(x));
    EXPECT_ERROR("tensor_data: the elements are dual numbers; call sb_tensor_dual_data()");
    cr_expect(!sb_safetensors_save(test_temporary("dual"), 1, &(sb_named_tensor){"x", x}, 0, NULL));
    EXPECT_ERROR("\"x\" is of dual numbers; a file holds f64 at most");
}

/* The constant's twin is made when a node reads it. */
static sb_tensor *run_product(void *constant, sb_tensor *const x[])
{
    return sb_logsumexp(sb_multiply(x[0], constant));
}

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
