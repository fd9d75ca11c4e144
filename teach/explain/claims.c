/* softback explain claims: common statements about attention, each measured on the spot. */
#include "autograd/tape.h"
#include "nn/attention.h"
#include "nn/learned_score.h"
#include "ops/kv_cache.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include "tensor/mathematics.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct measured {
    char text[320];
    const char *verdict;
};

struct claim {
    const char *says;
    /* On an open tape, which does not record; false when it cannot be computed. */
    bool (*measure)(struct measured *measured);
};

/* Fills in what was measured, and the verdict: true where the claim holds, else "depends" where
   it holds in part. Returns ok. */
SB_PRINTF(5, 6)
static bool conclude(struct measured *measured, bool ok, bool holds, bool partly,
                     const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(measured->text, sizeof measured->text, format, values);
    va_end(values);
    measured->verdict = holds ? "true" : partly ? "depends" : "false";
    return ok;
}

/* ---- scores: softmax, scaling, temperature ---- */

static const double example[] = {20, 22, 18, 21};

/* The weights at a temperature, against those that a text claims. */
static bool weights_at(struct measured *m, double temperature, const double claimed[],
                       const char *more)
{
    double a[EXPLAIN_NUMBERS] = {0}, off = 0;
    struct row row = row_of(4, example);
    row.temperature = temperature;
    const bool ok = row_forward(&row, a);
    for (int i = 0; i < 4; i++)
        off = fmax(off, fabs(a[i] - claimed[i]));
    return conclude(m, ok, off < 0.001, false, "(%.4f, %.4f, %.4f, %.4f)%s", a[0], a[1], a[2], a[3],
                    more);
}

static bool plain_example(struct measured *m)
{
    return weights_at(m, 1, (const double[]){0.018, 0.731, 0.002, 0.249}, "");
}

static bool scaled_example(struct measured *m)
{
    return weights_at(m, sqrt(512), (const double[]){0.227, 0.249, 0.210, 0.314},
                      ". The statement even ranks 21 above 22.");
}

static bool saturation(struct measured *m)
{
    double J[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS];
    struct row raw = row_of(4, example), scaled = raw;
    scaled.temperature = sqrt(512);
    const double before = row_jacobian(&raw, J) ? row_norm(4, J) : (double)NAN,
                 by_raw = row_jacobian(&scaled, J) ? row_norm(4, J) : (double)NAN,
                 after = by_raw * scaled.temperature;
    return conclude(
        m, !isnan(before + by_raw), after > 2 * before, false,
        "||J|| goes only from %.3f to %.3f. With respect to the raw scores, the division even "
        "makes it %.0f times smaller.",
        before, after, before / by_raw);
}

static bool vanishing(struct measured *m)
{
    struct width_measured raw = {0}, scaled = {0};
    bool ok = width_measure(256, 1, &raw) && width_measure(256, 1.0 / 16, &scaled);
    return conclude(
        m, ok, raw.gradient<scaled.gradient, raw.saturated> 0.1,
        "10 random keys, d = 256: %.0f +- %.0f %% of raw rows are saturated, and no scaled ones; "
        "but the mean |dq| is %.2f +- %.2f raw and %.2f +- %.2f scaled, since the remaining rows "
        "have large gradients.",
        100 * raw.saturated, 100 * raw.saturated_error, raw.gradient, raw.gradient_error,
        scaled.gradient, scaled.gradient_error);
}

static bool entropy_at(const struct row *row, double T, double *entropy)
{
    double a[EXPLAIN_NUMBERS];
    struct row at = *row;
    at.temperature = T;
    bool ok = row_forward(&at, a);
    *entropy = ok ? row_entropy(row->n, a) : 0;
    return ok;
}

