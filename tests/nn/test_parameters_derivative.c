/* Exact derivatives over a parameter set: the products of a model's loss. */
#include "autograd/derivative.h"
#include "tests/support/tiny.h"

struct loss {
    struct tiny tiny;
    sb_batch *batch;
};

static struct loss loss_new(sb_dtype dtype)
{
    struct loss l = {tiny_new(dtype, 1, &tiny_variant(0)->options), NULL};
    l.batch = tiny_batch(l.tiny.vocabulary, 4, 2, 4);
    return l;
}

static sb_tensor *run_loss(void *context, sb_tensor *const x[])
{
    const struct loss *l = context;
    (void)x;
    return sb_seq2seq_loss(l->tiny.model, l->batch);
}

/* The product of two vectors over all names. */
static double product(const sb_parameters *a, const sb_parameters *b)
{
    double sum = 0;
    for (int64_t i = 0; i < sb_parameters_count(a); i++)
        for (int64_t k = 0; k < sb_tensor_size(sb_parameters_get(a, i)); k++)
            sum += sb_tensor_get(sb_parameters_get(a, i), k) *
                   sb_tensor_get(sb_parameters_get(b, i), k);
    return sum;
}

CPU_TEST(parameters_derivative, products_of_drawn_vectors_are_symmetric)
{
    struct loss l = loss_new(SB_F64);
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    sb_parameters *u = KEPT(sb_parameters_vector(l.tiny.weights, &random));
    sb_parameters *v = KEPT(sb_parameters_vector(l.tiny.weights, &random));
    cr_assert(u && v && sb_parameters_fingerprint(u) != sb_parameters_fingerprint(v));
    cr_expect(product(v, v) == (double)sb_parameters_size(l.tiny.weights));
    sb_parameters *hu = KEPT(sb_parameters_hvp(l.tiny.weights, run_loss, &l, u));
    sb_parameters *hv = KEPT(sb_parameters_hvp(l.tiny.weights, run_loss, &l, v));
    MUST(hu && hv);
    const double a = product(u, hv), b = product(v, hu);
    cr_expect(fabs(a) > 1e-3 && fabs(a - b) <= 1e-11 * fmax(fabs(a), 1), "%.17g, %.17g", a, b);
    for (int64_t i = 0; i < sb_parameters_count(l.tiny.weights); i++)
        cr_expect(!sb_tensor_grad(sb_parameters_get(l.tiny.weights, i)));
}

/* Adds the gradients of the loss. */
static void run_backward(struct loss *l)
{
    TAPE(SB_RECORD);
    MUST(sb_backward(run_loss(l, NULL)));
}

/* A vector with one name is that direction alone. */
CPU_TEST(parameters_derivative, a_vector_that_names_one_parameter_moves_it_alone)
{
    struct loss l = loss_new(SB_F64);
    const char *const name = "output.bias";
    sb_tensor *w = sb_parameters_find(l.tiny.weights, name), *y, *dy;
    cr_assert(w);
    sb_parameters *v = KEPT(sb_parameters_of(SB_F64, 5));
    cr_assert(sb_parameters_add(v, name, sb_tensor_rank(w), (int64_t[]){sb_tensor_dim(w, 0)},
                                (sb_initial){SB_INITIAL_NORMAL, 1}));
    MUST(sb_parameters_jvp(l.tiny.weights, run_loss, &l, v, &y, &dy));
    run_backward(&l);
    double expected = 0;
    for (int64_t k = 0; k < sb_tensor_size(w); k++)
        expected += sb_tensor_get(sb_tensor_grad(w), k) * sb_tensor_get(sb_parameters_get(v, 0), k);
    cr_expect(fabs(sb_tensor_value(dy) - expected) <= 1e-14 && fabs(expected) > 1e-4, "%g, %g",
              sb_tensor_value(dy), expected);
    sb_tensor_release(y);
    sb_tensor_release(dy);
    cr_expect(sb_parameters_jvp(l.tiny.weights, run_loss, &l, v, NULL, NULL));
    /* one column of H against a difference of gradients */
    sb_parameters *hv = KEPT(sb_parameters_hvp(l.tiny.weights, run_loss, &l, v));
    MUST(hv);
    sb_tensor *first = sb_parameters_get(l.tiny.weights, 0);
    const double h = 1e-5;
    double up[2];
    for (int side = 0; side < 2; side++) {
        for (int64_t k = 0; k < sb_tensor_size(w); k++)
            sb_tensor_set(w, k,
                          sb_tensor_get(w, k) +
                              (side ? -2 * h : h) * sb_tensor_get(sb_parameters_get(v, 0), k));
        sb_parameters_clear(l.tiny.weights);
        run_backward(&l);
        up[side] = sb_tensor_get(sb_tensor_grad(first), 0);
    }
    const double exact = sb_tensor_get(sb_parameters_get(hv, 0), 0);
    cr_expect(fabs((up[0] - up[1]) / (2 * h) - exact) <= 1e-8 * fmax(1, fabs(exact)), "%g, %g",
              (up[0] - up[1]) / (2 * h), exact);
}

