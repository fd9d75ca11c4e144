/* Claims about scores: softmax, scaling, temperature. */
#include "teach/explain/claims.h"
#include "teach/explain/row.h"
#include "teach/explain/width.h"
#include "tensor/mathematics.h"

static const double example[] = {20, 22, 18, 21};

static bool forward(double temperature, double a[])
{
    struct row row = row_of(4, example);
    row.temperature = temperature;
    return row_forward(&row, a);
}

/* The largest of |a_i - claimed_i|. */
static double farthest(const double a[], const double claimed[])
{
    double most = 0;
    for (int i = 0; i < 4; i++)
        most = fmax(most, fabs(a[i] - claimed[i]));
    return most;
}

static bool plain_example(struct measured *m)
{
    static const double claimed[] = {0.018, 0.731, 0.002, 0.249};
    double a[EXPLAIN_NUMBERS] = {0};
    bool ok = forward(1, a);
    return conclude(m, ok, farthest(a, claimed) < 0.001, false, "(%.4f, %.4f, %.4f, %.4f)", a[0],
                    a[1], a[2], a[3]);
}

static bool scaled_example(struct measured *m)
{
    static const double claimed[] = {0.227, 0.249, 0.210, 0.314};
    double a[EXPLAIN_NUMBERS] = {0};
    bool ok = forward(sqrt(512), a);
    return conclude(m, ok, farthest(a, claimed) < 0.001, false,
                    "(%.4f, %.4f, %.4f, %.4f). The statement even ranks 21 above 22.", a[0], a[1],
                    a[2], a[3]);
}

static bool saturation(struct measured *m)
{
    double raw[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS], scaled[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS];
    struct row row = row_of(4, example);
    bool ok = row_jacobian(&row, raw);
    row.temperature = sqrt(512);
    ok = ok && row_jacobian(&row, scaled);
    double before = ok ? row_norm(4, raw) : 0, by_raw = ok ? row_norm(4, scaled) : 1;
    double after = by_raw * row.temperature;
    return conclude(
        m, ok, after > 2 * before, false,
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

const struct claim claims_of_scores[] = {
    {"softmax(20, 22, 18, 21) = (.018, .731, .002, .249)", plain_example},
    {"over sqrt 512 it is (.227, .249, .210, .314)", scaled_example},
    {"that example shows how scaling cures saturation", saturation},
    {"without scaling the gradients vanish", vanishing},
    {"entropy strictly rises with the temperature", entropy_rises},
    {NULL, NULL}};
