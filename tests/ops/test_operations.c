/*
 * Properties of every operation, on every example that it lists (ops/example.h): a new operation is
 * tested as soon as it is in Meson's list.
 */
#include "autograd/node.h"
#include "tests/support/examples.h"
#include <float.h>

/* The largest difference between two implementations, in ulp of the largest element. */
enum { ROUNDING = 16 };

/* ---- Gradients ---- */

TEST(operations, gradients_agree_with_differences)
{
    too_slow(EMULATED_SANITIZED, "it takes differences for each element");
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

TEST(operations, an_input_may_be_used_twice)
{
    too_slow(RACES, "its kernels run in shorter tests too");
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

TEST(operations, f32_agrees_with_f64)
{
    too_slow(RACES, "its kernels run in shorter tests too");
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
    const enum kernel_set best = kernel_cpu_set();
    const int64_t usual = kernel_streamed_bytes;
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        for (sb_dtype dtype = SB_F32; dtype <= SB_F64 && kernel_use_cpu_set(set); dtype++) {
            struct inputs in = inputs_new(shapes, dtype, 1);
            struct results cached = example_must_run(e, shapes, &in);
            kernel_streamed_bytes = 0;
            struct results streamed = example_must_run(e, shapes, &in);
            kernel_streamed_bytes = usual;
            cr_expect(results_same_bits(&cached, &streamed), "%s %s in %s: %s: other bits", e->name,
                      shapes, sb_dtype_name(dtype), kernel_cpu_name());
        }
    kernel_use_cpu_set(best);
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

TEST(operations, recording_does_not_change_the_value)
{
    too_slow(RACES, "its kernels run in shorter tests too");
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

TEST(operations, each_allocation_that_fails_is_reported)
{
    too_slow(RACES, "its kernels run in shorter tests too");
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

TEST(operations, a_nan_propagates)
{
    too_slow(EMULATED_SANITIZED, "it takes differences for each element");
    for_each_example(nan_propagates);
}
