/* Additive, multiplicative and cosine attention, compared with hand-worked numbers and with plain
   loops over their formulas; and their gradients. */
#include "tests/support/test.h"
#include <stdio.h>

enum { B = 2, LQ = 3, LK = 4, DQ = 3, DK = 2, DV = 2, A = 5 };

enum kind { ADDITIVE, ADDITIVE_BIASED, MULTIPLICATIVE, COSINE, KINDS };

static const char *const names[KINDS] = {"additive", "additive with bias", "multiplicative",
                                         "cosine"};

/* An attention of any kind, and its inputs. */
struct attention {
    enum kind kind;
    sb_parameters *weights;
    sb_additive_attention additive;
    sb_multiplicative_attention multiplicative;
    sb_cosine_attention cosine;
    sb_tensor *q, *k, *v, *lengths, *allowed;
    bool masked;
};

static bool init(struct attention *a, const char *name, int64_t Dq, int64_t Dk, double dropout)
{
    if (a->kind == MULTIPLICATIVE)
        return sb_multiplicative_attention_init(&a->multiplicative, a->weights, name, Dq, Dk,
                                                dropout);
    if (a->kind == COSINE)
        return sb_cosine_attention_init(&a->cosine, a->weights, name, 0.4, dropout);
    return sb_additive_attention_init(&a->additive, a->weights, name, Dq, Dk, A,
                                      a->kind == ADDITIVE_BIASED, dropout);
}

static sb_tensor *forward(const struct attention *a, sb_tensor *q, sb_tensor *k, sb_tensor *v,
                          sb_mask *mask, sb_tensor **weights)
{
    if (a->kind == MULTIPLICATIVE)
        return sb_multiplicative_attention_forward(&a->multiplicative, q, k, v, mask, weights);
    if (a->kind == COSINE)
        return sb_cosine_attention_forward(&a->cosine, q, k, v, mask, weights);
    return sb_additive_attention_forward(&a->additive, q, k, v, mask, weights);
}

static struct attention attention_new(enum kind kind, double dropout)
{
    struct attention a = {.kind = kind, .weights = KEPT(sb_parameters_of(SB_F64, 1))};
    const int64_t Dk = kind == COSINE ? DQ : DK;
    a.q = test_leaf(SB_F64, 2, SB_SHAPE(B, LQ, DQ));
    a.k = test_leaf(SB_F64, 3, SB_SHAPE(B, LK, Dk));
    a.v = test_leaf(SB_F64, 4, SB_SHAPE(B, LK, DV));
    a.lengths = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(B), (const int32_t[]){3, 2}));
    a.allowed = KEPT(sb_tensor_from_doubles(SB_BOOL, SB_SHAPE(LQ, 1), (double[]){1, 0, 1}));
    MUST(init(&a, "attend", DQ, Dk, dropout));
    for (int64_t i = 0; i < sb_parameters_count(a.weights);
         i++) { /* replaces a bias of 0, which hides mistakes */
        sb_tensor *w = sb_parameters_get(a.weights, i);
        for (int64_t n = 0; n < sb_tensor_size(w); n++)
            sb_tensor_set(w, n, sb_tensor_get(w, n) + 0.3 * sin((double)(17 * i + 5 * n + 1)));
    }
    return a;
}

/* Lengths, and a second query that is fully masked. */
static sb_mask *mask_of(const struct attention *a)
{
    return a->masked ? sb_mask_and(sb_mask_lengths(a->lengths), sb_mask_allow(a->allowed)) : NULL;
}

/* Runs one query against three keys, whose values are 7, 14 and 21, and expects weights. */
static void expect_weights(const struct attention *a, const sb_tensor *q, const sb_tensor *k,
                           const double expected[3])
{
    sb_tensor *weights = NULL, *v = owned(SB_F64, SB_SHAPE(1, 3, 1), (double[]){7, 14, 21});
    sb_tensor *y = forward(a, (sb_tensor *)q, (sb_tensor *)k, v, NULL, &weights);
    cr_assert(y && weights, "%s: %s", names[a->kind], sb_error());
    cr_assert(sb_tensor_rank(y) == 3 && sb_tensor_size(y) == 1);
    cr_assert(sb_tensor_rank(weights) == 4 && sb_tensor_dim(weights, 3) == 3);
    double sum = 0;
    for (int j = 0; j < 3; j++) {
        cr_expect(fabs(sb_tensor_get(weights, j) - expected[j]) < 1e-15,
                  "%s: weight %d is %.17g, not %g", names[a->kind], j, sb_tensor_get(weights, j),
                  expected[j]);
        sum += 7 * (j + 1) * expected[j];
    }
    cr_expect(fabs(sb_tensor_value(y) - sum) < 1e-14);
}

