/* Properties of attention, and the effect of its masks. */
#include "tests/support/compare.h"

/* Properties of attention that hold for every algorithm: symmetries, the range of outputs, and the
   variances that scale and heads are designed for. */

enum { MOST = 320 };

/* Independent draws of mean 0 and variance 1, which require a gradient; the tape owns them. */
static sb_tensor *normal(uint64_t seed, int rank, const int64_t *dim)
{
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    const int64_t n = shape_size(rank, dim);
    double *values = malloc((size_t)(n + 1) * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = sb_random_normal(&random);
    sb_tensor *t = sb_tape_own(sb_tensor_from_doubles(SB_F64, rank, dim, values));
    return sb_tensor_requires_grad(t);
}

/* The parts of x along an axis, put into this order. */
static sb_tensor *reorder(sb_tensor *x, int axis, const int64_t *order)
{
    sb_tensor *parts[MOST];
    int64_t n = sb_tensor_dim(x, axis);
    cr_assert(n <= MOST);
    for (int64_t i = 0; i < n; i++)
        parts[i] = sb_slice(x, axis, order[i], 1);
    return sb_concatenate(parts, (int)n, axis);
}

static double mean_square(const sb_tensor *x)
{
    double sum = 0, *numbers = numbers_of(x);
    for (int64_t i = 0; i < sb_tensor_size(x); i++)
        sum += numbers[i] * numbers[i];
    return sum / (double)sb_tensor_size(x);
}

/* a and b are the same function of the leaves: their values agree, and the gradient of their
   difference, weighted at random, vanishes at leaf x. */
static void expect_same_results(sb_tensor *a, sb_tensor *b, sb_tensor *x)
{
    MUST(a && b);
    cr_expect(test_relative(a, b) < 1e-13, "values differ by %g", test_relative(a, b));
    sb_tensor *w = normal(99, a->rank, a->dim);
    sb_tensor *loss = sb_sum(sb_multiply(sb_subtract(a, b), w), SB_ALL, false);
    MUST(sb_backward(loss));
    cr_expect(largest_of(sb_tensor_grad(x)) < 1e-12, "gradients differ by %g",
              largest_of(sb_tensor_grad(x)));
}

/* More positions than a tile of keys has. */
TEST(attention_properties, self_attention_without_positions_is_permutation_equivariant, MANY_CASES)
{
    const int64_t L = test_brief() && test_slow_device() ? 70 : 300;
    int64_t order[MOST];
    sb_random random = sb_random_new(5, SB_STREAM_USER);
    sb_random_shuffle(&random, L, order);
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        sb_attention_options o = {.algorithm = a};
        TAPE(SB_RECORD);
        sb_tensor *x = normal(1, SB_SHAPE(1, L, 2, 4)), *moved = reorder(x, 1, order);
        sb_tensor *y = sb_attention(x, x, x, &o), *z = sb_attention(moved, moved, moved, &o);
        expect_same_results(z, reorder(y, 1, order), x);
    }
}

TEST(attention_properties, attention_is_invariant_to_the_order_of_key_value_pairs)
{
    const int64_t L = test_brief() && test_slow_device() ? 70 : 300;
    int64_t order[MOST];
    sb_random random = sb_random_new(6, SB_STREAM_USER);
    sb_random_shuffle(&random, L, order);
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        sb_attention_options o = {.algorithm = a};
        TAPE(SB_RECORD);
        sb_tensor *q = normal(1, SB_SHAPE(1, 20, 2, 4)), *k = normal(2, SB_SHAPE(1, L, 2, 4));
        sb_tensor *v = normal(3, SB_SHAPE(1, L, 2, 3));
        sb_tensor *y = sb_attention(q, k, v, &o);
        sb_tensor *k_moved = reorder(k, 1, order), *v_moved = reorder(v, 1, order);
        expect_same_results(sb_attention(q, k_moved, v_moved, &o), y, k);
    }
}

TEST(attention_properties, a_constant_added_to_a_row_of_scores_changes_nothing, MANY_CASES)
{
    const int64_t H = 2, L = test_brief() && test_slow_device() ? 100 : 280;
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        TAPE(SB_RECORD);
        sb_tensor *x = normal(1, SB_SHAPE(1, L, H, 4)), *bias = normal(2, SB_SHAPE(H, L, L));
        sb_tensor *constant = normal(3, SB_SHAPE(H, L, 1));
        sb_attention_options o = {.algorithm = a, .bias = bias};
        sb_tensor *y = sb_attention(x, x, x, &o);
        o.bias = sb_add(bias, sb_scale(constant, 10));
        sb_tensor *z = sb_attention(x, x, x, &o);
        expect_same_results(z, y, x);
        cr_expect(largest_of(sb_tensor_grad(constant)) < 1e-12, "%g",
                  largest_of(sb_tensor_grad(constant)));
    }
}

