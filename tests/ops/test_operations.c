/* All operations by the examples that they list. */
#include "autograd/node.h"
#include "ops/update.h"
#include "tests/support/compare.h"
#include "tests/support/reference.h"
#include <float.h>

/*
 * Properties of every operation, on every example that it lists (ops/example.h): a new operation is
 * tested as soon as it is in Meson's list.
 */

/* The largest difference between two implementations, in ulp of the largest element. */
enum { ROUNDING = 16 };

/* ---- Gradients ---- */

TEST(operations, gradients_agree_with_differences, DIFFERENCES)
{
    if (test_slow_device()) /* test_devices.c compares it with the CPU */
        for_each_example_once(example_gradients_agree);
    else
        for_each_example(example_gradients_agree);
}

/* Two inputs of one shape may be the same tensor, which gets both gradients. */
static void gradients_of_a_repeated_input_agree(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F64, 1);
    for (int i = 0; i < in.n; i++)
        for (int j = 0; j < i; j++) {
            sb_tensor *a = in.x[j], *b = in.x[i];
            if (!shape_equal(a->rank, a->dim, b->rank, b->dim) || !a->requires_grad ||
                !b->requires_grad)
                continue;
            in.x[i] = a;
            example_expect_gradients(e, shapes, &in);
            in.x[i] = b;
        }
}

TEST(operations, an_input_may_be_used_twice, KNOWN_KERNELS)
{
    if (test_slow_device())
        for_each_example_once(gradients_of_a_repeated_input_agree);
    else
        for_each_example(gradients_of_a_repeated_input_agree);
}

/* ---- Dtypes, instruction sets, threads and modes agree ---- */

static void f32_agrees(const struct example *e, const char *shapes)
{
    struct inputs single = inputs_new(shapes, SB_F32, 1), real = inputs_widened(&single);
    struct results a = example_must_run(e, shapes, &single), b = example_must_run(e, shapes, &real);
    double relative = results_relative(&a, &b);
    cr_expect(relative <= ROUNDING * FLT_EPSILON, "%s %s: f32 is off by %g ulp", e->name, shapes,
              relative / FLT_EPSILON);
}

TEST(operations, f32_agrees_with_f64, KNOWN_KERNELS)
{
    for_each_example(f32_agrees);
}

static void sets_agree(const struct example *e, const char *shapes)
{
    enum kernel_set best = kernel_cpu_set();
    for (sb_dtype dtype = SB_F32; dtype <= SB_F64; dtype++) {
        struct inputs in = inputs_new(shapes, dtype, 1);
        kernel_use_cpu_set(KERNELS_CPU);
        struct results baseline = example_must_run(e, shapes, &in);
        for (enum kernel_set set = KERNELS_CPU_V3; set <= KERNELS_CPU_V4; set++) {
            if (!kernel_use_cpu_set(set))
                continue;
            struct results o = example_must_run(e, shapes, &in);
            double relative = results_relative(&o, &baseline);
            double ulps = relative / (dtype == SB_F32 ? FLT_EPSILON : DBL_EPSILON);
            cr_expect(ulps <= ROUNDING, "%s %s in %s: %s is off by %g ulp", e->name, shapes,
                      sb_dtype_name(dtype), kernel_cpu_name(), ulps);
        }
    }
    kernel_use_cpu_set(best);
}

CPU_TEST(operations, instruction_sets_agree)
{
    for_each_example(sets_agree);
}

/* The results of all examples with one thread, in order; the references for more threads. */
static struct results *alone;
static int outcomes, next_outcome;

static void run_alone(const struct example *e, const char *shapes)
{
    for (sb_dtype dtype = SB_F32; dtype <= SB_F64; dtype++) {
        struct inputs in = inputs_new(shapes, dtype, 1);
        alone = realloc(alone, (size_t)(outcomes + 1) * sizeof *alone);
        alone[outcomes++] = example_must_run(e, shapes, &in);
    }
}

static void run_together(const struct example *e, const char *shapes)
{
    for (sb_dtype dtype = SB_F32; dtype <= SB_F64; dtype++) {
        struct inputs in = inputs_new(shapes, dtype, 1);
        struct results o = example_must_run(e, shapes, &in);
        cr_expect(results_same_bits(&o, &alone[next_outcome++]),
                  "%s %s in %s: %d threads change bits", e->name, shapes, sb_dtype_name(dtype),
                  sb_threads());
    }
}