static void put_all(sb_tensor *t, const double *values)
{
    MUST(sb_tensor_write(t, values));
}

static const double LN2 = 0.6931471805599453, LN3 = 1.0986122886681098;

/* tanh(ln 3 / 2) = (3 - 1) / (3 + 1) = 1/2. With W_q q = (ln 3 / 2, 0) and W_k k_j = (0, 0),
   (-ln 3 / 2, ln 3 / 2) and (-ln 3, 0), t_j is (1/2, 0), (0, 1/2) and (-1/2, 0); w = (2, 4) ln 2
   makes the scores ln 2, ln 4 and -ln 2, and the weights those of 4 : 8 : 1. */
TEST(learned_score, additive_attention_gives_the_hand_worked_weights)
{
    struct attention a = {.kind = ADDITIVE, .weights = KEPT(sb_parameters_of(SB_F64, 1))};
    cr_assert(sb_additive_attention_init(&a.additive, a.weights, "", 1, 2, 2, false, 0));
    put_all(a.additive.query.weight, (double[]){0.5, 0});
    put_all(a.additive.key.weight, (double[]){-1, 0, 0, 1});
    put_all(a.additive.score.weight, (double[]){2 * LN2, 4 * LN2});
    TAPE(SB_RECORD);
    const double keys[] = {0, 0, LN3 / 2, LN3 / 2, LN3, 0};
    expect_weights(&a, owned(SB_F64, SB_SHAPE(1, 1, 1), &LN3),
                   owned(SB_F64, SB_SHAPE(1, 3, 2), keys),
                   (double[]){4 / 13.0, 8 / 13.0, 1 / 13.0});
}

/* W = (1 2; 0 1) makes W q = (5, 2) of q = (1, 2), and W' q would be (1, 4). Against the keys
   (0, 0), (ln 2, -2 ln 2) and (0, ln 2) the scores are 0, ln 2 and 2 ln 2. */
TEST(learned_score, multiplicative_attention_gives_the_hand_worked_weights)
{
    struct attention a = {.kind = MULTIPLICATIVE, .weights = KEPT(sb_parameters_of(SB_F64, 1))};
    cr_assert(sb_multiplicative_attention_init(&a.multiplicative, a.weights, "", 2, 2, 0));
    put_all(a.multiplicative.query.weight, (double[]){1, 2, 0, 1});
    TAPE(SB_RECORD);
    expect_weights(&a, owned(SB_F64, SB_SHAPE(1, 1, 2), (double[]){1, 2}),
                   owned(SB_F64, SB_SHAPE(1, 3, 2), (double[]){0, 0, LN2, -2 * LN2, 0, LN2}),
                   (double[]){1 / 7.0, 2 / 7.0, 4 / 7.0});
}

/* Cosines of 1, 0 and -1, for any lengths, over T = 1 / ln 2: the weights are as 4 : 2 : 1. */
TEST(learned_score, cosine_attention_gives_the_hand_worked_weights)
{
    struct attention a = {.kind = COSINE, .weights = KEPT(sb_parameters_of(SB_F64, 1))};
    cr_assert(sb_cosine_attention_init(&a.cosine, a.weights, "", 1 / LN2, 0));
    cr_expect(fabs(sb_tensor_value(a.cosine.log_temperature) + log(LN2)) < 1e-15);
    TAPE(SB_RECORD);
    expect_weights(&a, owned(SB_F64, SB_SHAPE(1, 1, 2), (double[]){3, 0}),
                   owned(SB_F64, SB_SHAPE(1, 3, 2), (double[]){5, 0, 0, 2, -0.25, 0}),
                   (double[]){4 / 7.0, 2 / 7.0, 1 / 7.0});
}