/* A causal mask, and random pairs with query 0 fully blocked. A query that sees one key gives no
   gradient to its score either: its weight is 1 for any score. */
/* Weights come from the bias alone, and q and k get no gradient. */
TEST(attention_properties, with_a_scale_of_zero_the_bias_alone_counts)
{
    static const sb_attention_options ways[] = {{.algorithm = SB_ATTENTION_COMPOSED},
                                                {.algorithm = SB_ATTENTION_TILED},
                                                {.score = SB_SCORE_BALANCED},
                                                {.score = SB_SCORE_COSINE},
                                                {.softcap = 3}};
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
        TAPE(SB_RECORD);
        sb_tensor *q = normal(1, SB_SHAPE(2, 5, 3, 4)), *k = normal(2, SB_SHAPE(2, 6, 3, 4)),
                  *v = normal(3, SB_SHAPE(2, 6, 3, 4)), *bias = normal(4, SB_SHAPE(3, 5, 6));
        sb_attention_options o = ways[way];
        o.mask = sb_mask_causal();
        o.bias = bias;
        o.scale = SB_ZERO;
        sb_tensor *y = sb_attention(q, k, v, &o);
        o = (sb_attention_options){.mask = o.mask, .bias = bias};
        sb_tensor *plain = sb_attention(sb_scale(q, 0), k, v, &o);
        expect_same_results(y, plain, bias);
        cr_expect(largest_of(sb_tensor_grad(q)) == 0 && largest_of(sb_tensor_grad(k)) == 0);
    }
}

TEST(attention_properties, masked_scores_alone_have_gradient_zero, MANY_CASES)
{
    enum { L = 280 };
    for (int run = 0; run < 4; run++) {
        bool causal = run % 2;
        sb_random random = sb_random_new(7, SB_STREAM_USER);
        TAPE(SB_RECORD);
        static uint8_t pairs[L * L];
        for (int64_t i = 0; i < L; i++)
            for (int64_t j = 0; j < L; j++)
                pairs[i * L + j] = causal ? j <= i : i && sb_random_uniform(&random) < 0.3;
        sb_tensor *seen = sb_tape_own(sb_tensor_from(SB_BOOL, SB_SHAPE(L, L), pairs));
        sb_tensor *x = normal(1, SB_SHAPE(L, 4)), *bias = normal(2, SB_SHAPE(L, L));
        sb_attention_options o = {.algorithm = run / 2 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED,
                                  .bias = bias};
        o.mask = causal ? sb_mask_causal() : sb_mask_allow(seen);
        sb_tensor *y = sb_attention(x, x, x, &o), *dy = normal(3, SB_SHAPE(L, 4));
        MUST(sb_backward_from(y, dy));
        const double *dbias = test_data(sb_tensor_grad(bias));
        for (int64_t e = 0; e < L * L; e++) {
            double gradient = fabs(dbias[e]);
            if (!pairs[e])
                cr_assert(gradient == 0, "run %d, blocked pair %d: %g", run, (int)e, gradient);
            else if (e > 0)
                cr_assert(gradient > 0, "run %d, pair %d: %g", run, (int)e, gradient);
        }
    }
}

/* An average lies between the smallest and the largest of its terms: the values of the kept
   keys. */
TEST(attention_properties, outputs_lie_within_the_range_of_the_values_seen)
{
    enum { L = 300, D = 3 };
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        TAPE(SB_NO_RECORD);
        sb_tensor *x = normal(1, SB_SHAPE(L, D)), *v = normal(2, SB_SHAPE(L, D));
        /* sharp weights, so that outputs come close to the ends of the range */
        sb_attention_options o = {.algorithm = a, .mask = sb_mask_causal(), .scale = 20};
        sb_tensor *y = sb_attention(x, x, v, &o);
        double low[D] = {INFINITY, INFINITY, INFINITY};
        double high[D] = {-INFINITY, -INFINITY, -INFINITY};
        const double *value = test_data(v), *got = test_data(y);
        for (int64_t e = 0; e < L * D; e++) {
            int64_t c = e % D;
            low[c] = fmin(low[c], value[e]);
            high[c] = fmax(high[c], value[e]);
            cr_assert(low[c] - 1e-15 <= got[e] && got[e] <= high[c] + 1e-15,
                      "%.17g is outside [%.17g, %.17g]", got[e], low[c], high[c]);
        }
    }
}