CPU_TEST(operations, any_number_of_threads_gives_the_same_bits)
{
    int threads = sb_threads();
    kernel_parallel_work = 0; /* small examples are divided among threads too */
    sb_set_threads(1);
    for_each_example(run_alone);
    for (int more = 2; more <= 4; more *= 2) {
        sb_set_threads(more);
        next_outcome = 0;
        for_each_example(run_together);
        cr_expect(next_outcome == outcomes);
    }
    sb_set_threads(threads);
}

static void streams_agree(const struct example *e, const char *shapes)
{
    const int64_t usual = kernel_streamed_bytes;
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (sb_dtype dtype = SB_F32; dtype <= SB_F64; dtype++) {
            struct inputs in = inputs_new(shapes, dtype, 1);
            struct results cached = example_must_run(e, shapes, &in);
            kernel_streamed_bytes = 0;
            struct results streamed = example_must_run(e, shapes, &in);
            kernel_streamed_bytes = usual;
            cr_expect(results_same_bits(&cached, &streamed), "%s %s in %s: %s: other bits", e->name,
                      shapes, sb_dtype_name(dtype), kernel_cpu_name());
        }
}

CPU_TEST(operations, streaming_stores_give_the_same_bits)
{
    for_each_example(streams_agree);
}

/* Not the same bits: BLAS, whose rows depend on the batch, is used only on recording tapes. */
static void modes_agree(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F32, 1);
    struct results recorded = example_must_run(e, shapes, &in),
                   o = example_run(e, &in, SB_NO_RECORD);
    recorded.parts = o.ok ? 1 : 0; /* the value alone */
    for (int i = recorded.parts; i < o.parts; i++)
        cr_expect(o.size[i] == 0, "%s %s: a gradient without recording", e->name, shapes);
    double relative = results_relative(&o, &recorded);
    cr_expect(o.ok && relative <= ROUNDING * FLT_EPSILON,
              "%s %s: without recording it is off by %g", e->name, shapes, relative);
    recorded.parts = 1 + in.n;
}

TEST(operations, recording_does_not_change_the_value, KNOWN_KERNELS)
{
    for_each_example(modes_agree);
}

/* ---- Failures ---- */

struct attempt {
    const struct example *example;
    const struct inputs *in;
    const struct results *expected;
};

static bool attempt(void *attempt_)
{
    const struct attempt *attempt = attempt_;
    struct results o = example_run(attempt->example, attempt->in, SB_RECORD);
    cr_assert(!o.ok || results_same_bits(attempt->expected, &o),
              "%s: an allocation that failed changes the results", attempt->example->name);
    return o.ok;
}

static void allocations_fail(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F32, 1);
    struct results before = example_must_run(e, shapes, &in);
    test_each_allocation_fails(attempt, &(struct attempt){e, &in, &before});
    struct results after = example_must_run(e, shapes, &in);
    cr_expect(results_same_bits(&before, &after), "%s %s: a failure changes later results", e->name,
              shapes);
}

TEST(operations, each_allocation_that_fails_is_reported, KNOWN_KERNELS)
{
    for_each_example_once(allocations_fail);
}

/* Runs an example that must fail; the message must contain `expected`. */
static void expect_failure(const struct example *e, const struct inputs *in, const char *expected)
{
    struct results o = example_run(e, in, SB_RECORD);
    cr_expect(!o.ok && strstr(sb_error(), expected), "%s: \"%s\" is without \"%s\"", e->name,
              sb_error(), expected);
}

static void bad_inputs_fail(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F32, 1);
    struct results before = example_must_run(e, shapes, &in);
    for (int i = 0; i < in.n; i++) {
        sb_tensor *x = in.x[i];
        in.x[i] = NULL;
        struct results o = example_run(e, &in, SB_RECORD); /* an optional argument may be NULL */
        cr_expect(o.ok || strstr(sb_error(), "NULL"), "%s without input %d: %s", e->name, i,
                  sb_error());
        in.x[i] = sb_tensor_zeros(x->dtype, x->rank, x->dim);
        tensor_free_data(in.x[i]);
        expect_failure(e, &in, "freed by backward");
        sb_tensor_release(in.x[i]);
        in.x[i] = x;
    }
    cr_expect(!e->run(NULL, in.x) && strstr(sb_error(), "no tape is open"), "%s: %s", e->name,
              sb_error());
    sb_tape tape;
    example_begin(&tape, SB_RECORD);
    sb_fail("test: an earlier failure");
    cr_expect(!e->run(NULL, in.x) && !strcmp(sb_error(), "test: an earlier failure"), "%s: %s",
              e->name, sb_error());
    cr_expect(!sb_tape_end(&tape));
    struct results after = example_must_run(e, shapes, &in);
    cr_expect(results_same_bits(&before, &after), "%s: a failure changes later results", e->name);
}