/* dH/dT, which is the variance of the scores under a, over T^3. */
static bool entropy_slope(const struct row *row, double T, double *slope, double *predicted)
{
    const double h = 1e-4;
    double plus, minus, a[EXPLAIN_NUMBERS], mean = 0, square = 0;
    struct row at = *row;
    at.temperature = T;
    bool ok =
        entropy_at(row, T + h, &plus) && entropy_at(row, T - h, &minus) && row_forward(&at, a);
    for (int i = 0; ok && i < row->n; i++) {
        mean += a[i] * row->s[i];
        square += a[i] * row->s[i] * row->s[i];
    }
    *slope = ok ? (plus - minus) / (2 * h) : 0;
    *predicted = (square - mean * mean) / (T * T * T);
    return ok;
}

static bool entropy_rises(struct measured *m)
{
    static const double same[] = {1, 1, 1, 1}, differ[] = {2, 1, 0.1, -1};
    struct row equal = row_of(4, same), other = row_of(4, differ);
    double flat, none, slope, predicted;
    bool ok =
        entropy_slope(&equal, 2, &flat, &none) && entropy_slope(&other, 2, &slope, &predicted);
    if (!ok)
        return false;
    flat = fabs(flat) < 1e-9 ? 0 : flat;
    return conclude(
        m, true, slope > 0 && flat > 0, slope > 0,
        "Scores 2, 1, 0.1, -1 at T = 2: dH/dT = %.4f, and Var(s)/T^3 = %.4f, which is never "
        "negative. Equal scores: %.0f.",
        slope, predicted, flat);
}

/* ---- masks; naive ways are written here on purpose ---- */

enum { N = 4 };

static sb_tensor *constant(const double values[N])
{
    return constant_of(SB_F32, SB_SHAPE(1, N), values);
}

static int count_nan(const double a[N])
{
    int n = 0;
    for (int i = 0; i < N; i++)
        n += isnan(a[i]);
    return n;
}

/* The sum scores + (1 - M)(-inf), before any softmax. */
static bool product(struct measured *m)
{
    double s[N] = {0};
    sb_tensor *kept = constant((const double[]){1, 1, 0, 0});
    sb_tensor *blocked = sb_subtract(constant((const double[]){1, 1, 1, 1}), kept);
    sb_tensor *y = sb_add(constant((const double[]){2, 1, 0.1, -1}), sb_scale(blocked, -INFINITY));
    const bool ok = y && sb_tensor_read(y, s);
    return conclude(
        m, ok, count_nan(s) == 0, false,
        "Of 2 kept and 2 blocked scores, %d become NaN: the kept ones, where 1 - M is 0 and "
        "0 (-inf) is NaN.",
        count_nan(s));
}

static bool weights_with(double blocked, bool any, double a[N])
{
    const double bias[N] = {any ? 0 : blocked, any ? 0 : blocked, blocked, blocked};
    sb_tensor *y = naive_softmax(sb_add(constant((const double[]){2, 1, 0.1, -1}), constant(bias)));
    return y && sb_tensor_read(y, a);
}

static bool large_number(struct measured *m)
{
    double finite[N], infinite[N], empty[N];
    if (!weights_with(-1e9, true, finite) || !weights_with(-INFINITY, true, infinite) ||
        !weights_with(-1e9, false, empty))
        return false;
    bool same = memcmp(finite, infinite, sizeof finite) == 0;
    return conclude(
        m, true, same && empty[0] == 0, same,
        "In a row with kept keys, %s. In a fully masked row every weight is %.2f: in float32, "
        "2 - 1e9 = -1e9 absorbs the score.",
        same ? "the weights are the same to the bit" : "the weights differ", empty[0]);
}

/* What nan_to_num does: zero in the place of each NaN. */
static sb_tensor *without_nan(sb_tensor *x)
{
    double values[N] = {0};
    if (x)
        sb_tensor_read(x, values);
    for (int i = 0; i < N; i++)
        values[i] = isnan(values[i]) ? 0 : values[i];
    return constant(values);
}