/* The variance of the scores of q, k ~ N(0, 1). Attention shows only differences of scores: those
   of keys 2j and 2j + 1, log w - log w', have twice the variance. With n queries and n keys the
   relative deviation is about sqrt(2/d (1/n + 1/n) + 4/n^2): 1.3 % for d = 64, n = 400. */
static double score_variance(int64_t d, sb_attention_options o)
{
    enum { N = 400 };
    TAPE(SB_RECORD);
    sb_tensor *q = normal(11, SB_SHAPE(N, d)), *k = normal(12, SB_SHAPE(N, d)), *weights;
    o.weights = o.algorithm == SB_ATTENTION_COMPOSED ? &weights : NULL;
    sb_tensor *y = sb_attention(q, k, k, &o);
    if (o.algorithm == SB_ATTENTION_TILED)
        weights = sb_attention_weights(y, 0, N);
    MUST(y && weights);
    const double *weight = test_data(weights);
    double sum = 0;
    for (int64_t e = 0; e < N * N; e += 2) {
        double difference = log(weight[e]) - log(weight[e + 1]);
        sum += difference * difference / 2;
    }
    return sum / (N * N / 2);
}

TEST(attention_properties, scores_have_variance_d_and_1_when_scaled, MANY_CASES)
{
    for (int run = test_brief(); run < 4; run += 1 + test_brief()) {
        int64_t d = run % 2 ? 64 : 128;
        sb_attention_options o = {.algorithm =
                                      run / 2 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED};
        double scaled = score_variance(d, o);
        o.scale = 1;
        double unscaled = score_variance(d, o);
        cr_expect(fabs(scaled - 1) < 0.06, "%g for d = %d", scaled, (int)d);
        cr_expect(fabs(unscaled / (double)d - 1) < 0.06, "%g for d = %d", unscaled, (int)d);
    }
}

TEST(attention_properties, cosines_of_random_directions_have_variance_1_over_d, MANY_CASES)
{
    for (int run = test_brief(); run < 4; run += 1 + test_brief()) {
        int64_t d = run % 2 ? 64 : 128;
        sb_attention_options o = {.algorithm = run / 2 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED,
                                  .score = SB_SCORE_COSINE};
        double variance = score_variance(d, o);
        cr_expect(fabs(variance * (double)d - 1) < 0.06, "%g for d = %d", variance, (int)d);
    }
}

/* E |dz/dq|^2 of a score z = scale q.k, each query with two keys of its own. v is the identity, so
   y shows both weights, and log y_0 - log y_1 = z_0 - z_1 has twice the squared gradient of one.
   The relative deviation of the mean is sqrt(1 / (N d)), 0.8 % for d = 32. */
static double squared_gradient(int64_t d, sb_attention_options o)
{
    enum { N = 500 };
    TAPE(SB_RECORD);
    sb_tensor *q = normal(21, SB_SHAPE(N, 1, d)), *k = normal(22, SB_SHAPE(N, 2, d));
    double identities[4 * N];
    for (int64_t e = 0; e < 4 * N; e++)
        identities[e] = e % 4 == 0 || e % 4 == 3;
    sb_tensor *v = sb_tape_own(sb_tensor_from(SB_F64, SB_SHAPE(N, 2, 2), identities));
    sb_tensor *sign = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(2), (double[]){1, -1}));
    sb_tensor *z = sb_multiply(sb_log(sb_attention(q, k, v, &o)), sign);
    MUST(sb_backward(sb_sum(z, SB_ALL, false)));
    return mean_square(sb_tensor_grad(q)) * (double)d / 2;
}

TEST(attention_properties, gradients_of_scores_have_squared_length_d_and_1_when_scaled, MANY_CASES)
{
    for (int run = test_brief(); run < 4; run += 1 + test_brief()) {
        int64_t d = run % 2 ? 32 : 64;
        sb_attention_options o = {.algorithm =
                                      run / 2 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED};
        double scaled = squared_gradient(d, o);
        o.scale = 1;
        double unscaled = squared_gradient(d, o);
        cr_expect(fabs(scaled - 1) < 0.04, "%g for d = %d", scaled, (int)d);
        cr_expect(fabs(unscaled / (double)d - 1) < 0.04, "%g for d = %d", unscaled, (int)d);
    }
}