TEST(operations, bad_inputs_are_refused_without_side_effects)
{
    for_each_example_once(bad_inputs_fail);
}

/* ---- NaN and infinity ---- */

static bool values_differ(const struct results *a, const struct results *b)
{
    return a->ok && b->ok && memcmp(a->value[0], b->value[0], (size_t)a->size[0] * 8) != 0;
}

static bool has_nan(const struct results *o)
{
    for (int64_t i = 0; i < o->size[0]; i++)
        if (isnan(o->value[0][i]))
            return true;
    return false;
}

/* The result with another tensor in place of input i; it may fail if the numbers are invalid. */
static struct results run_with(const struct example *e, struct inputs *in, int i, sb_tensor *other)
{
    sb_tensor *x = in->x[i];
    in->x[i] = other;
    struct results o = example_run(e, in, SB_RECORD);
    in->x[i] = x;
    return o;
}

/* An input of NaN propagates wherever a change of its values would: not where a condition or a mask
   excludes all of it, nor to the integers of argmax. */
static void nan_propagates(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F32, 1), other = inputs_new(shapes, SB_F32, 2);
    struct results before = example_must_run(e, shapes, &in);
    for (int i = 0; i < in.n; i++) {
        sb_tensor *x = in.x[i];
        if (!sb_dtype_is_real(x->dtype))
            continue;
        sb_tensor *nans = KEPT(sb_tensor_full(x->dtype, x->rank, x->dim, NAN));
        sb_tensor *infinities = KEPT(sb_tensor_full(x->dtype, x->rank, x->dim, INFINITY));
        struct results o[] = {run_with(e, &in, i, other.x[i]), run_with(e, &in, i, nans),
                              run_with(e, &in, i, infinities)};
        if (values_differ(&o[0], &before) && before.real)
            cr_expect(!o[1].ok || has_nan(&o[1]), "%s %s: a NaN in input %d does not propagate",
                      e->name, shapes, i);
    }
}

TEST(operations, a_nan_propagates, DIFFERENCES)
{
    for_each_example(nan_propagates);
}

/*
 * Fast kernels agree with the plain ones (ops/plain).
 *
 * Tolerance: 1e-13 of the largest term, in float64, where 1e-13 is 450 units in the last place. A
 * fast kernel adds the same terms in another order and fuses products into sums: two sums of n
 * terms may be n units apart, measured by the sum of the terms' magnitudes, and rows here have up
 * to 1030. Where terms cancel, a result is small against them: then it is measured by dy, which is
 * the size of the terms (results_relative).
 */

static const double tolerance = 1e-13;

/* Runs a check with plain kernels. */
static void with_plain_kernels(void (*for_each)(example_check *), example_check *check)
{
    const enum kernel_set usual = kernel_cpu_set();
    cr_assert(kernel_use_cpu_set(KERNELS_PLAIN));
    for_each(check);
    kernel_use_cpu_set(usual);
}

CPU_TEST(plain, every_operation_with_kernels_has_plain_ones)
{
    for (int i = 0; operation_at(i); i++) {
        const struct kernel_rows *rows = operation_at(i)->rows;
        for (sb_dtype dtype = SB_F32; rows && dtype <= SB_F64; dtype++)
            cr_expect(rows->row[KERNELS_PLAIN][dtype] != NULL, "%s in %s has no plain kernels",
                      rows->operation, sb_dtype_name(dtype));
    }
}

static void fast_agrees(const struct example *e, const char *shapes)
{
    const enum kernel_set usual = kernel_cpu_set();
    struct inputs in = inputs_new(shapes, SB_F64, 1);
    kernel_use_cpu_set(KERNELS_PLAIN);
    struct results plain = example_must_run(e, shapes, &in);
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);) {
        struct results fast = example_must_run(e, shapes, &in);
        const double relative = results_relative(&fast, &plain);
        cr_expect(relative <= tolerance, "%s %s: %s is off by %g", e->name, shapes,
                  kernel_cpu_name(), relative);
    }
    kernel_use_cpu_set(usual);
}

CPU_TEST(plain, fast_kernels_agree)
{
    for_each_example(fast_agrees);
}

CPU_TEST(plain, fast_kernels_agree_on_long_rows)
{
    for_each_long_example(1030, fast_agrees);
}

