/* softback explain saturation, scaling and saturated-rows: which rows pass almost no gradient. */
#include "teach/explain/row.h"
#include "tensor/mathematics.h"

/* ---- saturation: temperature from hot to cold ---- */

static const double temperatures[] = {16, 8, 4, 2, 1, 0.5, 0.25, 0.125, 0.0625};

static void write_saturation(struct page *page, const struct explain_options *o)
{
    struct row row = row_of_options(o);
    page_title(page, "cold rows saturate, and hot rows pass small gradients");
    page_text(page,
              "a = softmax(s / T). ||J|| is the norm of the Jacobian da/d(s / T), and ||J||/T "
              "that of da/ds, through which the gradient of the scores passes.");
    page_table(page, "temperatures",
               "T ~4 | a_0 .4 | entropy/log n .4 | ||J|| ~3 | ||J||/T ~3 | #3");
    for (size_t i = 0; i < sizeof temperatures / sizeof temperatures[0]; i++) {
        double a[EXPLAIN_NUMBERS] = {0}, J[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS] = {0};
        const double T = row.temperature = temperatures[i];
        page_need(page, row_forward(&row, a) && row_jacobian(&row, J));
        const double norm = row_norm(row.n, J);
        PAGE_NUMBERS(page, NULL, T, a[0], row_entropy(row.n, a) / math_log(row.n), norm * T, norm);
    }
    page_text(page,
              "Low temperatures: one weight takes nearly all, ||J|| decays exponentially, and "
              "the row saturates (||J|| < 0.01). High temperatures: ||J|| stays near its "
              "value for equal weights, sqrt(n - 1) / n, but the factor 1/T makes the "
              "gradient of the scores small.");
}

const struct topic topic_saturation = {"saturation",
                                       "temperatures from hot to cold: weights, entropy, ||J||",
                                       1 << SCORES, row_check, write_saturation};

/* ---- scaling: why scores are divided by the square root of the size ---- */

static void write_opening(struct page *page)
{
    static const double scores[] = {20, 22, 18, 21};
    page_table(page, "four scores",
               "scores | a_0 .4 | a_1 .4 | a_2 .4 | a_3 .4 | ||J|| .3 | by raw scores .4");
    for (int scaled = 0; scaled < 2; scaled++) {
        double a[EXPLAIN_NUMBERS] = {0}, J[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS] = {0};
        struct row row = row_of(4, scores);
        row.temperature = scaled ? sqrt(512) : 1;
        page_need(page, row_forward(&row, a) && row_jacobian(&row, J));
        double norm = row_norm(4, J);
        PAGE_NUMBERS(page, scaled ? "over sqrt 512" : "20 22 18 21", a[0], a[1], a[2], a[3],
                     norm * row.temperature, norm);
    }
}

static void write_widths(struct page *page)
{
    static const char *const over[] = {"1", "sqrt d", "d"};
    page_table(page, "widths",
               "d .0 | over | variance ~3 | +-2 sigma ~3 | |dz/dq|^2 ~3 | sat. % .1 | error % .1 | "
               "|dq| ~3 | error ~1");
    for (int64_t d = 16; d <= 1024; d *= 4)
        for (int i = 0; i < 3; i++) {
            struct width_measured m = {0};
            double scale = i == 0 ? 1 : i == 1 ? 1 / sqrt((double)d) : 1 / (double)d;
            page_need(page, width_measure(d, scale, &m));
            PAGE_ROW(page, cell_of((double)d), cell_word(over[i]), cell_of(m.variance),
                     cell_of(2 * sqrt(m.variance)), cell_of(m.squared_slope),
                     cell_of(100 * m.saturated), cell_of(100 * m.saturated_error),
                     cell_of(m.gradient), cell_of(m.gradient_error));
        }
}

static void write_scaling(struct page *page, const struct explain_options *o)
{
    (void)o;
    page_title(page, "division by sqrt d keeps rows from saturating");
    page_text(page,
              "A common textbook example: four scores as they are, and divided by sqrt 512. ||J|| "
              "is the norm of the Jacobian with respect to the scores in softmax; the last "
              "column, with respect to the scores before the division.");
    write_opening(page);
    page_text(
        page,
        "This is hardly saturation: ||J|| is much the same. What matters is how far apart "
        "scores lie, and that grows with d. So here are %d rows of random queries with 10 "
        "random keys; queries, keys and g are standard normal. |dz/dq|^2 is the squared "
        "gradient of one score z by its query. A row is saturated when ||J|| < 0.01, and "
        "\"sat. %%\" is the share of such rows; |dq| is the mean over the rows; \"error\" is the "
        "standard error of the number before it.",
        WIDTH_ROWS);
    write_widths(page);
    page_text(page,
              "Without division the variance of a score is d, and at large d most rows are "
              "saturated. Yet the mean gradient of q does not vanish: it grows from d = 16 to 64, "
              "and then stays the same within its error, since the remaining rows have large "
              "gradients. Divided by sqrt d, the variance is 1 and no row is saturated, at any d. "
              "Divided by d, the weights of every row are nearly equal, and the gradients small.");
}

const struct topic topic_scaling = {
    "scaling", "why over sqrt d: saturated rows and large gradients", 0, NULL, write_scaling};

/* ---- saturated-rows: how many of many random rows ---- */

static void write_saturated_rows(struct page *page, const struct explain_options *o)
{
    const int64_t d = o->width > 0 ? o->width : 64;
    struct width_measured raw = {0}, scaled = {0};
    page_title(page, "saturated rows pass almost no gradient");
    page_need(page, width_measure(d, 1, &raw) && width_measure(d, 1 / sqrt((double)d), &scaled));
    page_text(page,
              "%d rows: a random query of %lld normal numbers, %d random keys, s = q kᵀ, a = "
              "softmax(s). They are counted by ||J||, the norm of the Jacobian J = da/ds: how much "
              "the weights respond to the scores. Below 0.01 a row is saturated.",
              WIDTH_ROWS, (long long)d, WIDTH_KEYS);
    page_table(page, "rows", "||J|| from ~3 | raw .0 | #0 | over sqrt d .0 | #0 | row");
    for (int bin = 0; bin < WIDTH_BINS; bin++)
        PAGE_ROW(page, cell_of(width_edges[bin]), cell_of(raw.norms[bin]),
                 cell_of(scaled.norms[bin]),
                 cell_word(bin < WIDTH_SATURATED_BINS ? "saturated" : ""));
    page_text(
        page,
        "Saturated: %.1f +- %.1f %% raw, %.1f +- %.1f %% over sqrt d (standard errors). Raw, the "
        "variance of a score is near d (here %.3g), one key takes nearly all the weight, and a (1 "
        "- a) is nearly 0; over sqrt d the variance is near 1 (%.3g).",
        100 * raw.saturated, 100 * raw.saturated_error, 100 * scaled.saturated,
        100 * scaled.saturated_error, raw.variance, scaled.variance);
}

const struct topic topic_saturated_rows = {"saturated-rows",
                                           "how many rows are saturated, raw and over sqrt d",
                                           TAKES_WIDTH, NULL, write_saturated_rows};