/* Entry i, j of Sylvester's Hadamard matrix of n rows over sqrt n, which is orthogonal. */
static double hadamard(int64_t n, int64_t i, int64_t j)
{
    return (__builtin_popcountll((unsigned long long)(i & j)) % 2 ? -1 : 1) / sqrt((double)n);
}

/* Heads are independent here. The variance of 4800 numbers each has a deviation of 2 %. */
TEST(attention_properties, averaging_H_heads_leaves_1_over_H_of_the_variance_and_mixing_keeps_it)
{
    MANY_CASES;
    enum { B = 300, L = 2, H = 8, D = 16, C = H * D };
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        sb_attention_options o = {.algorithm = a};
        TAPE(SB_NO_RECORD);
        sb_tensor *q = normal(1, SB_SHAPE(B, L, H, D)), *k = normal(2, SB_SHAPE(B, L, H, D));
        sb_tensor *v = normal(3, SB_SHAPE(B, L, H, D)), *y = sb_attention(q, k, v, &o);
        static double matrix[C * C];
        for (int64_t e = 0; e < C * C; e++)
            matrix[e] = hadamard(C, e / C, e % C);
        sb_tensor *W_o = sb_tape_own(sb_tensor_from(SB_F64, SB_SHAPE(C, C), matrix));
        double heads = mean_square(y), average = mean_square(sb_mean(y, 2, false));
        double mixed = mean_square(sb_linear(sb_reshape(y, SB_SHAPE(B, L, C)), W_o, NULL));
        cr_expect(fabs(average / heads * H - 1) < 0.08, "%g of it", average / heads);
        cr_expect(fabs(mixed / heads - 1) < 1e-12, "%g of it", mixed / heads);
    }
}

TEST(attention_properties, heads_can_be_permuted_together_with_the_columns_of_W_o)
{
    enum { L = 9, H = 4, D = 3, C = H * D };
    const int64_t order[H] = {2, 0, 3, 1};
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        sb_attention_options o = {.algorithm = a};
        TAPE(SB_RECORD);
        sb_tensor *x[3], *moved[3], *W_o = normal(4, SB_SHAPE(C, H, D));
        for (int i = 0; i < 3; i++) {
            x[i] = normal((uint64_t)i, SB_SHAPE(1, L, H, D));
            moved[i] = reorder(x[i], 2, order);
        }
        sb_tensor *y = sb_reshape(sb_attention(x[0], x[1], x[2], &o), SB_SHAPE(L, C));
        sb_tensor *z = sb_reshape(sb_attention(moved[0], moved[1], moved[2], &o), SB_SHAPE(L, C));
        y = sb_linear(y, sb_reshape(W_o, SB_SHAPE(C, C)), NULL);
        z = sb_linear(z, sb_reshape(reorder(W_o, 1, order), SB_SHAPE(C, C)), NULL);
        expect_same_results(z, y, x[1]);
        cr_expect(largest_of(sb_tensor_grad(W_o)) < 1e-12);
    }
}

/* Attention with soft-capped scores, against loops over its formula. */

enum { B = 2, LQ = 3, LK = 5, H = 4, G = 2, D = 3, DV = 2 };

static const double cap = 1.25, T = 0.5;

struct operands {
    sb_tensor *q, *k, *v, *bias;
};

static struct operands operands_new(void)
{
    return (struct operands){
        test_leaf(SB_F64, 1, SB_SHAPE(B, LQ, H, D)), test_leaf(SB_F64, 2, SB_SHAPE(B, LK, G, D)),
        test_leaf(SB_F64, 3, SB_SHAPE(B, LK, G, DV)), test_leaf(SB_F64, 4, SB_SHAPE(H, LQ, LK))};
}

/* y[b, i, h] of the formula: query i keeps the keys 0..i + LK - LQ. */
static void reference_row(const struct operands *x, int b, int i, int h, double y[DV])
{
    double weight[LK], sum = 0;
    const int g = h / (H / G), last = i + LK - LQ;
    for (int j = 0; j <= last; j++) {
        double s = 0;
        for (int d = 0; d < D; d++)
            s += sb_tensor_get(x->q, ((b * LQ + i) * H + h) * D + d) *
                 sb_tensor_get(x->k, ((b * LK + j) * G + g) * D + d);
        s = cap * tanh(s / sqrt(D) / T / cap);
        weight[j] = exp(s + sb_tensor_get(x->bias, (h * LQ + i) * LK + j));
        sum += weight[j];
    }
    for (int d = 0; d < DV; d++) {
        y[d] = 0;
        for (int j = 0; j <= last; j++)
            y[d] += weight[j] / sum * sb_tensor_get(x->v, ((b * LK + j) * G + g) * DV + d);
    }
}

