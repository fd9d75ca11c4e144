/*
 * Fast kernels agree with the plain ones (ops/plain).
 *
 * Tolerance: 1e-13 of the largest term, in float64, where 1e-13 is 450 units in the last place. A
 * fast kernel adds the same terms in another order and fuses products into sums: two sums of n
 * terms may be n units apart, measured by the sum of the terms' magnitudes, and rows here have up
 * to 1030. Where terms cancel, a result is small against them: then it is measured by dy, which is
 * the size of the terms (results_relative).
 */
#include "ops/kv_cache.h"
#include "ops/update.h"
#include "tests/support/examples.h"

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
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++) {
        if (!kernel_use_cpu_set(set))
            continue;
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
        for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++) {
            if (!kernel_use_cpu_set(set))
                continue;
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
    const enum kernel_set usual = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++) {
        if (!kernel_use_cpu_set(set))
            continue;
        update(set, fast, &fast_sum);
        cr_expect(test_relative_arrays(4 * N, fast[0], plain[0]) <= tolerance, "%s: off by %g",
                  kernel_cpu_name(), test_relative_arrays(4 * N, fast[0], plain[0]));
        cr_expect(fabs(fast_sum - plain_sum) <= tolerance * plain_sum, "%s", kernel_cpu_name());
    }
    kernel_use_cpu_set(usual);
}
