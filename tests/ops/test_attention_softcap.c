/* Attention with soft-capped scores, against loops over its formula. */
#include "ops/kv_cache.h"
#include "tests/support/values.h"

enum { B = 2, LQ = 3, LK = 5, H = 4, G = 2, D = 3, DV = 2 };

static const double cap = 1.25, T = 0.5;

struct operands {
    sb_tensor *q, *k, *v, *bias;
};

static struct operands operands_new(void)
{
    return (struct operands){sb_tape_own(test_leaf(SB_F64, 1, SB_SHAPE(B, LQ, H, D))),
                             sb_tape_own(test_leaf(SB_F64, 2, SB_SHAPE(B, LK, G, D))),
                             sb_tape_own(test_leaf(SB_F64, 3, SB_SHAPE(B, LK, G, DV))),
                             sb_tape_own(test_leaf(SB_F64, 4, SB_SHAPE(H, LQ, LK)))};
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
    sb_tensor *y = sb_attention(x.q, x.k, x.v, &o);
    cr_assert(y, "%s", sb_error());
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
    cr_assert(y && z, "%s", sb_error());
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
    cr_assert(sb_backward(loss), "%s", sb_error());
    for (int64_t i = 0; i < sb_tensor_size(x.k); i++)
        cr_assert(isfinite(sb_tensor_get(sb_tensor_grad(x.k), i)));
}

TEST(attention_softcap, with_a_cache_it_is_refused)
{
    FAILED_TAPE(SB_NO_RECORD);
    const struct operands x = operands_new();
    sb_kv_cache *cache = sb_kv_cache_new();
    cr_assert(sb_kv_cache_append(cache, x.k, x.v), "%s", sb_error());
    cr_expect(!sb_attention_cached(x.q, cache, &(sb_attention_options){.softcap = 2}));
    EXPECT_ERROR("attention_cached: softcap is 2; it is not available with a cache");
    sb_kv_cache_free(cache);
}