static sb_attention_options options_of(const struct operands *x)
{
    return (sb_attention_options){
        .bias = x->bias, .mask = sb_mask_causal_last(), .temperature = T, .softcap = cap};
}

TEST(attention_softcap, it_is_the_formula)
{
    TAPE(SB_NO_RECORD);
    const struct operands x = operands_new();
    sb_tensor *weights;
    sb_attention_options o = options_of(&x);
    o.weights = &weights;
    sb_tensor *y = MUST(sb_attention(x.q, x.k, x.v, &o));
    expect_shape(y, SB_SHAPE(B, LQ, H, DV));
    expect_shape(weights, SB_SHAPE(B, H, LQ, LK));
    for (int b = 0; b < B; b++)
        for (int i = 0; i < LQ; i++)
            for (int h = 0; h < H; h++) {
                double expected[DV];
                reference_row(&x, b, i, h, expected);
                for (int d = 0; d < DV; d++) {
                    const double got = sb_tensor_get(y, ((b * LQ + i) * H + h) * DV + d);
                    cr_expect(fabs(got - expected[d]) < 1e-13, "(%d, %d, %d, %d): %g, not %g", b, i,
                              h, d, got, expected[d]);
                }
            }
}

TEST(attention_softcap, the_layout_is_free)
{
    const int order[] = {0, 2, 1, 3};
    TAPE(SB_NO_RECORD);
    const struct operands x = operands_new();
    sb_attention_options o = options_of(&x);
    sb_tensor *y = sb_attention(x.q, x.k, x.v, &o);
    o.layout = SB_LAYOUT_HEADS_FIRST;
    sb_tensor *z = sb_attention(sb_permute(x.q, 4, order), sb_permute(x.k, 4, order),
                                sb_permute(x.v, 4, order), &o);
    MUST(y && z);
    cr_expect(test_relative(sb_permute(z, 4, order), y) < 1e-14);
}

TEST(attention_softcap, a_high_cap_changes_nothing)
{
    TAPE(SB_NO_RECORD);
    const struct operands x = operands_new();
    sb_attention_options o = options_of(&x);
    o.score = SB_SCORE_BALANCED;
    o.softcap = 1e6;
    sb_tensor *y = sb_attention(x.q, x.k, x.v, &o);
    o.softcap = 0;
    cr_expect(test_relative(y, sb_attention(x.q, x.k, x.v, &o)) < 1e-9, "%s", sb_error());
}

/* Padding: the last key is blocked for all queries. */
TEST(attention_softcap, a_nan_in_a_blocked_key_reaches_neither_results_nor_values)
{
    TAPE(SB_RECORD);
    const struct operands x = operands_new();
    sb_tensor_set(x.k, ((int64_t)LK - 1) * G * D, NAN); /* sequence 0, head 0 of the keys */
    sb_attention_options o = options_of(&x);
    o.mask = sb_mask_lengths(constant(SB_I32, SB_SHAPE(B), NUMBERS(LK - 1, LK - 1)));
    sb_tensor *y = sb_attention(x.q, x.k, x.v, &o);
    sb_tensor *loss = sb_sum(sb_multiply(y, y), SB_ALL, false);
    cr_expect(isfinite(sb_tensor_value(loss)));
    MUST(sb_backward(loss));
    for (int64_t i = 0; i < sb_tensor_size(x.k); i++)
        cr_assert(isfinite(sb_tensor_get(sb_tensor_grad(x.k), i)));
}

TEST(attention_softcap, with_a_cache_it_is_refused)
{
    FAILED_TAPE(SB_NO_RECORD);
    const struct operands x = operands_new();
    sb_kv_cache *cache = KEPT(sb_kv_cache_new());
    MUST(sb_kv_cache_append(cache, x.k, x.v));
    REFUSED("attention_cached: softcap is 2; it is not available with a cache",
            sb_attention_cached(x.q, cache, &(sb_attention_options){.softcap = 2}));
}

/* Masks in attention: blocked pairs have no effect, whatever their values are; NaN and infinities
   of kept pairs propagate. */

enum {
    MASKED_B = 2,
    L = 6,
    MASKED_H = 2,
    MASKED_D = 5,
    ROW = MASKED_H * MASKED_D,
    SEQUENCE = L * ROW
};

struct run {
    sb_tensor *q, *k, *v, *dy; /* (B, L, H, D) */
    sb_tensor *bias;           /* (H, L, L) */
    sb_tensor *y, *dq, *dk, *dv, *dbias;
};