static double element(const sb_tensor *t, int64_t i, int64_t j)
{
    return sb_tensor_get(t, i * sb_tensor_dim(t, -1) + j);
}

/* The score of query i and key j, rows of all sequences, by the formulas. */
static double score_of(const struct attention *a, int64_t i, int64_t j)
{
    double s = 0, qq = 0, kk = 0;
    const sb_tensor *W = a->multiplicative.query.weight, *Wq = a->additive.query.weight;
    const sb_tensor *bias = a->additive.query.bias;
    for (int d = 0; a->kind == COSINE && d < DQ; d++) {
        s += element(a->q, i, d) * element(a->k, j, d);
        qq += element(a->q, i, d) * element(a->q, i, d);
        kk += element(a->k, j, d) * element(a->k, j, d);
    }
    if (a->kind == COSINE)
        return s / sqrt(qq * kk) / exp(sb_tensor_value(a->cosine.log_temperature));
    for (int x = 0; a->kind == MULTIPLICATIVE && x < DK; x++)
        for (int y = 0; y < DQ; y++)
            s += element(a->k, j, x) * element(W, x, y) * element(a->q, i, y);
    for (int h = 0; a->kind <= ADDITIVE_BIASED && h < A; h++) {
        double u = bias ? sb_tensor_get(bias, h) : 0;
        for (int d = 0; d < DQ; d++)
            u += element(Wq, h, d) * element(a->q, i, d);
        for (int d = 0; d < DK; d++)
            u += element(a->additive.key.weight, h, d) * element(a->k, j, d);
        s += sb_tensor_get(a->additive.score.weight, h) * tanh(u);
    }
    return s;
}

/* Fills y (B, LQ, DV) and weights (B, LQ, LK) by plain loops; keys of a query are kept from 0 on.
 */
static void loops(const struct attention *a, double *y, double *weights)
{
    memset(y, 0, sizeof(double[B * LQ * DV]));
    memset(weights, 0, sizeof(double[B * LQ * LK]));
    for (int64_t row = 0; row < B * LQ; row++) {
        const int64_t b = row / LQ, seen = !a->masked      ? LK
                                           : row % LQ == 1 ? 0
                                                           : (int64_t)sb_tensor_get(a->lengths, b);
        double sum = 0;
        for (int64_t j = 0; j < seen; j++)
            sum += weights[row * LK + j] = exp(score_of(a, row, b * LK + j));
        for (int64_t j = 0; j < seen; j++)
            for (int d = 0; d < DV; d++)
                y[row * DV + d] += weights[row * LK + j] / sum * element(a->v, b * LK + j, d);
        for (int64_t j = 0; j < seen; j++)
            weights[row * LK + j] /= sum;
    }
}

TEST(learned_score, each_follows_its_formula)
{
    for (int n = 0; n < 2 * KINDS; n++) {
        struct attention a = attention_new((enum kind)(n / 2), 0);
        double y[B * LQ * DV], weights[B * LQ * LK];
        a.masked = n % 2;
        loops(&a, y, weights);
        TAPE(SB_NO_RECORD);
        sb_tensor *found = NULL, *got = forward(&a, a.q, a.k, a.v, mask_of(&a), &found);
        cr_assert(got, "%s: %s", names[a.kind], sb_error());
        double error = test_relative(got, owned(SB_F64, SB_SHAPE(B, LQ, DV), y));
        cr_expect(error < 1e-14, "%s: y differs by %g", names[a.kind], error);
        error = test_relative(found, owned(SB_F64, SB_SHAPE(B, 1, LQ, LK), weights));
        cr_expect(error < 1e-14, "%s: the weights differ by %g", names[a.kind], error);
    }
}

/* A loss of both y and the weights. */
static sb_tensor *run_both(void *context, sb_tensor *const x[])
{
    struct attention *a = context;
    sb_tensor *weights = NULL, *y = forward(a, x[0], x[1], x[2], mask_of(a), &weights);
    return sb_matmul_tn(sb_reshape(weights, SB_SHAPE(B, LQ, LK)), y);
}

