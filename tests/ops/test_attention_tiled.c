/* Attention by tiles, and with tensor cores. */
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

TEST(attention_tiled, any_combination_equals_the_composed_path_in_float64, MANY_CASES)
{
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
TEST(attention_tiled, float32_is_as_exact_as_the_composed_path, MANY_CASES)
{
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

/*
 * Attention on the tensor cores of the CUDA device: of bf16, which has separate kernels for the
 * composed path too, and of float32 as 3xTF32. Compared with float64 on the CPU, from the same
 * numbers.
 */

/* A run: inputs in a dtype of the device or in float64, with the gradient of the result. */
struct operands {
    sb_tensor *x[VARIANT_INPUTS], *dy;
};

static sb_dtype dtype_of(bool f32)
{
    return f32 ? SB_F32 : SB_BF16;
}

/* Half the distance of two neighbouring numbers between 1 and 2: the largest rounding error. */
static double rounding_of(bool f32)
{
    return f32 ? 0x1p-24 : 0x1p-9;
}

static struct operands operands_new(const struct variant *c)
{
    struct operands of;
    variant_inputs(c, dtype_of(c->f32), of.x);
    int64_t dim[4] = {c->B, c->Lq, c->H, c->Dv};
    if (c->layout == SB_LAYOUT_HEADS_FIRST) {
        dim[1] = c->H;
        dim[2] = c->Lq;
    }
    of.dy = test_leaf(dtype_of(c->f32), c->seed + 11, 4, dim);
    return of;
}

static sb_tensor *in_f64(const sb_tensor *x)
{
    return x ? sb_tensor_requires_grad(
                   KEPT(sb_tensor_from_doubles(SB_F64, x->rank, x->dim, numbers_of(x))))
             : NULL;
}

static sb_tensor *on_cuda(const sb_tensor *x)
{
    return x ? KEPT(sb_tensor_to(x, device_cuda())) : NULL;
}

static struct operands operands_by(sb_tensor *make(const sb_tensor *), const struct operands *from)
{
    struct operands of = {.dy = make(from->dy)};
    for (int i = 0; i < VARIANT_INPUTS; i++)
        of.x[i] = make(from->x[i]);
    return of;
}

/* y, the weights, and the gradients of all inputs; to be released. */
struct results {
    sb_tensor *of[RESULTS];
};

static struct results run(const struct variant *c, const struct operands *of, enum way way)
{
    sb_random random = sb_random_new(c->seed, SB_STREAM_TRAIN);
    struct results r = {{NULL}};
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *weights = NULL, *y = variant_forward(c, of->x, way, &weights);
    cr_assert(y && weights, "variant %d: %s", (int)c->seed, sb_error());
    sb_keep(y);
    sb_keep(weights);
    cr_assert(sb_backward_from(y, of->dy), "variant %d: %s", (int)c->seed, sb_error());
    r.of[0] = retained(y);
    r.of[1] = retained(weights);
    for (int i = 0; i < VARIANT_INPUTS; i++) {
        r.of[2 + i] = of->x[i] ? retained(sb_tensor_grad(of->x[i])) : NULL;
        sb_tensor_clear_grad(of->x[i]);
    }
    return r;
}

static struct results run_on_cuda(const struct variant *c, const struct operands *from,
                                  enum way way)
{
    struct operands of = operands_by(on_cuda, from);
    sb_use_device(device_cuda());
    struct results r = run(c, &of, way);
    sb_use_device(NULL);
    return r;
}

static struct results run_in_f64(const struct variant *c, const struct operands *from)
{
    struct operands of = operands_by(in_f64, from);
    on_the_cpu();
    struct results r = run(c, &of, COMPOSED);
    return r;
}

/* Any mask, bias, score, temperature, dropout, layout and groups of heads with sizes near those of
   tiles and chunks. */
static struct variant mma_variant(uint64_t seed)
{
    static const int64_t lengths[] = {1, 2, 8, 15, 17, 33, 63, 64, 65, 90, 127, 129, 150};
    static const int64_t sizes[] = {1, 3, 8, 16, 20, 32, 40, 64, 72, 96, 128, 136, 256, 264};
    enum { LENGTHS = sizeof lengths / sizeof *lengths, SIZES = sizeof sizes / sizeof *sizes };
    sb_random r = sb_random_new(seed, SB_STREAM_USER + 2);
    struct variant c = variant_draw(seed);
    c.B = 1 + sb_random_below(&r, 2);
    c.Lq = lengths[sb_random_below(&r, LENGTHS)];
    c.Lk = lengths[sb_random_below(&r, LENGTHS)];
    c.D = sizes[sb_random_below(&r, SIZES)];
    c.Dv = sb_random_below(&r, 2) ? c.D : sizes[sb_random_below(&r, SIZES)];
    c.scale = c.scale ? 1.3 / sqrt((double)c.D) : 0; /* so that several keys have weight */
    return c;
}

static uint64_t variants(int all, int some)
{
    return (uint64_t)(test_long() ? all : test_sanitized() ? (some + 3) / 4 : some);
}

/* max |a - b| over max |b|, or over `least` if that is larger. */
static double mma_error_of(const sb_tensor *a, const sb_tensor *b, double least)
{
    double worst = 0, size = least, *x = numbers_of(a), *y = numbers_of(b);
    for (int64_t i = 0; i < sb_tensor_size(b); i++) {
        const double error = fabs(x[i] - y[i]);
        worst = isnan(worst) || error <= worst ? worst : error;
        size = fmax(size, fabs(y[i]));
    }
    return worst == 0 ? 0 : worst / size;
}

/* A gradient of scores is a difference of products dy v', which may cancel: if it is smaller than
   these products, about sqrt(Dv), its error is relative to them. */
static double least_size(const struct variant *c, int i)
{
    const double dp = sqrt((double)c->Dv);
    return i == 2 || i == 3 ? dp / sqrt((double)c->D) : i == 5 ? dp : 0;
}

/* limit[i] roundings for result i, or 0 for any error. */
static void expect_few_roundings(const struct variant *c, enum way way, const double limit[RESULTS])
{
    static const char *const names[RESULTS] = {"y",     "weights",         "dq", "dk", "dv",
                                               "dbias", "dlog_temperature"};
    struct operands of = operands_new(c);
    struct results exact = run_in_f64(c, &of), got = run_on_cuda(c, &of, way);
    for (int i = 0; i < RESULTS; i++) {
        if (!exact.of[i] || limit[i] == 0)
            continue;
        const double error =
            mma_error_of(got.of[i], exact.of[i], least_size(c, i)) / rounding_of(c->f32);
        cr_expect(error <= limit[i],
                  "variant %d: %s is off by %g roundings (lengths %d, %d, heads %d, %d of %d, %d, "
                  "mask %d, bias %d, score %d, temperature %d)",
                  (int)c->seed, names[i], error, (int)c->Lq, (int)c->Lk, (int)c->H, (int)c->G,
                  (int)c->D, (int)c->Dv, c->mask, c->bias, c->score, c->temperature);
    }
}

/*
 * Tiles round p to bf16 before the product with v, and ds before those with q and k; results are
 * rounded too, and all else is f32. So y and dv have two roundings, the first of numbers that are
 * all positive; dq and dk have two, of sums of both signs, which may partly cancel; weights have
 * the last one only. The largest errors of 1500 variants are 2.4 for y, 4.9 for dv, and 5 for dq,
 * dk and the bias. Planted mistakes have errors of hundreds.
 */
TEST(attention_bf16, tiles_err_by_a_few_roundings, device_needed())
{
    for (uint64_t seed = 0; seed < variants(1500, 8); seed++) {
        struct variant c = mma_variant(seed);
        c.score = seed % 2 ? SB_SCORE_BALANCED : SB_SCORE_SCALED;
        c.temperature = seed % 3 ? TEMPERATURE_NONE : TEMPERATURE_FIXED;
        expect_few_roundings(&c, TILED, (double[RESULTS]){4, 2, 8, 8, 6, 8, 0});
    }
}

/* The first and the last tiles that such a mask keeps whole. */
TEST(attention_bf16, bands_begin_and_end_within_tiles, device_needed())
{
    static const int masks[] = {MASK_NONE, MASK_CAUSAL, MASK_CAUSAL_LAST, MASK_PADDING, MASK_WIDE};
    for (int i = 0; i < 5 * 2 * 2; i++) {
        struct variant c = {.seed = (uint64_t)i, .B = 1, .H = 1, .G = 1, .D = 16, .Dv = 16};
        c.mask = masks[i % 5];
        c.Lq = i / 5 % 2 ? 129 : 200;
        c.Lk = i / 5 % 2 ? 260 : 200;
        c.f32 = i / 10;
        const double f32[RESULTS] = {80, 0, 160, 500, 60}, bf16[RESULTS] = {4, 0, 8, 8, 6};
        expect_few_roundings(&c, TILED, c.f32 ? f32 : bf16);
    }
}

TEST(attention_bf16, the_composed_path_errs_by_a_few_roundings, device_needed())
{
    for (uint64_t seed = 0; seed < variants(500, 4); seed++) {
        struct variant c = mma_variant(seed);
        c.score = seed % 2 ? SB_SCORE_BALANCED : SB_SCORE_SCALED;
        c.temperature = seed % 3 ? TEMPERATURE_NONE : TEMPERATURE_FIXED;
        expect_few_roundings(&c, COMPOSED, (double[RESULTS]){2, 2, 8, 8, 6, 8, 0});
    }
}

/* A cosine, or a learned temperature, is a separate operation: q and k are rounded once more, so
   scores of 10 have errors of up to 10 roundings. */
TEST(attention_bf16, other_scores_err_by_their_additional_roundings, device_needed())
{
    for (uint64_t seed = 0; seed < variants(500, 4); seed++) {
        struct variant c = mma_variant(seed);
        c.temperature = seed % 2 ? TEMPERATURE_ONE : TEMPERATURE_HEADS;
        expect_few_roundings(&c, TILED, (double[RESULTS]){40, 24, 40, 40, 16, 0, 0});
    }
}

static void expect_same_bits(const struct variant *c, enum way way)
{
    struct operands of = operands_new(c);
    struct results first = run_on_cuda(c, &of, way), again = run_on_cuda(c, &of, way);
    for (int i = 0; i < RESULTS; i++)
        cr_expect(!first.of[i] || test_same_bits(first.of[i], again.of[i]), "variant %d, result %d",
                  (int)c->seed, i);
}

TEST(attention_bf16, a_second_run_gives_the_same_bits, device_needed())
{
    for (uint64_t seed = 0; seed < variants(200, 4); seed++) {
        struct variant c = mma_variant(seed + 100);
        expect_same_bits(&c, seed % 4 ? TILED : COMPOSED);
    }
}

TEST(attention_bf16, tiles_are_used_unless_weights_are_requested, device_needed())
{
    TAPE(SB_RECORD);
    sb_tensor *x = test_leaf(SB_BF16, 1, SB_SHAPE(3, 8)), *weights = NULL;
    sb_tensor *y = sb_attention(x, x, x, NULL);
    cr_expect(sb_attention_weights(y, 0, 3) != NULL, "%s", sb_error());
    cr_expect(sb_attention(x, x, x, &(sb_attention_options){.weights = &weights}) && weights &&
              weights->dtype == SB_BF16);
}

enum { Q, K, V, DY, Y, DQ, DK, DV, PARTS };

/* Rows of D numbers under a window: query i attends to the keys i - 2 .. i + 1. */
struct window {
    bool f32;
    int64_t L, D;
    double *of[PARTS];
};

static sb_tensor *window_leaf(const struct window *w, int part)
{
    return sb_tensor_requires_grad(
        KEPT(sb_tensor_from_doubles(dtype_of(w->f32), SB_SHAPE(w->L, w->D), w->of[part])));
}

static struct window window_run(bool f32, int64_t L, int64_t D, int part, int64_t row,
                                int64_t column, double value)
{
    struct window w = {f32, L, D, {NULL}};
    sb_tape tape;
    sb_tensor *x[4];
    sb_use_device(device_cuda());
    for (int i = 0; i < 4; i++) {
        sb_tensor *leaf = test_leaf(dtype_of(f32), (uint64_t)i + 1, SB_SHAPE(L, D));
        w.of[i] = numbers_of(leaf);
        for (int64_t d = 0; i == part && d < D; d++)
            if (column < 0 || column == d)
                w.of[i][row * D + d] = value;
        x[i] = window_leaf(&w, i);
    }
    sb_tape_begin(&tape, SB_RECORD);
    sb_attention_options o = {.mask = sb_mask_window(2, 1), .algorithm = SB_ATTENTION_TILED};
    sb_tensor *y = sb_keep(sb_attention(x[Q], x[K], x[V], &o));
    MUST(sb_backward_from(y, x[DY]));
    w.of[Y] = numbers_of(y);
    for (int i = 0; i < 3; i++)
        w.of[DQ + i] = numbers_of(sb_tensor_grad(x[i]));
    sb_tape_end(&tape);
    sb_use_device(NULL);
    return w;
}

/* Asserts that a part is the same in both except for the rows from .. to, and is not finite in one
   column of them, or in all. */
static void expect_nonfinite(const struct window *a, const struct window *b, int part, int64_t from,
                             int64_t to, int64_t column)
{
    for (int64_t i = 0; i < a->L * a->D; i++) {
        const int64_t row = i / a->D, d = i % a->D;
        const bool bad = from <= row && row <= to && (column < 0 || column == d);
        const double x = a->of[part][i], y = b->of[part][i];
        if (bad)
            cr_expect(!isfinite(x), "part %d, row %d, column %d: %g", part, (int)row, (int)d, x);
        else if (row < from || row > to || part == Y)
            cr_expect(x == y, "part %d, row %d, column %d: %g, not %g", part, (int)row, (int)d, x,
                      y);
    }
}

/* All tiles are partial: most of their pairs are blocked. */
static void expect_only_kept_pairs_propagate(bool f32, int64_t D)
{
    const int64_t L = 70;
    struct window plain = window_run(f32, L, D, PARTS, 0, 0, 0);
    struct window v = window_run(f32, L, D, V, 40, 3, INFINITY);
    expect_nonfinite(&v, &plain, Y, 39, 42, 3);
    expect_nonfinite(&v, &plain, DQ, 39, 42, -1);
    expect_nonfinite(&v, &plain, DK, 37, 43, -1);
    struct window k = window_run(f32, L, D, K, 66, 2, NAN);
    expect_nonfinite(&k, &plain, Y, 65, 68, -1);
    expect_nonfinite(&k, &plain, DQ, 65, 68, -1);
    expect_nonfinite(&k, &plain, DV, 63, 69, -1);
    struct window q = window_run(f32, L, D, Q, 5, -1, NAN);
    expect_nonfinite(&q, &plain, Y, 5, 5, -1);
    expect_nonfinite(&q, &plain, DK, 3, 6, -1);
    expect_nonfinite(&q, &plain, DV, 3, 6, -1);
    struct window dy = window_run(f32, L, D, DY, 62, 7, -INFINITY);
    expect_nonfinite(&dy, &plain, DV, 60, 63, 7);
    expect_nonfinite(&dy, &plain, DQ, 62, 62, -1);
    expect_nonfinite(&dy, &plain, DK, 60, 63, -1);
    /* To the last query: a score of -infinity, and so a weight of 0 times an infinite key. */
    const double infinite = plain.of[Q][(L - 1) * D + 2] > 0 ? -INFINITY : INFINITY;
    struct window last = window_run(f32, L, D, K, L - 1, 2, infinite);
    expect_nonfinite(&last, &plain, DQ, L - 2, L - 1, 2);
}

TEST(attention_bf16, non_finite_values_propagate_only_through_kept_pairs, device_needed())
{
    static const int64_t sizes[] = {16, 40, 65, 250};
    for (int n = 0; n < 4; n++)
        expect_only_kept_pairs_propagate(false, sizes[n]);
}

TEST(attention_tf32x3, non_finite_values_propagate_only_through_kept_pairs, MANY_CASES)
{
    device_needed();
    static const int64_t sizes[] = {16, 40, 65};
    for (int n = 0; n < 3; n++)
        expect_only_kept_pairs_propagate(true, sizes[n]);
}

/* Sequence 0 has no keys, sequence 1 has half of them. */
static void expect_zero_rows(bool f32)
{
    enum { L = 66, D = 24 };
    sb_tensor *x[3];
    for (uint64_t i = 0; i < 3; i++)
        x[i] = test_leaf(dtype_of(f32), i + 1, SB_SHAPE(2, L, D));
    TAPE(SB_RECORD);
    const int32_t lengths[2] = {0, L / 2};
    sb_tensor *keys = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(2), lengths));
    sb_attention_options o = {.mask = sb_mask_lengths(keys), .algorithm = SB_ATTENTION_TILED};
    sb_tensor *y = sb_keep(sb_attention(x[0], x[1], x[2], &o));
    sb_tensor *dy = test_leaf(dtype_of(f32), 9, SB_SHAPE(2, L, D));
    MUST(sb_backward_from(y, dy));
    for (int part = 0; part < 4; part++) {
        double *numbers = numbers_of(part ? sb_tensor_grad(x[part - 1]) : y);
        for (int64_t i = 0; i < 2 * L * D; i++) {
            const bool blocked = i < L * D || (part >= 2 && i >= L * D + L / 2 * D);
            cr_expect((numbers[i] == 0) == blocked, "part %d, element %d: %g", part, (int)i,
                      numbers[i]);
        }
    }
}