CPU_TEST(plain, gradients_agree_with_differences)
{
    with_plain_kernels(for_each_example, example_gradients_agree);
}

/* ---- Kernels that no example runs ---- */

/* Attention over a cache with these options. */
static sb_tensor *cached(sb_score score, sb_tensor *const x[])
{
    TAPE(SB_NO_RECORD);
    sb_kv_cache *cache = KEPT(sb_kv_cache_new());
    MUST(sb_kv_cache_append(cache, x[1], x[2]));
    const int32_t order[] = {1, 0};
    MUST(sb_kv_cache_reorder(cache, 2, order));
    sb_attention_options o = {.score = score, .temperature = 2, .mask = sb_mask_window(5, 1)};
    if (score == SB_SCORE_SCALED)
        o.bias = x[3];
    return retained(MUST(sb_attention_cached(x[0], cache, &o)));
}

CPU_TEST(plain, cached_attention_agrees)
{
    const enum kernel_set usual = kernel_cpu_set();
    struct inputs in = inputs_new("=2x3x4x5 =2x7x2x5 =2x7x2x3 =4x1x7", SB_F64, 3);
    for (sb_score score = SB_SCORE_SCALED; score <= SB_SCORE_COSINE; score++) {
        kernel_use_cpu_set(KERNELS_PLAIN);
        sb_tensor *plain = cached(score, in.x);
        for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);) {
            sb_tensor *fast = cached(score, in.x);
            cr_expect(test_relative(fast, plain) <= tolerance, "score %d, %s: off by %g",
                      (int)score, kernel_cpu_name(), test_relative(fast, plain));
        }
    }
    kernel_use_cpu_set(usual);
}

enum { N = 1000 };

/* Gradient, weights and two moments after three steps each of Adam, SGD with and without Nesterov,
   and of averaging. */
static void update(enum kernel_set set, double x[4][N], double *sum)
{
    const struct adam_step adam = {.rate = 0.01,
                                   .beta1 = 0.9,
                                   .beta2 = 0.98,
                                   .epsilon = 1e-9,
                                   .correction1 = 0.1,
                                   .correction2 = 0.02,
                                   .gradient_scale = 0.7,
                                   .coupled_decay = 0.1,
                                   .decoupled_decay = 0.2};
    struct sgd_step sgd = {.rate = 0.1, .momentum = 0.9, .gradient_scale = 0.5, .decay = 0.1};
    const struct update_kernels *k = update_rows.row[set][SB_F64];
    int64_t bad;
    for (int i = 0; i < 4 * N; i++)
        x[i / N][i % N] = i / N == 3 ? 0.5 : sin(i);
    for (int step = 0; step < 3; step++, sgd.nesterov = !sgd.nesterov)
        cr_assert(k->adam(N, &adam, x[0], x[1], x[2], x[3]) && k->sgd(N, &sgd, x[0], x[1], x[2]) &&
                  k->average(N, 0.9, x[1], x[3]));
    for (int i = 0; i < N; i++)
        x[3][i] = fabs(x[3][i]);
    cr_assert(k->squares(N, x[1], sum, &bad) && bad == -1);
}

CPU_TEST(plain, optimiser_steps_agree)
{
    static double plain[4][N], fast[4][N];
    double plain_sum, fast_sum;
    update(KERNELS_PLAIN, plain, &plain_sum);
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);) {
        update(s.set, fast, &fast_sum);
        cr_expect(test_relative_arrays(4 * N, fast[0], plain[0]) <= tolerance, "%s: off by %g",
                  kernel_cpu_name(), test_relative_arrays(4 * N, fast[0], plain[0]));
        cr_expect(fabs(fast_sum - plain_sum) <= tolerance * plain_sum, "%s", kernel_cpu_name());
    }
}

/* bf16 is a storage format: computation is in f32, and results and gradients are rounded. */