static void expect_gradients(struct attention *a, sb_random *random)
{
    enum { MOST = 8 };
    sb_tensor *inputs[MOST] = {a->q, a->k, a->v};
    const int n = (int)sb_parameters_count(a->weights);
    cr_assert(n + 3 <= MOST);
    for (int i = 0; i < n; i++)
        inputs[3 + i] = sb_parameters_get(a->weights, i);
    const sb_gradcheck_options options = {.random = random};
    sb_gradcheck_result result;
    cr_expect(sb_gradcheck(run_both, a, inputs, 3 + n, &options, &result), "%s: %s", names[a->kind],
              sb_error());
    cr_expect(result.error <= 1e-6, "%s: %g", names[a->kind], result.error);
}

TEST(learned_score, each_has_the_right_gradient, DIFFERENCES)
{
    static const int counts[KINDS] = {3, 4, 1, 1};
    for (int n = 0; n < 4 * KINDS; n++) {
        const double dropout = n % 4 < 2 ? 0 : 0.4;
        struct attention a = attention_new((enum kind)(n / 4), dropout);
        sb_random random = sb_random_new(7, SB_STREAM_TRAIN);
        a.masked = n % 2;
        cr_expect(sb_parameters_count(a.weights) == counts[a.kind]);
        expect_gradients(&a, dropout > 0 ? &random : NULL);
    }
}

/* Dropout changes nearly all outputs. */
TEST(learned_score, dropout_acts_on_the_weights_if_the_tape_has_a_stream)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct attention a = attention_new((enum kind)kind, 0.5);
        sb_random random = sb_random_new(7, SB_STREAM_TRAIN);
        TAPE(SB_NO_RECORD);
        sb_tensor *weights[2], *plain = forward(&a, a.q, a.k, a.v, NULL, &weights[0]);
        sb_tape_random(&tape, &random);
        sb_tensor *dropped = forward(&a, a.q, a.k, a.v, NULL, &weights[1]);
        MUST(plain && dropped);
        cr_expect(test_relative(plain, dropped) > 0.01, "%s", names[kind]);
        cr_expect(test_relative(weights[0], weights[1]) == 0, "%s", names[kind]);
    }
}

struct results {
    sb_tensor *y, *dq, *dk, *dv, *weights;
};

static struct results run(const struct attention *a)
{
    struct results r = {0};
    TAPE(SB_RECORD);
    sb_tensor *y = sb_keep(forward(a, a->q, a->k, a->v, mask_of(a), &r.weights));
    r.y = KEPT(sb_tensor_retain(y));
    KEPT(sb_tensor_retain(sb_keep(r.weights)));
    cr_assert(sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)), "%s: %s", names[a->kind],
              sb_error());
    r.dq = take_grad(a->q);
    r.dk = take_grad(a->k);
    r.dv = take_grad(a->v);
    return r;
}

static void expect_row(const char *name, const sb_tensor *t, int64_t row, double value)
{
    for (int64_t c = 0; c < sb_tensor_dim(t, -1); c++)
        cr_expect(element(t, row, c) == value, "%s: row %lld has %g", name, (long long)row,
                  element(t, row, c));
}

TEST(learned_score, a_query_without_keys_gets_zeros_and_passes_no_gradient)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct attention a = attention_new((enum kind)kind, 0);
        a.masked = true;
        for (int b = 0; b < B; b++) /* any value has no effect */
            for (int d = 0; d < DQ; d++)
                sb_tensor_set(a.q, (b * LQ + 1) * DQ + d, d ? NAN : INFINITY);
        struct results r = run(&a);
        for (int b = 0; b < B; b++) {
            expect_row("y", r.y, b * LQ + 1, 0);
            expect_row("weights", r.weights, b * LQ + 1, 0);
            expect_row("dq", r.dq, b * LQ + 1, 0);
            cr_expect(element(r.y, b * LQ, 0) != 0 && element(r.dq, b * LQ, 0) != 0);
        }
        for (int64_t i = 0; i < sb_parameters_count(a.weights); i++) {
            const sb_tensor *grad = sb_tensor_grad(sb_parameters_get(a.weights, i));
            for (int64_t e = 0; e < sb_tensor_size(grad); e++)
                cr_assert(isfinite(sb_tensor_get(grad, e)), "%s of %s",
                          sb_parameters_name(a.weights, i), names[kind]);
        }
    }
}