static struct run run_new(sb_dtype dtype)
{
    struct run r = {0};
    r.q = test_leaf(dtype, 1, SB_SHAPE(MASKED_B, L, MASKED_H, MASKED_D));
    r.k = test_leaf(dtype, 2, SB_SHAPE(MASKED_B, L, MASKED_H, MASKED_D));
    r.v = test_leaf(dtype, 3, SB_SHAPE(MASKED_B, L, MASKED_H, MASKED_D));
    r.dy = test_leaf(dtype, 4, SB_SHAPE(MASKED_B, L, MASKED_H, MASKED_D));
    r.bias = test_leaf(dtype, 5, SB_SHAPE(MASKED_H, L, L));
    return r;
}

static sb_attention_algorithm algorithm = SB_ATTENTION_COMPOSED;

/* Attention and its gradients; the mask is made on the tape. */
static void run(struct run *r, sb_mask *(*mask)(void), bool biased, double dropout)
{
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_attention_options o = {.mask = mask(), .bias = biased ? r->bias : NULL, .dropout = dropout};
    o.algorithm = algorithm;
    r->y = retained(sb_keep(sb_attention(r->q, r->k, r->v, &o)));
    MUST(sb_backward_from(r->y, r->dy));
    r->dq = take_grad(r->q);
    r->dk = take_grad(r->k);
    r->dv = take_grad(r->v);
    r->dbias = take_grad(r->bias);
}

static void spoil_row(sb_tensor *x, int64_t b, int64_t l, double value)
{
    for (int64_t i = 0; i < ROW; i++)
        sb_tensor_set(x, b * SEQUENCE + l * ROW + i, value);
}

static bool row_is(const sb_tensor *x, int64_t b, int64_t l, double value)
{
    for (int64_t i = 0; i < ROW; i++)
        if (sb_tensor_get(x, b * SEQUENCE + l * ROW + i) != value)
            return false;
    return true;
}

static bool row_is_nan(const sb_tensor *x, int64_t b, int64_t l)
{
    for (int64_t i = 0; i < ROW; i++)
        if (!isnan(sb_tensor_get(x, b * SEQUENCE + l * ROW + i)))
            return false;
    return true;
}

/* Whether two rows are equal up to rounding. */
static bool row_same(const sb_tensor *x, const sb_tensor *y, int64_t b, int64_t l)
{
    for (int64_t i = b * SEQUENCE + l * ROW; i < b * SEQUENCE + l * ROW + ROW; i++)
        if (!(fabs(sb_tensor_get(x, i) - sb_tensor_get(y, i)) <= 1e-5))
            return false;
    return true;
}

static sb_mask *pairs(const double *allowed)
{
    return sb_mask_allow(sb_tape_own(sb_tensor_from_doubles(SB_BOOL, SB_SHAPE(L, L), allowed)));
}

static sb_mask *four_keys(void)
{
    sb_tensor *lengths = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(MASKED_B), 4));
    return sb_mask_lengths(lengths);
}

static sb_mask *four_keys_dense(void)
{
    const double allowed[] = {1, 1, 1, 1, 0, 0};
    return sb_mask_allow(sb_tape_own(sb_tensor_from_doubles(SB_BOOL, SB_SHAPE(L), allowed)));
}

/* Queries 0..2 attend to the keys 0..2 only, the others to all. */
static sb_mask *two_groups(void)
{
    const double allowed[L * L] = {1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0,
                                   0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1};
    return pairs(allowed);
}

static sb_mask *no_query_2(void)
{
    double allowed[L * L];
    for (int i = 0; i < L * L; i++)
        allowed[i] = i / L != 2;
    return pairs(allowed);
}

/* Each check in both dtypes, with each set of kernels, by both algorithms, with and without a bias
   and dropout. */
static void in_all_ways(void (*check)(sb_dtype dtype, bool biased, double dropout))
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (int way = 0; way < 8; way++) {
            algorithm = way / 4 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED;
            check(SB_F32, way % 2, way / 2 % 2 * 0.5);
            check(SB_F64, way % 2, way / 2 % 2 * 0.5);
        }
}