CPU_TEST(bf16, floats_are_rounded_to_the_nearest_and_ties_to_even)
{
    static const struct {
        float from;
        uint16_t to;
    } cases[] = {
        {1, 0x3f80},         {-2, 0xc000},          {0x1.01p0f, 0x3f80}, /* halfway: the even one */
        {0x1.03p0f, 0x3f82}, {0x1.0102p0f, 0x3f81}, {FLT_MAX, 0x7f80},   {-INFINITY, 0xff80},
        {0x1p-149f, 0x0000}, {0x1p-133f, 0x0001},   {-0.0f, 0x8000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect(sb_bf16_round(cases[i].from) == cases[i].to, "%a becomes %04x, not %04x",
                  (double)cases[i].from, sb_bf16_round(cases[i].from), cases[i].to);
    cr_expect(isnan(sb_bf16_widen(sb_bf16_round(NAN))));
    uint32_t signalling = 0x7f800001;
    float value;
    memcpy(&value, &signalling, sizeof value);
    cr_expect(isnan(sb_bf16_widen(sb_bf16_round(value))));
    for (uint32_t bits = 0; bits < 1u << 16; bits++)
        cr_assert(isnan(sb_bf16_widen((uint16_t)bits)) ||
                  sb_bf16_round(sb_bf16_widen((uint16_t)bits)) == bits);
}

/* The same values in another real dtype. */
static struct inputs inputs_as(sb_dtype dtype, const struct inputs *from)
{
    struct inputs in = {.n = from->n};
    for (int i = 0; i < in.n; i++) {
        const sb_tensor *x = from->x[i];
        in.x[i] = KEPT(sb_tensor_from_doubles(sb_dtype_is_real(x->dtype) ? dtype : x->dtype,
                                              x->rank, x->dim, numbers_of(x)));
        if (x->requires_grad)
            sb_tensor_requires_grad(in.x[i]);
    }
    return in;
}

/* An example is one operation, or a few: each may be off by half an ulp of bf16, and what is stored
   for backward is rounded too. */
static void agrees_with_f32(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_BF16, 1), wide = inputs_as(SB_F32, &in);
    struct results exact = example_must_run(e, shapes, &wide);
    struct results rounded = example_must_run(e, shapes, &in);
    double relative = results_relative(&rounded, &exact);
    cr_expect(relative <= 3 * 0x1p-8, "%s %s: bf16 is off by %g", e->name, shapes, relative);
}

TEST(bf16, every_operation_agrees_with_f32_up_to_rounding, KNOWN_KERNELS)
{
    for_each_example(agrees_with_f32);
}

/* The dtype of an example's result for bf16: a loss keeps the dtype of its computation. */
static sb_dtype dtype_of_result(const char *name)
{
    static const struct {
        const char *name;
        sb_dtype dtype;
    } others[] = {{"cross_entropy", SB_F32},
                  {"linear_cross_entropy", SB_F32},
                  {"mean_squared_error", SB_F32},
                  {"argmax", SB_I32}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i].name) == 0)
            return others[i].dtype;
    return SB_BF16;
}

static void returns_bf16(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_BF16, 1);
    sb_tape tape;
    example_begin(&tape, SB_RECORD);
    const sb_tensor *y = e->run(NULL, in.x);
    cr_assert(y, "%s %s: %s", e->name, shapes, sb_error());
    if (strcmp(e->name, "cast") != 0) /* the caller chooses its dtype */
        cr_expect(sb_tensor_dtype(y) == dtype_of_result(e->name), "%s %s: the result is %s",
                  e->name, shapes, sb_dtype_name(sb_tensor_dtype(y)));
    cr_expect(sb_tape_end(&tape), "%s", sb_error());
}

TEST(bf16, every_result_is_bf16_but_for_losses_and_indices)
{
    for_each_example_once(returns_bf16);
}

TEST(bf16, results_and_gradients_are_stored_as_bf16_and_losses_as_f32)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_full(SB_BF16, SB_SHAPE(2, 3), 1.5)));
    TAPE(SB_RECORD);
    sb_tensor *y = sb_softmax(sb_multiply(x, x));
    const int32_t ids[] = {2, 0};
    sb_tensor *targets = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(2), ids));
    sb_tensor *loss = sb_cross_entropy(y, targets, NULL);
    cr_expect(sb_tensor_dtype(y) == SB_BF16 && sb_tensor_dtype(loss) == SB_F32);
    MUST(sb_backward(loss));
    cr_expect(sb_tensor_dtype(sb_tensor_grad(x)) == SB_BF16);
}

TEST(bf16, gradients_of_two_uses_add_up)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_full(SB_BF16, SB_SHAPE(3), 2)));
    TAPE(SB_RECORD);
    MUST(sb_backward(sb_sum(sb_cast(sb_add(sb_multiply(x, x), x), SB_F32), 0, false)));
    expect_numbers(sb_tensor_grad(x), 3, (double[]){5, 5, 5});
}

