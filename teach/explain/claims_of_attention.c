/* Claims about what attention computes. */
#include "autograd/tape.h"
#include "nn/learned_score.h"
#include "ops/ops.h"
#include "teach/explain/claims.h"
#include "teach/explain/row.h"
#include <math.h>

static double variance(sb_tensor *x)
{
    return sb_tensor_value(sb_mean(sb_multiply(x, x), SB_ALL, false));
}

enum { HEADS = 16, DRAWS = 16 };

/* Outputs of 16 heads, of unit variance: the variance of their average, and of what W_o makes of
   all together. */
static bool draw_heads(uint64_t seed, double *average, double *projected)
{
    enum { D = 16, ROWS = 64 };
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    sb_parameters *set = sb_parameters_of(SB_F64, seed);
    const sb_initial initial = {SB_INITIAL_XAVIER, 0};
    const int64_t wide = HEADS * D;
    sb_tensor *weight = set ? sb_parameters_add(set, "W_o", SB_SHAPE(wide, wide), initial) : NULL;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *heads = normal_numbers(&random, SB_SHAPE(ROWS, HEADS, D));
    *average = variance(sb_mean(heads, 1, false));
    sb_tensor *joined = sb_reshape(heads, 2, (const int64_t[]){ROWS, wide});
    *projected = variance(sb_linear(joined, weight, NULL));
    const bool ok = sb_tape_end(&tape);
    sb_parameters_free(set);
    return ok;
}

static bool head_variance(struct measured *m)
{
    double average[DRAWS], projected[DRAWS], average_error, projected_error;
    for (int i = 0; i < DRAWS; i++)
        if (!draw_heads((uint64_t)i + 1, &average[i], &projected[i]))
            return false;
    const double of_mean = row_mean(DRAWS, average, &average_error);
    const double of_all = row_mean(DRAWS, projected, &projected_error);
    return conclude(
        m, true, of_all < 0.5, false,
        "16 heads of variance 1: their mean has variance %.4f +- %.4f, but heads are not "
        "averaged; concatenated and projected by W_o they have %.3f +- %.3f (mean and standard "
        "error of %d draws).",
        of_mean, average_error, of_all, projected_error, DRAWS);
}

/* max |s(-q, -k) + s(q, k)| of additive scores, less their mean over the keys: softmax sees only
   differences. The logarithms of the weights are the scores up to such a shift. */
static bool oddness(bool bias, double *worst)
{
    enum { L = 4, SIZE = 3 };
    sb_random random = sb_random_new(2, SB_STREAM_USER);
    sb_parameters *set = sb_parameters_of(SB_F64, 2);
    sb_additive_attention layer;
    bool ok = set && sb_additive_attention_init(&layer, set, "a", SIZE, SIZE, 8, bias, 0);
    double a[2][L] = {{0}}, mean[2] = {0};
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    for (int64_t i = 0; ok && bias && i < 8; i++)
        sb_tensor_set(layer.query.bias, i, sb_random_normal(&random));
    sb_tensor *q = normal_numbers(&random, SB_SHAPE(1, 1, SIZE)),
              *k = normal_numbers(&random, SB_SHAPE(1, L, SIZE));
    for (int i = 0; ok && i < 2; i++) {
        sb_tensor *weights = NULL;
        ok = sb_additive_attention_forward(&layer, q, k, k, NULL, &weights) &&
             sb_tensor_read(sb_log(weights), a[i]);
        for (int j = 0; j < L; j++)
            mean[i] += a[i][j] / L;
        q = sb_negate(q);
        k = sb_negate(k);
    }
    ok = sb_tape_end(&tape) && ok;
    sb_parameters_free(set);
    *worst = 0;
    for (int j = 0; j < L; j++)
        *worst = fmax(*worst, fabs(a[0][j] - mean[0] + a[1][j] - mean[1]));
    *worst = *worst < 1e-12 ? 0 : *worst;
    return ok;
}

static bool additive(struct measured *m)
{
    double without, with;
    if (!oddness(false, &without) || !oddness(true, &with))
        return false;
    return conclude(
        m, true, without == 0 && with == 0, without == 0,
        "s(-q, -k) + s(q, k), compared between keys: %.2g without a bias, up to %.2g with one.",
        without, with);
}

/* Rows of x (L, D) in another order. */
static sb_tensor *reordered(sb_tensor *x, const int32_t order[], int64_t L)
{
    return sb_embedding(x, sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(L), order)));
}

/* max |a - b|, 0 where rounding explains it. */
static double difference(sb_tensor *a, sb_tensor *b)
{
    sb_tensor *d = sb_subtract(a, b);
    double most = sb_tensor_value(sb_max(sb_sqrt(sb_multiply(d, d)), SB_ALL, false));
    return most < 1e-12 ? 0 : most;
}