TEST(attention_bf16, blocked_rows_are_exactly_zero, device_needed())
{
    expect_zero_rows(false);
}

TEST(attention_tf32x3, blocked_rows_are_exactly_zero, device_needed())
{
    expect_zero_rows(true);
}

/* Few have a bias, for which there are no such kernels. */
static struct variant tf32_variant(uint64_t seed)
{
    static const int64_t sizes[] = {3, 16, 20, 32, 40, 64, 72, 96, 128, 136};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct variant c = mma_variant(seed);
    sb_random r = sb_random_new(seed, SB_STREAM_USER + 3);
    c.f32 = true;
    c.D = sizes[sb_random_below(&r, SIZES)];
    c.Dv = sb_random_below(&r, 2) ? c.D : sizes[sb_random_below(&r, SIZES)];
    c.scale = c.scale ? 1.3 / sqrt((double)c.D) : 0;
    c.score = seed % 2 ? SB_SCORE_BALANCED : SB_SCORE_SCALED;
    c.temperature = seed % 3 ? TEMPERATURE_NONE : TEMPERATURE_FIXED;
    c.bias = seed % 8 == 5 ? c.bias : BIAS_NONE;
    return c;
}

/*
 * In roundings of float a product errs by up to 8, and a sum of n by up to 4 n more on a device
 * (ops/ops.h); on CUDA cores by 1 and n. Gradients of few keys cancel. Weights are recomputed on
 * CUDA cores, with the statistics of tensor cores. The largest errors of 240 variants:
 *
 *                                        y   weights   dq    dk   dv
 *     emulated                          21     79      45   244   13
 *     with the rounding of a device     41    106      78   265   31
 *     float on CUDA cores               23     25      56   296   17
 *
 * Without low_x high_y they are thousands.
 */
TEST(attention_tf32x3, tiles_err_by_a_few_roundings_of_float, MANY_CASES)
{
    device_needed();
    for (uint64_t seed = 0; seed < variants(240, 6); seed++) {
        struct variant c = tf32_variant(seed);
        expect_few_roundings(&c, TILED, (double[RESULTS]){80, 200, 160, 500, 60, 150, 0});
    }
}

TEST(attention_tf32x3, a_second_run_gives_the_same_bits, device_needed())
{
    for (uint64_t seed = 0; seed < variants(100, 3); seed++) {
        struct variant c = tf32_variant(seed + 100);
        expect_same_bits(&c, TILED);
    }
}