/* Operations with two outputs, with many inputs, and with a loss. */
static bool rounded_step(void *context)
{
    sb_tensor *const *x = context, *sum = NULL, *weights = NULL;
    const sb_attention_options o = {.log_temperature = x[2], .weights = &weights};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_residual_layer_norm(x[0], x[0], 0, x[1], NULL, 0, &sum);
    y = sb_concatenate((sb_tensor *[]){y, sum}, 2, 0);
    y = sb_attention(y, y, y, &o);
    y = sb_multiply(y, sb_sum(weights, -1, true));
    sb_backward(sb_mean_squared_error(y, sb_detach(sb_negate(y)), SB_REDUCE_SUM));
    for (int i = 0; i < 3; i++)
        sb_tensor_clear_grad(x[i]);
    return sb_tape_end(&tape);
}

TEST(bf16, each_allocation_may_fail)
{
    sb_tensor *x[] = {test_leaf(SB_BF16, 1, SB_SHAPE(2, 4)), test_leaf(SB_BF16, 2, SB_SHAPE(4)),
                      test_leaf(SB_BF16, 3, SB_SCALAR)};
    cr_expect(test_each_allocation_fails(rounded_step, x) > 0);
}

/* The bytes that an encoder of six layers holds for backward, for 128 sequences of 16, and the most
   that it held before backward ended. */
static void encoder_bytes(sb_precision precision, double *held, double *most)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_transformer_options o = {.width = 64,
                                .feed_forward = 256,
                                .encoder_layers = 6,
                                .heads = 1,
                                .dropout = 0.1,
                                .precision = precision};
    sb_encoder *encoder = KEPT(sb_encoder_new(set, "encoder", 8, &o));
    sb_tensor *ids = KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(128, 16))),
              *lengths = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(128), 16));
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    const int64_t before = memory_in_use().live_bytes;
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *y = sb_encoder_forward(encoder, ids, lengths, NULL);
    *held = (double)(memory_in_use().live_bytes - before);
    MUST(sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
    *most = (double)(memory_in_use().peak_bytes - before);
}

TEST(bf16, activations_of_a_transformer_take_at_most_0_55_of_those_of_f32)
{
    too_slow(SANITIZED, "it measures memory of what other tests run too");
    double held[2], most[2];
    encoder_bytes(SB_PRECISION_BF16, &held[1], &most[1]);
    encoder_bytes(SB_PRECISION_F32, &held[0], &most[0]);
    cr_expect(held[1] <= 0.55 * held[0], "%.0f bytes, with f32 %.0f", held[1], held[0]);
    cr_expect(most[1] <= most[0], "at most %.0f bytes, with f32 %.0f", most[1], most[0]);
}

/* Values and gradients of operations agree with PyTorch's: tests/golden/references/operations.py
   has the same groups and cases. */

FUNCTION(add, sb_add(x[0], x[1]))
FUNCTION(subtract, sb_subtract(x[0], x[1]))
FUNCTION(multiply, sb_multiply(x[0], x[1]))
FUNCTION(divide, sb_divide(x[0], x[1]))
FUNCTION(where, sb_where(x[0], x[1], x[2]))

TEST(reference_operations, arithmetic_is_as_in_pytorch)
{
    COMPARE("operations", "arithmetic", CASE(add), NAMED("add_broadcast", add), CASE(subtract),
            CASE(multiply), CASE(divide), CASE(where));
}

FUNCTION(negate, sb_negate(x[0]))
FUNCTION(scale, sb_scale(x[0], -1.7))
FUNCTION(exponential, sb_exp(x[0]))
FUNCTION(hyperbolic_tangent, sb_tanh(x[0]))
FUNCTION(sigmoid, sb_sigmoid(x[0]))
FUNCTION(relu, sb_relu(x[0]))
FUNCTION(gelu, sb_gelu(x[0]))
FUNCTION(gelu_tanh, sb_gelu_tanh(x[0]))
FUNCTION(silu, sb_silu(x[0]))
FUNCTION(square_root, sb_sqrt(x[0]))
FUNCTION(logarithm, sb_log(x[0]))
FUNCTION(cast, sb_cast(sb_cast(x[0], SB_F32), sb_tensor_dtype(x[0])))

TEST(reference_operations, elementwise_functions_are_as_in_pytorch)
{
    COMPARE("operations", "elementwise", CASE(negate), CASE(scale), NAMED("exp", exponential),
            NAMED("tanh", hyperbolic_tangent), CASE(sigmoid), CASE(relu), CASE(gelu),
            CASE(gelu_tanh), CASE(silu), NAMED("sqrt", square_root), NAMED("log", logarithm),
            CASE(cast));
}