static void check_padding(sb_dtype dtype, sb_mask *(*mask)(void), double value, bool biased,
                          double dropout)
{
    struct run clean = run_new(dtype), spoiled = run_new(dtype);
    for (int64_t l = 4; l < L; l++) {
        spoil_row(spoiled.k, 1, l, value);
        spoil_row(spoiled.v, 1, l, value);
    }
    run(&clean, mask, biased, dropout);
    run(&spoiled, mask, biased, dropout);
    for (int64_t l = 0; l < L; l++) {
        cr_expect(row_same(spoiled.y, clean.y, 1, l) && row_same(spoiled.dq, clean.dq, 1, l) &&
                      row_same(spoiled.dk, clean.dk, 1, l) && row_same(spoiled.dv, clean.dv, 1, l),
                  "row %d", (int)l);
        cr_expect(l < 4 || (row_is(spoiled.dk, 1, l, 0) && row_is(spoiled.dv, 1, l, 0)));
    }
    cr_expect(!biased || test_relative(spoiled.dbias, clean.dbias) < 1e-5);
}

static void check_all_padding(sb_dtype dtype, bool biased, double dropout)
{
    const double values[] = {NAN, INFINITY, -INFINITY, 1e30};
    for (int i = 0; i < 4; i++) {
        check_padding(dtype, four_keys, values[i], biased, dropout);
        check_padding(dtype, four_keys_dense, values[i], biased, dropout);
    }
}

TEST(attention_mask, padding_has_no_effect, KNOWN_KERNELS)
{
    in_all_ways(check_all_padding);
}

/* Key 4 and its value are NaN: the group that attends to it is NaN, the other is unchanged. */
static void check_groups(sb_dtype dtype, bool biased, double dropout)
{
    struct run clean = run_new(dtype), spoiled = run_new(dtype);
    spoil_row(spoiled.k, 0, 4, NAN);
    spoil_row(spoiled.v, 0, 4, NAN);
    run(&clean, two_groups, biased, dropout);
    run(&spoiled, two_groups, biased, dropout);
    for (int64_t l = 0; l < L; l++) {
        if (l >= 3) {
            cr_expect(row_is_nan(spoiled.y, 0, l) && row_is_nan(spoiled.dq, 0, l) &&
                      row_is_nan(spoiled.dk, 0, l) && row_is_nan(spoiled.dv, 0, l));
            continue;
        }
        cr_expect(row_same(spoiled.y, clean.y, 0, l) && row_same(spoiled.dq, clean.dq, 0, l) &&
                      row_same(spoiled.dk, clean.dk, 0, l) && row_same(spoiled.dv, clean.dv, 0, l),
                  "row %d", (int)l);
        cr_expect(row_same(spoiled.y, clean.y, 1, l) && row_same(spoiled.dk, clean.dk, 1, l));
    }
}

TEST(attention_mask, nan_reaches_only_queries_that_attend_to_it)
{
    in_all_ways(check_groups);
}

/* In a causal mask a NaN in the last key and value reaches the last query alone. */
static void check_causal(sb_dtype dtype, bool biased, double dropout)
{
    for (int which = 0; which < 2; which++) {
        struct run clean = run_new(dtype), spoiled = run_new(dtype);
        spoil_row(which ? spoiled.v : spoiled.k, 0, L - 1, NAN);
        run(&clean, sb_mask_causal, biased, 0);
        run(&spoiled, sb_mask_causal, biased, 0);
        for (int64_t l = 0; l < L - 1; l++)
            cr_expect(row_same(spoiled.y, clean.y, 0, l) && row_same(spoiled.dq, clean.dq, 0, l));
        cr_expect(row_is_nan(spoiled.y, 0, L - 1) && row_is_nan(spoiled.dq, 0, L - 1));
    }
    (void)dropout;
}

TEST(attention_mask, nan_in_the_last_key_reaches_only_the_last_query)
{
    in_all_ways(check_causal);
}

/* Query 2 is fully masked: whatever q and dy are there, y and dq are 0, and it adds nothing to the
   other gradients. */
static void check_masked_query(sb_dtype dtype, bool biased, double dropout)
{
    struct run clean = run_new(dtype), spoiled = run_new(dtype);
    spoil_row(clean.q, 0, 2, 0);
    spoil_row(clean.dy, 0, 2, 0);
    spoil_row(spoiled.q, 0, 2, NAN);
    spoil_row(spoiled.dy, 0, 2, INFINITY);
    run(&clean, no_query_2, biased, dropout);
    run(&spoiled, no_query_2, biased, dropout);
    cr_expect(row_is(spoiled.y, 0, 2, 0) && row_is(spoiled.dq, 0, 2, 0));
    cr_expect(row_is(spoiled.y, 1, 2, 0) && row_is(spoiled.dq, 1, 2, 0));
    for (int64_t l = 0; l < L; l++)
        cr_expect(row_same(spoiled.y, clean.y, 0, l) && row_same(spoiled.dq, clean.dq, 0, l) &&
                      row_same(spoiled.dk, clean.dk, 0, l) && row_same(spoiled.dv, clean.dv, 0, l),
                  "row %d", (int)l);
    for (int64_t h = 0; biased && h < MASKED_H; h++)
        for (int64_t j = 0; j < L; j++)
            cr_expect(sb_tensor_get(spoiled.dbias, (h * L + 2) * L + j) == 0);
}