static bool nan_to_num(struct measured *m)
{
    double empty[N] = {0}, broken[N] = {0}, honest[N] = {0};
    const double none[N] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, bad[N] = {2, NAN, 1, 0};
    sb_tensor *mended = without_nan(naive_softmax(constant(none)));
    sb_tensor *hidden = without_nan(naive_softmax(constant(bad)));
    sb_tensor *shown = sb_masked_softmax(constant(bad), sb_mask_window(N, N), 1);
    const bool ok = shown && sb_tensor_read(mended, empty) && sb_tensor_read(hidden, broken) &&
                    sb_tensor_read(shown, honest);
    return conclude(
        m, ok, count_nan(empty) == 0 && count_nan(broken) > 0, count_nan(empty) == 0,
        "A fully masked row becomes %.0f. But so does a row with a NaN in its data: %d NaN "
        "are left of it, where sb_masked_softmax shows %d.",
        empty[0], count_nan(broken), count_nan(honest));
}

/* ---- what attention computes ---- */

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
    sb_tensor *q = normal_numbers(&random, 2, dim), *k = normal_numbers(&random, 2, dim);
    sb_tensor *v = normal_numbers(&random, 2, dim), *y = sb_attention(q, k, v, NULL);
    sb_tensor *moved = sb_attention(reordered(q, order, L), k, v, NULL);
    double changed = difference(y, moved), equivariant = difference(reordered(y, order, L), moved);
    double joint =
        difference(y, sb_attention(q, reordered(k, order, L), reordered(v, order, L), NULL));
    return conclude(
        m, true, joint == 0 && changed == 0, joint == 0,
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
    sb_tensor *q = sb_scale(normal_numbers(&random, SB_SHAPE(L, D)), 10);
    sb_tensor *k = normal_numbers(&random, SB_SHAPE(L, D)),
              *v = normal_numbers(&random, SB_SHAPE(L, 1));
    sb_tensor *y = sb_attention(q, k, v, NULL);
    double top = sb_tensor_value(sb_max(y, SB_ALL, false));
    double low = -sb_tensor_value(sb_max(sb_negate(y), SB_ALL, false));
    double largest = sb_tensor_value(sb_max(v, SB_ALL, false));
    double least = -sb_tensor_value(sb_max(sb_negate(v), SB_ALL, false));
    double error = interpolation_error();
    return conclude(
        m, error >= 0, top > largest || low < least, error < 0.01,
        "With values given, no: outputs are their weighted means, %.2f..%.2f for values in "
        "%.2f..%.2f. With linear maps that make keys and values, yes (arXiv 2504.19901): here 96 "
        "keys give sin x up to %.1g. To tell positions apart, it needs their encodings.",
        low, top, least, largest, error);
}

/* The best case: one key like q, nine opposite. */
static bool cosine(struct measured *m)
{
    enum { K = 10, D = 4 };
    sb_tensor *q = sb_tape_own(sb_tensor_full(SB_F64, SB_SHAPE(1, D), 3));
    sb_tensor *k = sb_tape_own(sb_tensor_full(SB_F64, SB_SHAPE(K, D), -3));
    for (int64_t i = 0; k && i < D; i++)
        sb_tensor_set(k, i, 3);
    sb_tensor *weights = NULL;
    const sb_attention_options options = {
        .score = SB_SCORE_COSINE, .weights = &weights, .algorithm = SB_ATTENTION_COMPOSED};
    double most = sb_attention(q, k, k, &options) ? sb_tensor_get(weights, 0) : 0;
    return conclude(
        m, true, most > 0.9, false,
        "With temperature 1 and 10 keys, the largest possible weight is %.3f: it cannot select "
        "one key. It needs a temperature, fixed or learned.",
        most);
}

/* ---- work and memory, counted from the objects that the library makes ---- */

/* Multiply-adds of a cached step: one for each weight of the projections, and one for each number
   of keys and values that it reads. */