CPU_TEST(parameters_derivative, vectors_that_do_not_fit_are_refused_with_one_sentence)
{
    struct loss l = loss_new(SB_F64), narrow = loss_new(SB_F32);
    sb_parameters *v = KEPT(sb_parameters_of(SB_F64, 1)), *w = KEPT(sb_parameters_of(SB_F64, 1));
    sb_parameters *zeros = KEPT(sb_parameters_vector(narrow.tiny.weights, NULL)), *none = NULL;
    sb_parameters_add(v, "output.bias", SB_SHAPE(2), (sb_initial){0});
    sb_parameters_add(w, "outputs", SB_SHAPE(2), (sb_initial){0});
    sb_tensor *y, *dy;
    const struct {
        const sb_parameters *set, *v;
        sb_function f;
        const char *message;
    } bad[] = {
        {l.tiny.weights, v, run_loss, "\"output.bias\" is (11) in the set and (2) in v"},
        {l.tiny.weights, w, run_loss, "v has \"outputs\", which the set has not"},
        {narrow.tiny.weights, zeros, run_loss,
         "parameters_jvp: the set is of f32 and v of f64; both must be f64"},
        {none, zeros, run_loss, "parameters_jvp: set is NULL"},
        {l.tiny.weights, none, run_loss, "parameters_jvp: v is NULL"},
        {l.tiny.weights, zeros, NULL, "jvp: f is NULL"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(!sb_parameters_jvp(bad[i].set, bad[i].f, &l, bad[i].v, &y, &dy) && !y && !dy);
        EXPECT_ERROR(bad[i].message);
    }
    cr_expect(!sb_parameters_hvp(v, run_loss, &l, w));
    EXPECT_ERROR("parameters_hvp: v has \"outputs\"");
}

static sb_tensor *run_square(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_sum(sb_multiply(x[0], x[0]), SB_ALL, false);
}

static bool product_without_memory(void *unused)
{
    (void)unused;
    sb_parameters *set = sb_parameters_of(SB_F64, 1);
    sb_parameters *v = NULL, *hv = NULL;
    bool ok =
        set && sb_parameters_add(set, "w", SB_SHAPE(2, 2), (sb_initial){SB_INITIAL_XAVIER, 0});
    v = ok ? sb_parameters_vector(set, NULL) : NULL;
    hv = v ? sb_parameters_hvp(set, run_square, NULL, v) : NULL;
    ok = hv != NULL;
    sb_parameters_free(set);
    sb_parameters_free(v);
    sb_parameters_free(hv);
    return ok;
}

CPU_TEST(parameters_derivative, each_failed_allocation_is_an_error)
{
    test_each_allocation_fails(product_without_memory, NULL);
}

/* Logits and loss of a head whose row of padding is one of x[1], the weight. */
static sb_tensor *run_head(void *padding, sb_tensor *const x[])
{
    const sb_output_head head = {
        .weight = x[1], .scale = 2, .padded = true, .padding_id = *(const int64_t *)padding};
    sb_tensor *logits = sb_output_head_logits(&head, x[0]);
    sb_tensor *loss = sb_output_head_loss(&head, x[0], x[2], NULL);
    return sb_add(loss, sb_sum(sb_multiply(logits, logits), SB_ALL, false));
}

/* A direction that moves the row of padding alone. */
static sb_tensor *row_direction(int64_t V, int64_t C, int64_t row)
{
    sb_tensor *v = sb_tensor_zeros(SB_F64, SB_SHAPE(V, C));
    for (int64_t c = 0; c < C; c++)
        sb_tensor_set(v, row * C + c, 1);
    return v;
}

CPU_TEST(parameters_derivative, the_row_of_padding_of_an_output_head_is_a_constant)
{
    enum { V = 4, C = 3 };
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(2, C)), test_leaf(SB_F64, 2, SB_SHAPE(V, C)),
                      KEPT(sb_tensor_from_doubles(SB_I32, SB_SHAPE(2), (double[]){1, 3}))};
    for (int64_t padding = 0; padding < V; padding++) {
        sb_gradcheck_result result;
        const sb_gradcheck_options options = {.method = SB_GRADCHECK_EXACT};
        cr_expect(sb_gradcheck(run_head, &padding, x, 3, &options, &result), "row %d: %s",
                  (int)padding, sb_error());
        sb_tensor *v[3] = {[1] = row_direction(V, C, padding)}, *dy, *hv[3];
        MUST(sb_jvp(run_head, &padding, x, v, 3, NULL, &dy));
        cr_expect(sb_tensor_value(dy) == 0, "row %d: %g", (int)padding, sb_tensor_value(dy));
        MUST(sb_hvp(run_head, &padding, x, v, 3, hv));
        cr_expect(largest_of(hv[0]) == 0 && largest_of(hv[1]) == 0, "row %d", (int)padding);
        release_all(4, (sb_tensor *[]){v[1], dy, hv[0], hv[1]});
    }
}
