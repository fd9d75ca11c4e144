/* softback explain saturated-rows: how many of many random rows pass almost no gradient. */
#include "teach/explain/topics.h"
#include "teach/explain/width.h"
#include <math.h>

static void write(struct page *page, const struct explain_options *o)
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
        "variance of a score is near d (here "
        "%.3g), one key takes nearly all the weight, and a (1 - a) is nearly 0; over sqrt d the "
        "variance is near 1 (%.3g).",
        100 * raw.saturated, 100 * raw.saturated_error, 100 * scaled.saturated,
        100 * scaled.saturated_error, raw.variance, scaled.variance);
}

const struct topic topic_saturated_rows = {
    "saturated-rows", "how many rows are saturated, raw and over sqrt d", TAKES_WIDTH, NULL, write};