static bool cached_step(struct measured *m)
{
    enum { T = 1024, C = 256 };
    const sb_transformer_options options = {.width = C, .heads = 4, .key_heads = 4};
    sb_parameters *set = sb_parameters_new(1);
    sb_multi_head_attention layer;
    bool ok = set && sb_multi_head_attention_init(&layer, set, "a", &options, false);
    sb_kv_cache *cache = sb_kv_cache_new();
    double projections = 0, read = 0;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *memory = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(1, T, C)));
    const sb_attending attending = {.cache = cache};
    ok = ok && cache && sb_multi_head_attention_forward(&layer, memory, memory, &attending);
    if (ok) {
        const sb_tensor *weights[] = {layer.query.weight, layer.key.weight, layer.value.weight,
                                      layer.output.weight};
        for (int i = 0; i < 4; i++)
            projections += (double)sb_tensor_size(weights[i]);
        read = 2.0 * (double)sb_kv_cache_length(cache) * C;
    }
    ok = sb_tape_end(&tape) && ok;
    sb_kv_cache_free(cache);
    sb_parameters_free(set);
    double share = ok ? 100 * read / (read + projections) : 0;
    return conclude(
        m, ok, share <= 1, true,
        "Only the cost of the projections is constant. With %d positions of width %d in the "
        "cache, attention over them is %.0f %% of the multiply-adds of one attention layer's step, "
        "without its feed-forward layer: %.0f of %.0f.",
        T, C, share, read, read + projections);
}

static sb_tensor *zeros(int64_t rows, int64_t C)
{
    return sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(rows, C)));
}

/* Bytes that are live behind n queries over n keys, made in some chunks, beyond those before. */
static bool held_bytes(int64_t n, int chunks, sb_mode mode, sb_attention_algorithm algorithm,
                       int64_t *held, int64_t *peak)
{
    enum { C = 16 };
    sb_tape tape;
    sb_tape_begin(&tape, mode);
    sb_tensor *q = sb_tensor_requires_grad(zeros(n, C)), *k = zeros(n, C), *v = zeros(n, C);
    const sb_attention_options options = {.algorithm = algorithm};
    sb_device_reset_peak(sb_device_in_use());
    int64_t before = sb_device_memory(sb_device_in_use()).live_bytes;
    bool ok = v != NULL;
    for (int i = 0; ok && i < chunks; i++) {
        sb_tape inner;
        if (mode == SB_NO_RECORD)
            sb_tape_begin(&inner, mode);
        sb_tensor *part = sb_slice(q, 0, i * n / chunks, n / chunks);
        ok = sb_attention(part, k, v, &options) != NULL;
        if (mode == SB_NO_RECORD)
            ok = sb_tape_end(&inner) && ok;
    }
    sb_memory memory = sb_device_memory(sb_device_in_use());
    *held = memory.live_bytes - before;
    *peak = memory.peak_bytes - before;
    return sb_tape_end(&tape) && ok;
}

static bool chunks(struct measured *m)
{
    int64_t whole, parts, peak, whole_peak, parts_peak;
    bool ok = held_bytes(512, 1, SB_RECORD, SB_ATTENTION_COMPOSED, &whole, &peak) &&
              held_bytes(512, 8, SB_RECORD, SB_ATTENTION_COMPOSED, &parts, &peak) &&
              held_bytes(512, 1, SB_NO_RECORD, SB_ATTENTION_COMPOSED, &peak, &whole_peak) &&
              held_bytes(512, 8, SB_NO_RECORD, SB_ATTENTION_COMPOSED, &peak, &parts_peak);
    if (!ok)
        return false;
    double recorded = (double)parts / (double)whole, free = (double)parts_peak / (double)whole_peak;
    return conclude(
        m, true, recorded < 0.9, free < 0.9,
        "512 queries in 8 chunks take %.1f times the memory while recording, since backward keeps "
        "the weights of every chunk; without recording %.1f times.",
        recorded, free);
}

/* What each further query takes with tiles, and how often they must read the keys. What a thread
   needs for its own tile is in both lengths, and cancels. */
