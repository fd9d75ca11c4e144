/* Tiled attention compared with composed attention, which stores its weights. */
#include "ops/kernel.h"
#include "tests/support/device.h"
#include "tests/support/test.h"
#include "tests/support/variant.h"
#include <time.h>

TEST(attention_tiled, many_options_equal_the_composition_of_simple_operations)
{
    for (uint64_t seed = 0; seed < (uint64_t)(test_long() ? 4000 : test_some(250)); seed++) {
        struct variant c = variant_draw(seed);
        variant_expect_same(&c, SB_F64, TILED, OPERATIONS, 1e-12);
    }
}

/* Any mask, bias, score, temperature, dropout, layout and groups of heads with sizes near those of
   tiles and vectors; those of a device are smaller. */
static struct variant long_variant(uint64_t seed)
{
    const uint32_t count = test_brief() && test_slow_device() ? 11 : 16;
    static const int64_t lengths[] = {1,   2,   15,  16,  17,  63,  64,  65,
                                      127, 128, 129, 200, 255, 257, 300, 520};
    static const int64_t sizes[] = {1, 3, 16, 64, 80, 128, 256};
    sb_random r = sb_random_new(seed, SB_STREAM_USER + 1);
    struct variant c = variant_draw(seed);
    c.B = 1 + sb_random_below(&r, 2);
    c.G = 1 + sb_random_below(&r, 2);
    c.H = c.G * (1 + sb_random_below(&r, 2));
    c.Lq = lengths[sb_random_below(&r, count)];
    c.Lk = lengths[sb_random_below(&r, count)];
    c.D = sizes[sb_random_below(&r, 7)];
    c.Dv = sizes[sb_random_below(&r, 7)];
    c.scale = c.scale ? 1.3 / sqrt((double)c.D) : 0; /* so that several keys have weight */
    return c;
}

TEST(attention_tiled, any_combination_equals_the_composed_path_in_float64)
{
    too_slow(EMULATED_SANITIZED, "it runs many cases of kernels that shorter tests run too");
    sb_random r = sb_random_new((uint64_t)(test_long() ? time(NULL) : 1), SB_STREAM_USER);
    uint64_t first = sb_random_below(&r, 1u << 30);
    const int variants = test_long() ? 2000 : test_some(test_slow() ? 80 : 200);
    for (uint64_t seed = first; seed < first + (uint64_t)variants; seed++) {
        struct variant c = long_variant(seed);
        variant_expect_same(&c, SB_F64, TILED, COMPOSED, 1e-12);
    }
}

static void cast_all(sb_tensor *const x[], sb_dtype dtype, sb_tensor *y[])
{
    for (int i = 0; i < VARIANT_INPUTS; i++) {
        y[i] = NULL;
        if (!x[i])
            continue;
        y[i] = sb_tensor_requires_grad(
            KEPT(sb_tensor_from_doubles(dtype, sb_tensor_rank(x[i]), x[i]->dim, numbers_of(x[i]))));
    }
}

static double largest(const sb_tensor *t)
{
    double most = 0, *numbers = t ? numbers_of(t) : NULL;
    for (int64_t i = 0; t && i < sb_tensor_size(t); i++)
        most = fmax(most, fabs(numbers[i]));
    return most;
}

/* max |a - b| over max |b|, or over the largest of all gradients where terms cancel. */
static double error_of(const struct variant *c, int i, sb_tensor *const a[], sb_tensor *const b[])
{
    double worst = 0, size = fmax(largest(b[i]), variant_least_size(c, i)), *x = numbers_of(a[i]),
           *y = numbers_of(b[i]);
    for (int64_t e = 0; e < sb_tensor_size(b[i]); e++)
        worst = isnan(worst) || fabs(x[e] - y[e]) <= worst ? worst : fabs(x[e] - y[e]);
    for (int n = 2; n < 5 && (i >= 5 || size == 0); n++)
        size = fmax(size, largest(b[n]));
    return worst == 0 ? 0 : worst / size;
}

/* A GPU may err more: its expf by 2 ulp instead of 1 (CUDA C++ Programming Guide, "Mathematical
   Functions"), a product of 3xTF32 by 8 roundings instead of 1 (ops/ops.h). Weights are recomputed
   from statistics that have these errors, on CUDA cores that do not. */
static double device_times(int result)
{
    return !device_of_run() ? 1 : result == 1 ? 8 : 3;
}

/* The error is at most twice that of the composed path in float32, or 8 ulp of the largest. It may
   be larger with several tiles of keys, since delta is computed from y, and for sums whose terms
   cancel. */
TEST(attention_tiled, float32_is_as_exact_as_the_composed_path)
{
    too_slow(EMULATED_SANITIZED, "it runs many cases of kernels that shorter tests run too");
    const int variants = test_long() ? 1000 : test_some(test_slow() ? 64 : 100);
    for (uint64_t seed = 0; seed < (uint64_t)variants; seed++) {
        struct variant c = long_variant(seed);
        sb_tensor *x[VARIANT_INPUTS], *exact_x[VARIANT_INPUTS];
        sb_tensor *exact[RESULTS], *composed[RESULTS], *tiled[RESULTS];
        variant_inputs(&c, SB_F32, x);
        cast_all(x, SB_F64, exact_x);
        variant_run(&c, exact_x, COMPOSED, false, exact);
        variant_run(&c, x, COMPOSED, false, composed);
        variant_run(&c, x, TILED, false, tiled);
        for (int i = 0; i < RESULTS; i++) {
            if (!exact[i])
                continue;
            double times = (c.Lk <= 256 ? 1 : 2) * (i < 5 ? 1 : 8) * device_times(i);
            double limit = times * fmax(2 * error_of(&c, i, composed, exact), 8 * 0x1p-23);
            double error = error_of(&c, i, tiled, exact);
            cr_expect(error <= limit, "variant %d, result %d: %g above %g (Lq %d Lk %d D %d)",
                      (int)seed, i, error, limit, (int)c.Lq, (int)c.Lk, (int)c.D);
        }
    }
}