FUNCTION(absolute, sb_abs(x[0]))
FUNCTION(sine, sb_sin(x[0]))
FUNCTION(cosine, sb_cos(x[0]))
FUNCTION(expm1_of, sb_expm1(x[0]))
FUNCTION(log1p_of, sb_log1p(x[0]))
FUNCTION(erf_of, sb_erf(x[0]))
FUNCTION(clamp, sb_clamp(x[0], -0.75, 1.25))
FUNCTION(pow_3, sb_pow(x[0], 3))
FUNCTION(pow_half, sb_pow(x[0], 2.5))
FUNCTION(maximum, sb_maximum(x[0], x[1]))
FUNCTION(minimum, sb_minimum(x[0], x[1]))
FUNCTION(variance, sb_variance(x[0], -1, 1, false))
FUNCTION(variance_first, sb_variance(x[0], 0, 0, true))
FUNCTION(topk, sb_topk(x[0], 3, NULL))
FUNCTION(unfold, sb_unfold(x[0], 3, NULL))
FUNCTION(unfold_far,
         sb_unfold(x[0], 3,
                   &(sb_unfold_options){.stride = 2, .dilation = 3, .left = 4, .right = 4}))
FUNCTION(convolution,
         sb_linear(sb_unfold(x[0], 3, &(sb_unfold_options){.stride = 2, .left = 1, .right = 1}),
                   x[1], x[2]))

TEST(reference_operations, small_operations_are_as_in_pytorch)
{
    COMPARE("small_operations", "functions", NAMED("abs", absolute), NAMED("sin", sine),
            NAMED("cos", cosine), NAMED("expm1", expm1_of), NAMED("log1p", log1p_of),
            NAMED("erf", erf_of), CASE(clamp), CASE(pow_3), CASE(pow_half), CASE(maximum),
            CASE(minimum), NAMED("maximum_equal", maximum), CASE(variance), CASE(variance_first),
            CASE(topk), CASE(unfold), CASE(unfold_far), CASE(convolution));
}

FUNCTION(matmul, sb_matmul(x[0], x[1]))
FUNCTION(matmul_nt, sb_matmul_nt(x[0], x[1]))
FUNCTION(matmul_tn, sb_matmul_tn(x[0], x[1]))
FUNCTION(linear, sb_linear(x[0], x[1], x[2]))
FUNCTION(linear_relu, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_RELU))
FUNCTION(linear_gelu, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_GELU))
FUNCTION(linear_gelu_tanh, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_GELU_TANH))
FUNCTION(linear_silu, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_SILU))
FUNCTION(linear_tanh, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_TANH))
FUNCTION(linear_sigmoid, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_SIGMOID))

TEST(reference_operations, products_are_as_in_pytorch)
{
    COMPARE("operations", "products", CASE(matmul), NAMED("matmul_long", matmul),
            NAMED("matmul_broadcast", matmul), CASE(matmul_nt), CASE(matmul_tn), CASE(linear),
            NAMED("linear_without_bias", linear), CASE(linear_relu), CASE(linear_gelu),
            CASE(linear_gelu_tanh), CASE(linear_silu), CASE(linear_tanh), CASE(linear_sigmoid));
}

FUNCTION(reshape, sb_reshape(x[0], SB_SHAPE(4, -1)))
FUNCTION(permute, sb_permute(x[0], 4, (const int[]){2, 0, 3, 1}))
FUNCTION(transpose, sb_transpose(x[0], 0, 2))
FUNCTION(concatenate, sb_concatenate(x, 3, 1))
FUNCTION(stack, sb_stack(x, 2, 1))
FUNCTION(slice, sb_slice(x[0], 1, 1, 2))
FUNCTION(expand, sb_expand(x[0], SB_SHAPE(2, 3, 4)))

FUNCTION_HEAD(split)
{
    sb_tensor *part[3];
    bool ok = sb_split(x[0], 1, 3, (const int64_t[]){1, 2, 3}, part);
    return ok ? sb_concatenate((sb_tensor *[]){part[2], part[1], part[0]}, 3, 1) : NULL;
}

TEST(reference_operations, shapes_are_as_in_pytorch)
{
    COMPARE("operations", "shapes", CASE(reshape), CASE(permute), CASE(transpose),
            CASE(concatenate), CASE(stack), CASE(slice), CASE(split), CASE(expand));
}