static bool flash(struct measured *m)
{
    int64_t held, small, large, stored_small, stored_large;
    bool ok = held_bytes(1024, 1, SB_NO_RECORD, SB_ATTENTION_TILED, &held, &small) &&
              held_bytes(2048, 1, SB_NO_RECORD, SB_ATTENTION_TILED, &held, &large) &&
              held_bytes(1024, 1, SB_NO_RECORD, SB_ATTENTION_COMPOSED, &held, &stored_small) &&
              held_bytes(2048, 1, SB_NO_RECORD, SB_ATTENTION_COMPOSED, &held, &stored_large);
    if (!ok)
        return false;
    const double n = 2048, d = 64, fast = 16384; /* M numbers of fast memory, 64 KiB of float32 */
    double tiles = (double)(large - small) / 1024;
    double stored = (double)(stored_large - stored_small) / 1024;
    return conclude(
        m, true, n * d / fast <= 1, tiles < stored / 10,
        "From 1024 to 2048 queries and keys, each takes %.0f bytes more with tiles, its output "
        "and two numbers; %.0f with stored weights. But each block of queries reads all keys "
        "and values again: n^2 d^2 / M = %.0f times n d at n = %.0f, d = %.0f, M = %.0f.",
        tiles, stored, n * d / fast, n, d, fast);
}

/* ---- the page ---- */

static const struct {
    const char *name, *heading;
    struct claim claims[6]; /* an entry without a text ends them */
} lists[] = {{"scores",
              "SCORES  Softmax, the division by sqrt d, and the temperature.",
              {{"softmax(20, 22, 18, 21) = (.018, .731, .002, .249)", plain_example},
               {"over sqrt 512 it is (.227, .249, .210, .314)", scaled_example},
               {"that example shows how scaling cures saturation", saturation},
               {"without scaling the gradients vanish", vanishing},
               {"entropy strictly rises with the temperature", entropy_rises}}},
             {"masks",
              "MASKS  Ways to block keys.",
              {{"S + (1 - M)(-inf) masks", product},
               {"adding -1e9 equals adding -inf", large_number},
               {"nan_to_num repairs fully masked rows", nan_to_num}}},
             {"attention",
              "ATTENTION  Heads, and what attention can compute.",
              {{"H heads cut the variance by H", head_variance},
               {"additive attention is odd: s(-q, -k) = -s(q, k)", additive},
               {"attention is permutation-invariant", permutation},
               {"attention alone approximates any function", approximation},
               {"cosine attention needs no temperature", cosine}}},
             {"cost",
              "COST  Work and memory.",
              {{"with a cache a decoding step costs the same at any length", cached_step},
               {"flash attention reads Q, K and V once", flash},
               {"computing in chunks saves memory", chunks}}}};
enum { LISTS = sizeof lists / sizeof lists[0] };

static void write(struct page *page, const struct explain_options *o)
{
    (void)o;
    page_title(page, "common statements, measured");
    page_text(
        page,
        "Common statements about SCORES, MASKS, ATTENTION and COST. The library measures each "
        "one now; what it finds stands below the statement, and the verdict in the margin. "
        "\"depends\": true under a condition that the statement leaves out.");
    for (int l = 0; l < LISTS; l++) {
        page_text(page, "%s", lists[l].heading);
        page_table(page, lists[l].name, "verdict | statement | measured");
        page_records(page);
        for (const struct claim *claim = lists[l].claims; claim->says; claim++) {
            struct measured measured = {0};
            sb_tape tape;
            sb_tape_begin(&tape, SB_NO_RECORD);
            page_need(page, !page->failed && claim->measure(&measured));
            page_need(page, sb_tape_end(&tape));
            PAGE_ROW(page, cell_word(measured.verdict), cell_word(claim->says),
                     cell_word(measured.text));
        }
    }
}

const struct topic topic_claims = {
    "claims", "common statements about attention, each measured on the spot", 0, NULL, write};