/* Asserts that the rows up to the sequence's length are the same. */
static void expect_kept(const char *name, const struct attention *a, const sb_tensor *x,
                        const sb_tensor *y)
{
    for (int b = 0; b < B; b++)
        for (int64_t j = 0; j < (int64_t)sb_tensor_get(a->lengths, b); j++)
            for (int64_t c = 0; c < sb_tensor_dim(x, -1); c++)
                cr_expect(element(x, b * LK + j, c) == element(y, b * LK + j, c), "%s of %s", name,
                          names[a->kind]);
}

TEST(learned_score, nan_in_blocked_keys_and_values_does_not_leak)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct attention a = attention_new((enum kind)kind, 0);
        a.masked = true;
        struct results clean = run(&a);
        for (int b = 0; b < B; b++)
            for (int64_t j = (int64_t)sb_tensor_get(a.lengths, b); j < LK; j++) {
                for (int64_t d = 0; d < sb_tensor_dim(a.k, 2); d++)
                    sb_tensor_set(a.k, (b * LK + j) * sb_tensor_dim(a.k, 2) + d, NAN);
                for (int d = 0; d < DV; d++)
                    sb_tensor_set(a.v, (b * LK + j) * DV + d, NAN);
            }
        struct results r = run(&a);
        cr_expect(test_relative(r.y, clean.y) == 0, "%s: y", names[kind]);
        cr_expect(test_relative(r.weights, clean.weights) == 0, "%s: weights", names[kind]);
        cr_expect(test_relative(r.dq, clean.dq) == 0, "%s: dq", names[kind]);
        cr_expect(test_relative(r.dv, clean.dv) == 0, "%s: dv", names[kind]);
        expect_kept("dk", &a, r.dk, clean.dk);
    }
}

TEST(learned_score, nan_in_a_kept_key_propagates)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct attention a = attention_new((enum kind)kind, 0);
        a.masked = true;
        sb_tensor_set(a.k, 0, NAN);
        struct results r = run(&a);
        cr_expect(isnan(element(r.y, 0, 0)) && isnan(element(r.y, 2, 1)), "%s", names[kind]);
        cr_expect(!isnan(element(r.y, LQ, 0)), "%s: the NaN reaches another sequence", names[kind]);
    }
}

/* ln(a_ij / a_i0) = s_ij - s_i0, for weights a: whether these change sign (-1), or stay (1), if q
   and k become -q and -k. */
static void expect_parity(enum kind kind, double sign, bool expected)
{
    struct attention a = attention_new(kind, 0);
    TAPE(SB_NO_RECORD);
    sb_tensor *weights[2];
    sb_tensor *y = forward(&a, a.q, a.k, a.v, NULL, &weights[0]);
    y = MUST(y ? forward(&a, sb_negate(a.q), sb_negate(a.k), a.v, NULL, &weights[1]) : y);
    double worst = 0;
    for (int64_t row = 0; row < B * LQ; row++)
        for (int64_t j = 1; j < LK; j++) {
            double s[2];
            for (int i = 0; i < 2; i++)
                s[i] = log(element(weights[i], row, j) / element(weights[i], row, 0));
            worst = fmax(worst, fabs(s[1] - sign * s[0]));
        }
    cr_expect((worst < 1e-13) == expected, "%s, sign %g: %g", names[kind], sign, worst);
}

TEST(learned_score, the_additive_score_is_odd_without_bias_and_the_others_are_even)
{
    expect_parity(ADDITIVE, -1, true);
    expect_parity(ADDITIVE_BIASED, -1, false);
    expect_parity(MULTIPLICATIVE, 1, true);
    expect_parity(COSINE, 1, true);
    expect_parity(ADDITIVE, 1, false);
}