FUNCTION(sum, sb_sum(x[0], SB_ALL, false))
FUNCTION(sum_axis, sb_sum(x[0], 1, false))
FUNCTION(sum_last, sb_sum(x[0], -1, true))
FUNCTION(mean, sb_mean(x[0], SB_ALL, false))
FUNCTION(mean_axis, sb_mean(x[0], 0, true))
FUNCTION(max, sb_max(x[0], SB_ALL, false))
FUNCTION(max_axis, sb_max(x[0], 1, false))
FUNCTION(max_first, sb_max(x[0], 0, true))
FUNCTION(argmax, sb_argmax(x[0], -1))

TEST(reference_operations, reductions_are_as_in_pytorch)
{
    COMPARE("operations", "reductions", CASE(sum), CASE(sum_axis), CASE(sum_last), CASE(mean),
            CASE(mean_axis), CASE(max), CASE(max_axis), CASE(max_first), CASE(argmax));
}

FUNCTION(layer_norm, sb_layer_norm(x[0], x[1], x[2], 0))
FUNCTION(layer_norm_epsilon, sb_layer_norm(x[0], x[1], x[2], 0.3))
FUNCTION(rms_norm, sb_rms_norm(x[0], x[1], 0))
FUNCTION(rms_norm_epsilon, sb_rms_norm(x[0], x[1], 0.3))
FUNCTION(l2_normalize, sb_l2_normalize(x[0]))

FUNCTION_HEAD(residual_layer_norm)
{
    sb_tensor *sum, *y = sb_residual_layer_norm(x[0], x[1], 0, x[2], x[3], 0, &sum);
    return y ? sb_stack((sb_tensor *[]){y, sum}, 2, 0) : NULL;
}

TEST(reference_operations, norms_are_as_in_pytorch)
{
    COMPARE("operations", "norms", CASE(layer_norm), NAMED("layer_norm_without_bias", layer_norm),
            CASE(layer_norm_epsilon), NAMED("layer_norm_far_mean", layer_norm),
            CASE(residual_layer_norm), CASE(rms_norm), CASE(rms_norm_epsilon), CASE(l2_normalize));
}

FUNCTION(embedding, sb_embedding(x[0], x[1]))
FUNCTION(gather, sb_gather(x[0], x[1]))

TEST(reference_operations, lookups_are_as_in_pytorch)
{
    COMPARE("operations", "lookup", CASE(embedding), CASE(gather));
}

FUNCTION(softmax, sb_softmax(x[0]))
FUNCTION(log_softmax, sb_log_softmax(x[0]))
FUNCTION(logsumexp, sb_logsumexp(x[0]))
FUNCTION(allowed, sb_masked_softmax(x[0], sb_mask_allow(x[1]), 1))
FUNCTION(blocked, sb_masked_softmax(x[0], sb_mask_block(x[1]), 1))
FUNCTION(causal, sb_masked_softmax(x[0], sb_mask_causal(), 1))
FUNCTION(causal_last, sb_masked_softmax(x[0], sb_mask_causal_last(), 1))
FUNCTION(lengths, sb_masked_softmax(x[0], sb_mask_lengths(x[1]), 1))
FUNCTION(window, sb_masked_softmax(x[0], sb_mask_window(2, 1), 1))
FUNCTION(two_masks_and_temperature,
         sb_masked_softmax(x[0], sb_mask_and(sb_mask_causal(), sb_mask_lengths(x[1])), 0.7))

TEST(reference_operations, softmaxes_are_as_in_pytorch)
{
    COMPARE("operations", "softmax", CASE(softmax), CASE(log_softmax), CASE(logsumexp),
            CASE(allowed), CASE(blocked), CASE(causal), CASE(causal_last), CASE(lengths),
            CASE(window), CASE(two_masks_and_temperature));
}

FUNCTION(sinusoidal, sb_multiply(x[0], sb_sinusoidal(sb_tensor_dtype(x[0]), 3, 6, 10)))
FUNCTION(rotary, sb_rotary(x[0], 0, 0))
FUNCTION(rotary_later, sb_rotary(x[0], 5, 100))
FUNCTION(alibi, sb_add(x[0], sb_alibi(sb_tensor_dtype(x[0]), 4, 3, 5)))
FUNCTION(relative_bias, sb_relative_bias(x[0], 4, 6))

TEST(reference_operations, positions_are_as_written_out_in_pytorch)
{
    COMPARE("operations", "positions", CASE(sinusoidal), CASE(rotary), CASE(rotary_later),
            CASE(alibi), CASE(relative_bias));
}
