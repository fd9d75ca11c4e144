/* Whether jacobian_length is the length of J, and what score_factor does to rows of random scores.
 */
#include "lesson.h"
#include <math.h>

enum { N = 4, KEYS = 10, ROWS = 2048, MOST = 1024 };
static const double saturated_below = 0.01;

/* ||J|| by all n^2 entries. */
static double by_entries(int n, const double *a)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            sum += a[i] * ((i == j) - a[j]) * a[i] * ((i == j) - a[j]);
    return sqrt(sum);
}

static void test_length(void)
{
    static const double rows[][N] = {
        {0, 0, 0, 0}, {2, 1, 0, -1}, {20, 22, 18, 21}, {9, 0, 0, 0}, {20, 0, 0, 0}};
    for (int r = 0; r < 5; r++) {
        double a[N], squares = 0, diagonal = 0;
        true_softmax(N, rows[r], a);
        const double right = by_entries(N, a), yours = jacobian_length(N, a);
        for (int i = 0; i < N; i++) {
            squares += a[i] * a[i];
            diagonal += pow(a[i] * (1 - a[i]), 2);
        }
        if (holds(fabs(yours - right) < 1e-7, /* of a rounding error of 1e-16, the root is 1e-8 */
                  "the length of J for scores %g %g %g %g is %.4f: yours is %.4f", rows[r][0],
                  rows[r][1], rows[r][2], rows[r][3], right, shown(yours)))
            continue;
        if (isnan(yours))
            hint("rounding leaves about -1e-16 of a square that is nearly 0, which has no root: "
                 "take the larger of it and 0 first");
        else if (fabs(yours - right * right) < 1e-9)
            hint("this is its square");
        else if (fabs(yours - sqrt(diagonal)) < 1e-9)
            hint("this counts the diagonal alone; a_i^2 a_j^2 of all other pairs is missing");
        else if (fabs(yours - sqrt(squares)) < 1e-9)
            hint("this is the length of a and not of J");
        else if (yours > 0)
            hint("with S2 = sum a^2 and S3 = sum a^3 it is sqrt(max(0, S2 - 2 S3 + S2^2))");
    }
}

struct measured {
    double saturated, spread, dq; /* share of saturated rows; deviation of the scores; mean |dq| */
    double dq_squares;            /* mean |dq|^2 */
    double dq_error, saturated_error; /* standard errors of the mean |dq| and of the share */
};

/* One query and ten keys of normal numbers, their scores q k, and a gradient for the weights. */
struct row {
    double q[MOST], keys[KEYS][MOST], s[KEYS], g[KEYS];
};

static void draw_row(sb_random *random, int64_t d, struct row *row)
{
    for (int64_t e = 0; e < d; e++)
        row->q[e] = sb_random_normal(random);
    for (int j = 0; j < KEYS; j++) {
        row->s[j] = 0;
        row->g[j] = sb_random_normal(random);
        for (int64_t e = 0; e < d; e++)
            row->s[j] += row->q[e] * (row->keys[j][e] = sb_random_normal(random));
    }
}

static void add_row(const struct row *row, int64_t d, double factor, struct measured *m)
{
    double s[KEYS], a[KEYS], average = 0, length = 0;
    for (int j = 0; j < KEYS; j++) {
        s[j] = factor * row->s[j];
        m->spread += s[j] * s[j] / KEYS;
    }
    true_softmax(KEYS, s, a);
    for (int j = 0; j < KEYS; j++)
        average += a[j] * row->g[j];
    for (int64_t e = 0; e < d; e++) {
        double dq = 0;
        for (int j = 0; j < KEYS; j++)
            dq += factor * a[j] * (row->g[j] - average) * row->keys[j][e];
        length += dq * dq;
    }
    m->dq += sqrt(length);
    m->dq_squares += length;
    m->saturated += by_entries(KEYS, a) < saturated_below;
}

/* Sums over all rows become means. */
static void finish(struct measured *m)
{
    const double saturated = m->saturated / ROWS, dq = m->dq / ROWS;
    const double variance = m->dq_squares / ROWS - dq * dq;
    *m = (struct measured){.saturated = saturated,
                           .spread = sqrt(m->spread / ROWS),
                           .dq = dq,
                           .dq_error = sqrt(variance / ROWS),
                           .saturated_error = sqrt(saturated * (1 - saturated) / ROWS)};
}

static void measure(int64_t d, double factor, struct measured *raw, struct measured *scaled)
{
    static struct row row;
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    *raw = *scaled = (struct measured){0};
    for (int r = 0; r < ROWS; r++) {
        draw_row(&random, d, &row);
        add_row(&row, d, 1, raw);
        add_row(&row, d, factor, scaled);
    }
    finish(raw);
    finish(scaled);
}

static void name_factor(int64_t d, double spread)
{
    const double wide = (double)d;
    if (fabs(spread - sqrt(wide)) < 0.1 * sqrt(wide))
        hint("these are the raw scores: the factor is 1");
    else if (fabs(spread - 1 / sqrt(wide)) < 0.1 / sqrt(wide))
        hint("this is 1 / d, too small: the scores hardly differ, and every query gets the mean of "
             "all values. The *variance* of q k is d; what is its deviation?");
    else if (spread > sqrt(wide))
        hint("this makes the scores even larger: divide");
    else
        hint("the deviation of q k is sqrt(d)");
}

int main(void)
{
    test_length();
    blank_line();
    say("One query, ten keys, all normal: standard deviation of the scores, share of saturated "
        "rows");
    say("(||J|| below %g), and mean length of the query's gradient, with standard errors;",
        saturated_below);
    say("%d rows each.", ROWS);
    say("                 raw                                   with your factor");
    say("   d  deviation     saturated           |dq|  deviation     saturated           |dq|");
    struct measured raw_at_64 = {0}, at_64 = {0};
    for (int64_t d = 16; d <= 1024; d *= 4) {
        struct measured raw, yours;
        measure(d, score_factor(d), &raw, &yours);
        say("%4d %10.1f %6.0f +- %.0f %% %6.2f +- %.2f %10.1f %6.0f +- %.0f %% %6.2f +- %.2f",
            (int)d, raw.spread, 100 * raw.saturated, 100 * raw.saturated_error, raw.dq,
            raw.dq_error, yours.spread, 100 * yours.saturated, 100 * yours.saturated_error,
            yours.dq, yours.dq_error);
        if (d == 64) {
            raw_at_64 = raw;
            at_64 = yours;
        }
    }
    holds(fabs(raw_at_64.saturated - 0.29) <= 0.03,
          "at d = 64, 29 %% of raw rows are saturated, +- 3");
    holds(at_64.saturated < 0.005, "with the factor, 0 %% are");
    if (!holds(fabs(at_64.spread - 1) < 0.1, "with the factor, the scores' deviation is 1"))
        name_factor(64, at_64.spread);
    return lesson_end();
}