/* Adam trains the temperature alone, towards the first key's value: sharp weights get sharper. */
TEST(learned_score, the_temperature_learns_and_stays_positive)
{
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 1));
    sb_cosine_attention layer;
    MUST(sb_cosine_attention_init(&layer, set, "attend", 0, 0));
    cr_expect(fabs(exp(sb_tensor_value(layer.log_temperature)) - 0.1) < 1e-15);
    cr_expect(strcmp(sb_parameters_name(set, 0), "attend.log_temperature") == 0);
    sb_optimiser *adam = KEPT(sb_adam_new(set, &(sb_optimiser_options){.learning_rate = 0.5}));
    double first = 0, last = 0;
    for (int step = 0; step < 40; step++) {
        TAPE(SB_RECORD);
        sb_tensor *q = owned(SB_F64, SB_SHAPE(1, 1, 2), (double[]){1, 0});
        sb_tensor *k = owned(SB_F64, SB_SHAPE(1, 2, 2), (double[]){1, 0, 0.8, 0.6});
        sb_tensor *v = owned(SB_F64, SB_SHAPE(1, 2, 1), (double[]){0, 1});
        sb_tensor *loss =
            sb_sum(sb_cosine_attention_forward(&layer, q, k, v, NULL, NULL), SB_ALL, false);
        MUST(sb_backward(loss) && sb_optimiser_step(adam));
        last = sb_tensor_value(loss);
        first = step == 0 ? last : first;
    }
    cr_expect(last < 1e-3 * first && last > 0, "%g to %g", first, last);
    cr_expect(exp(sb_tensor_value(layer.log_temperature)) > 0);
}

static bool train_step(void *context)
{
    struct attention *a = context;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *weights = NULL, *y = forward(a, a->q, a->k, a->v, mask_of(a), &weights);
    bool ok = sb_backward(sb_sum(y, SB_ALL, false));
    sb_tensor_clear_grad(a->q);
    sb_tensor_clear_grad(a->k);
    sb_tensor_clear_grad(a->v);
    sb_parameters_clear(a->weights);
    return sb_tape_end(&tape) && ok;
}

TEST(learned_score, any_allocation_may_fail)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct attention a = attention_new((enum kind)kind, 0);
        a.masked = true;
        cr_expect(test_each_allocation_fails(train_step, &a) > 5);
    }
}

#define LEAF(...) test_leaf(SB_F64, 1, SB_SHAPE(__VA_ARGS__))

TEST(learned_score, wrong_operands_are_named)
{
    static const char *const who[KINDS] = {"additive_attention", "additive_attention",
                                           "multiplicative_attention", "cosine_attention"};
    for (int kind = 0; kind < KINDS; kind++) {
        struct attention a = attention_new((enum kind)kind, 0);
        const int64_t Dk = kind == COSINE ? DQ : DK;
        char message[160];
        sb_tensor *weights = a.q;
#define EXPECT(text, q, k, v)                                                                      \
    snprintf(message, sizeof message, "%s: %s", who[kind], text);                                  \
    REFUSED_ON_TAPE(SB_RECORD, message, forward(&a, q, k, v, NULL, &weights))
        EXPECT("q is NULL", NULL, a.k, a.v);
        cr_expect(!weights);
        EXPECT("k is NULL", a.q, NULL, a.v);
        EXPECT("v is NULL", a.q, a.k, NULL);
        EXPECT("q is (3, 3); it must be (batch, length, size)", LEAF(LQ, DQ), a.k, a.v);
        EXPECT("v is (2, 4, 1, 2); it must be (batch, length, size)", a.q, a.k, LEAF(B, LK, 1, DV));
        EXPECT("q is (2, 3, 5); its last axis must be 3", LEAF(B, LQ, 5), a.k, a.v);
        EXPECT("q is (1, 3, 3), k is", LEAF(1, LQ, DQ), a.k, a.v);
        EXPECT("q is (2, 3, 3), k is (1, ", a.q, LEAF(1, LK, Dk), a.v);
        EXPECT("q is (2, 3, 3), k is (2, ", a.q, a.k, LEAF(1, LK, DV));
        EXPECT("k is (2, 5, ", a.q, LEAF(B, 5, Dk), a.v);
#undef EXPECT
        if (kind != COSINE)
            REFUSED_ON_TAPE(SB_RECORD, "k is (2, 4, 3); its last axis must be 2",
                            forward(&a, a.q, LEAF(B, LK, 3), a.v, NULL, NULL));
        REFUSED_ON_TAPE(
            SB_RECORD, "mask",
            forward(&a, a.q, a.k, a.v,
                    sb_mask_allow(sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(LQ, LK + 1)))),
                    NULL));
        REFUSED("no tape is open", forward(&a, a.q, a.k, a.v, NULL, &weights));
    }
}
