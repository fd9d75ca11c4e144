/*
 * Linears of one x as a group: values and gradients are those of single linears, where the weights
 * lie at equal distances, and so a device computes one product, and where they do not.
 */
#include "nn/flat.h"
#include "nn/linear.h"
#include "ops/linear.h"
#include "tests/support/test.h"

enum { HEADS = 2, IN = 8, OUT = 12, LENGTH = 35, MOST = LINEAR_GROUP };

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
        MUST(sb_linear_layer_init(&layer, s.set, names[i], IN, OUT, biased));
        s.weight[i] = layer.weight;
        s.bias[i] = layer.bias;
        for (int64_t c = 0; biased && c < OUT; c++)
            sb_tensor_set(layer.bias, c, 0.25 * (double)(c - 3 * i));
    }
    MUST(!joined || parameters_flatten(s.set));
    s.x = test_leaf(dtype, 5, SB_SHAPE(2, LENGTH, IN));
    return s;
}

/* The results, split into heads. */
static bool scene_forward(const struct scene *s, bool grouped, sb_tensor *y[])
{
    if (grouped)
        return linear_group(s->x, s->n, s->weight, s->bias[0] ? s->bias : NULL, HEADS, y);
    for (int i = 0; i < s->n; i++)
        y[i] = sb_reshape(sb_linear(s->x, s->weight[i], s->bias[i]),
                          SB_SHAPE(2, LENGTH, HEADS, OUT / HEADS));
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
    cr_expect(distance >= 2 * LENGTH * OUT * 4 && distance % 16 == 0);
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
    sb_use_device(device_cuda());
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
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    cr_expect(!linear_group(s.x, 3, s.weight, s.bias, 5, y));
    EXPECT_ERROR("linear: x is (2, 35, 8), weight is (12, 8): the result cannot be split into 5 "
                 "heads");
    cr_expect(!sb_tape_end(&tape));
    sb_tape_begin(&tape, SB_NO_RECORD);
    s.weight[1] = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(13, IN)));
    cr_expect(!linear_group(s.x, 3, s.weight, NULL, 1, y));
    EXPECT_ERROR("linear: weights of a group are (12, 8) and (13, 8); they must have one shape");
    cr_expect(!sb_tape_end(&tape));
    sb_tape_begin(&tape, SB_NO_RECORD);
    cr_expect(!linear_group(s.x, 4, s.weight, NULL, 1, y));
    EXPECT_ERROR("linear: a group of 4; it must have 2 to 3");
    cr_expect(!sb_tape_end(&tape));
}