TEST(attention_mask, a_query_without_keys_is_zero_and_passes_no_gradient)
{
    in_all_ways(check_masked_query);
}

static sb_mask *no_keys(void)
{
    sb_tensor *lengths = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(MASKED_B)));
    return sb_mask_lengths(lengths);
}

static bool is_zero(const sb_tensor *x)
{
    for (int64_t i = 0; i < sb_tensor_size(x); i++)
        if (sb_tensor_get(x, i) != 0)
            return false;
    return true;
}

static void check_masked_batch(sb_dtype dtype, bool biased, double dropout)
{
    struct run r = run_new(dtype);
    for (int64_t l = 0; l < L; l++) {
        spoil_row(r.q, 0, l, NAN);
        spoil_row(r.k, 0, l, NAN);
        spoil_row(r.v, 0, l, INFINITY);
        spoil_row(r.dy, 0, l, NAN);
    }
    run(&r, no_keys, biased, dropout);
    cr_expect(is_zero(r.y) && is_zero(r.dq) && is_zero(r.dk) && is_zero(r.dv));
    cr_expect(!biased || is_zero(r.dbias));
}

TEST(attention_mask, sequences_of_length_zero_give_zeros)
{
    in_all_ways(check_masked_batch);
}

static sb_mask *no_mask(void)
{
    return NULL;
}

/* Without a mask, NaN in any of q, k, v propagates, even from a value whose weight rounds to 0. */
static void check_visible(sb_dtype dtype, bool biased, double dropout)
{
    for (int which = 0; which < 3; which++)
        for (int masked = 0; masked < 2; masked++) {
            struct run r = run_new(dtype);
            spoil_row(which == 0 ? r.q : which == 1 ? r.k : r.v, 0, 1, NAN);
            run(&r, masked ? four_keys : no_mask, biased, 0);
            cr_expect(row_is_nan(r.y, 0, 1));
            cr_expect(row_is_nan(r.y, 0, 3) == (which > 0));
            cr_expect(row_same(r.y, r.y, 1, 1), "a NaN of sequence 0 reaches sequence 1");
        }
    for (int masked = 0; masked < 2; masked++) {
        struct run r = run_new(dtype);
        for (int64_t i = 0; i < ROW; i++) {
            sb_tensor_set(r.q, i, 1);
            for (int64_t l = 0; l < L; l++)
                sb_tensor_set(r.k, l * ROW + i, l == 1 ? -2000 : 1);
        }
        spoil_row(r.v, 0, 1, NAN);
        run(&r, masked ? four_keys : no_mask, false, 0);
        cr_expect(row_is_nan(r.y, 0, 0), "a weight that rounds to 0 hides a NaN");
    }
    (void)dropout;
}

TEST(attention_mask, nan_in_a_kept_pair_always_propagates, KNOWN_KERNELS)
{
    in_all_ways(check_visible);
}

/* The same on a tape that does not record, which uses other matrix products. */
TEST(attention_mask, the_same_holds_without_recording)
{
    enum kernel_set usual = kernel_cpu_set();
    for (int way = 0; way < 2 * (KERNELS_CPU_V4 + 1); way++) {
        if (!test_kernel_set((enum kernel_set)(way / 2)))
            continue;
        struct run r = run_new(SB_F32);
        spoil_row(r.k, 0, L - 1, NAN);
        spoil_row(r.v, 0, L - 1, NAN);
        TAPE(SB_NO_RECORD);
        sb_attention_options o = {.mask = sb_mask_causal()};
        o.algorithm = way % 2 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED;
        sb_tensor *y = sb_attention(r.q, r.k, r.v, &o);
        for (int64_t l = 0; l < L; l++)
            cr_expect(row_is_nan(y, 0, l) == (l == L - 1) && row_same(y, y, 0, l) == (l < L - 1));
        o.mask = no_keys();
        cr_expect(is_zero(sb_attention(r.q, r.k, r.v, &o)));
    }
    kernel_use_cpu_set(usual);
}