static bool permutation(struct measured *m)
{
    enum { L = 5, D = 4 };
    static const int32_t order[L] = {3, 0, 4, 1, 2};
    sb_random random = sb_random_new(4, SB_STREAM_USER);
    const int64_t dim[] = {L, D};
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *q = normal_numbers(&random, 2, dim), *k = normal_numbers(&random, 2, dim);
    sb_tensor *v = normal_numbers(&random, 2, dim), *y = sb_attention(q, k, v, NULL);
    sb_tensor *moved = sb_attention(reordered(q, order, L), k, v, NULL);
    double changed = difference(y, moved), equivariant = difference(reordered(y, order, L), moved);
    double joint =
        difference(y, sb_attention(q, reordered(k, order, L), reordered(v, order, L), NULL));
    bool ok = sb_tape_end(&tape);
    return conclude(
        m, ok, joint == 0 && changed == 0, joint == 0,
        "Permuted keys and values change the output by %.2g. Permuted queries change it by "
        "%.2g, since outputs are permuted with them (%.2g apart): it is equivariant.",
        joint, changed, equivariant);
}

/* One attention with linear maps around it: the scores of x are w (x c_j - c_j^2 / 2), largest at
   the nearest of the centres c, and the values sin c. Returns max |attention(x) - sin x| on -3
   .. 3. */
static double interpolation_error(void)
{
    enum { ROWS = 61, CENTRES = 96 };
    const double sharp = 512;
    double x[2 * ROWS], k[2 * CENTRES], v[CENTRES], y[ROWS], most = 0;
    for (int i = 0; i < ROWS; i++) {
        x[2 * i] = -3 + 0.1 * i;
        x[2 * i + 1] = 1;
    }
    for (int j = 0; j < CENTRES; j++) {
        const double centre = -3.2 + 6.4 * j / (CENTRES - 1);
        k[2 * j] = sharp * centre;
        k[2 * j + 1] = -sharp * centre * centre / 2;
        v[j] = sin(centre);
    }
    sb_tensor *q = constant_of(SB_F64, SB_SHAPE(ROWS, 2), x);
    sb_tensor *keys = constant_of(SB_F64, SB_SHAPE(CENTRES, 2), k);
    sb_tensor *values = constant_of(SB_F64, SB_SHAPE(CENTRES, 1), v);
    const sb_attention_options raw = {.temperature = sqrt(0.5)}; /* no division by sqrt 2 */
    sb_tensor *result = sb_attention(q, keys, values, &raw);
    if (!result || !sb_tensor_read(result, y))
        return NAN;
    for (int i = 0; i < ROWS; i++)
        most = fmax(most, fabs(y[i] - sin(x[2 * i])));
    return most;
}

static bool approximation(struct measured *m)
{
    enum { L = 64, D = 8 };
    sb_random random = sb_random_new(6, SB_STREAM_USER);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *q = sb_scale(normal_numbers(&random, SB_SHAPE(L, D)), 10);
    sb_tensor *k = normal_numbers(&random, SB_SHAPE(L, D)),
              *v = normal_numbers(&random, SB_SHAPE(L, 1));
    sb_tensor *y = sb_attention(q, k, v, NULL);
    double top = sb_tensor_value(sb_max(y, SB_ALL, false));
    double low = -sb_tensor_value(sb_max(sb_negate(y), SB_ALL, false));
    double largest = sb_tensor_value(sb_max(v, SB_ALL, false));
    double least = -sb_tensor_value(sb_max(sb_negate(v), SB_ALL, false));
    double error = interpolation_error();
    bool ok = sb_tape_end(&tape) && error >= 0;
    return conclude(
        m, ok, top > largest || low < least, error < 0.01,
        "With values given, no: outputs are their weighted means, %.2f..%.2f for values in "
        "%.2f..%.2f. With linear maps that make keys and values, yes (arXiv 2504.19901): here 96 "
        "keys give sin x up to %.1g. To tell positions apart, it needs their encodings.",
        low, top, least, largest, error);
}

/* The best case: one key like q, nine opposite. */
static bool cosine(struct measured *m)
{
    enum { K = 10, D = 4 };
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *q = sb_tape_own(sb_tensor_full(SB_F64, SB_SHAPE(1, D), 3));
    sb_tensor *k = sb_tape_own(sb_tensor_full(SB_F64, SB_SHAPE(K, D), -3));
    for (int64_t i = 0; k && i < D; i++)
        sb_tensor_set(k, i, 3);
    sb_tensor *weights = NULL;
    const sb_attention_options options = {
        .score = SB_SCORE_COSINE, .weights = &weights, .algorithm = SB_ATTENTION_COMPOSED};
    double most = sb_attention(q, k, k, &options) ? sb_tensor_get(weights, 0) : 0;
    bool ok = sb_tape_end(&tape);
    return conclude(
        m, ok, most > 0.9, false,
        "With temperature 1 and 10 keys, the largest possible weight is %.3f: it cannot select "
        "one key. It needs a temperature, fixed or learned.",
        most);
}

const struct claim claims_of_attention[] = {
    {"H heads cut the variance by H", head_variance},
    {"additive attention is odd: s(-q, -k) = -s(q, k)", additive},
    {"attention is permutation-invariant", permutation},
    {"attention alone approximates any function", approximation},
    {"cosine attention needs no temperature", cosine},
    {NULL, NULL}};