static sb_tensor *own_leaf(uint64_t seed, int64_t L, int64_t H, int64_t D)
{
    return test_leaf(SB_F32, seed, SB_SHAPE(1, L, H, D));
}

/* The peak memory of forward and backward, without inputs, result and gradients. */
static int64_t extra_bytes(int64_t L)
{
    enum { H = 8, D = 64 };
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *q = own_leaf(1, L, H, D), *k = own_leaf(2, L, H, D), *v = own_leaf(3, L, H, D);
    sb_tensor *dy = own_leaf(4, L, H, D);
    sb_attention_options o = {.mask = sb_mask_causal()};
    int64_t tensor = L * H * D * (int64_t)sizeof(float);
    int64_t before = memory_in_use().live_bytes;
    sb_device_reset_peak(sb_device_in_use());
    sb_tensor *y = sb_attention(q, k, v, &o);
    MUST(y && sb_backward_from(y, dy));
    int64_t peak = memory_in_use().peak_bytes - before;
    cr_assert(sb_tape_end(&tape));
    return peak - 5 * tensor; /* y, its gradient, and the gradients of q, k and v */
}

TEST(attention_tiled, memory_is_linear_in_the_length)
{
    too_slow(SANITIZED, "it measures memory, and short sequences run the same kernels");
    int64_t L = test_long() ? 16384 : 2048;
    int64_t whole = extra_bytes(L), quarter = extra_bytes(L / 4);
    cr_log_info("causal, 8 heads of 64: %.2f MB of extra memory at length %lld, "
                "%.2f MB at %lld",
                (double)whole / 1e6, (long long)L, (double)quarter / 1e6, (long long)L / 4);
    cr_expect(whole <= 16e6 * (double)L / 16384 + 4e6, "%lld bytes", (long long)whole);
    int64_t statistics = 3 * (L - L / 4) * 8 * (int64_t)sizeof(float);
    cr_expect(whole - quarter <= statistics + 100000, "%lld bytes more",
              (long long)whole - quarter);
}

/* exp of these scores overflows, and the difference between neighbours still counts. */
TEST(attention_tiled, huge_scores_stay_finite)
{
    for (int way = 0; way < 2; way++) {
        TAPE(SB_RECORD);
        double keys[600];
        for (int j = 0; j < 600; j++)
            keys[j] = j % 2 ? 6e4 : -6e4;
        sb_tensor *q = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(2, 1), 1));
        sb_tensor *k = sb_tape_own(sb_tensor_from_doubles(SB_F32, SB_SHAPE(600, 1), keys));
        sb_tensor *v = sb_tape_own(sb_tensor_from_doubles(SB_F32, SB_SHAPE(600, 1), keys));
        sb_tensor_requires_grad(q);
        sb_attention_options o = {.algorithm = way ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED};
        sb_tensor *y = sb_keep(sb_attention(q, k, v, &o));
        MUST(sb_backward(sb_sum(y, SB_ALL, false)));
        cr_expect(fabs(sb_tensor_get(y, 0) - 6e4) < 1 &&
                      fabs(sb_tensor_get(sb_tensor_grad(q), 0)) < 1e3,
                  "%g, %g", sb_tensor_get(y, 0), sb_tensor_get(sb_tensor_grad(q), 0));
    }
}

/* Kept scores that are all -infinity give NaN and not 0: only a mask gives rows of 0. */
TEST(attention_tiled, infinite_scores_give_nan)
{
    const double scores[] = {-INFINITY, INFINITY, NAN};
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < 3; i++) {
            TAPE(SB_RECORD);
            sb_tensor *x = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(2, 1), 1));
            sb_tensor *bias = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(2, 2), scores[i]));
            sb_tensor_set(bias, 0, 0); /* query 0 has one finite score */
            sb_attention_options o = {
                .bias = bias, .algorithm = way ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED};
            sb_tensor *y = sb_attention(x, x, x, &o);
            cr_expect(isnan(sb_tensor_get(y, 0)) == (i > 0) && isnan(sb_tensor_get(y, 1)),
                      "way %d, score %g", way, scores[i]);
        }
}

TEST(attention_tiled, rows_of_the_weights_are_those_of_the_composed_path)
{
    TAPE(SB_RECORD);
    sb_tensor *q = own_leaf(1, 100, 2, 8), *k = own_leaf(2, 300, 1, 8), *weights;
    sb_attention_options o = {.mask = sb_mask_window(150, 20), .weights = &weights};
    MUST(sb_attention(q, k, k, &o));
    o.weights = NULL;
    o.algorithm = SB_ATTENTION_TILED;
    sb_tensor *y = sb_attention(q, k, k, &o), *rows = sb_attention_weights(y, 37, 41);
    MUST(rows);
    for (int64_t h = 0; h < 2; h++)
        for (int64_t i = 0; i < 41; i++)
            for (int64_t j = 0; j < 300; j++)
                cr_expect(fabs(sb_tensor_get(rows, (h * 41 + i) * 300 + j) -
                               sb_tensor_get(weights, (h * 100 + 37 + i) * 300 + j)) < 1e-6);
}
