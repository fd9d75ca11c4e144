/* softback explain deaf: how much of a gradient gets through a row, over many random rows. */
#include "teach/explain/topics.h"
#include "teach/explain/width.h"
#include <math.h>

static void write(struct page *page, const struct explain_options *o)
{
    static const struct page_column columns[] = {
        {"||J|| from", PAGE_SHORT, 3},   {"raw", PAGE_NUMBER, 0}, {"", PAGE_BAR, 0},
        {"over sqrt d", PAGE_NUMBER, 0}, {"", PAGE_BAR, 0},       {"row", PAGE_WORD, 0}};
    const int64_t d = o->width > 0 ? o->width : 64;
    struct width_measured raw = {0}, scaled = {0};
    page_title(page, "rows that no gradient gets through");
    page_need(page, width_measure(d, 1, &raw) && width_measure(d, 1 / sqrt((double)d), &scaled));
    page_text(page,
              "%d rows: a random query of %lld normal numbers, %d random keys, s = q k', a = "
              "softmax(s). Counted by ||J||, J = da/ds: how much the weights answer to the scores. "
              "Below 0.01 a row is deaf.",
              WIDTH_ROWS, (long long)d, WIDTH_KEYS);
    page_table(page, "rows", 6, columns);
    for (int bin = 0; bin < WIDTH_BINS; bin++)
        page_row(page, (struct page_cell[]){cell_of(width_edges[bin]), cell_of(raw.norms[bin]),
                                            cell_of(raw.norms[bin]), cell_of(scaled.norms[bin]),
                                            cell_of(scaled.norms[bin]),
                                            cell_word(bin < WIDTH_DEAF_BINS ? "deaf" : "")});
    page_text(
        page,
        "Deaf: %.1f %% raw, %.1f %% over sqrt d. Raw, the variance of a score is near d (here "
        "%.3g), one key takes nearly all the weight, and a (1 - a) is nearly 0; over sqrt d "
        "it is near 1 (%.3g).",
        100 * raw.deaf, 100 * scaled.deaf, raw.variance, scaled.variance);
}

const struct topic topic_deaf = {"deaf", "how many rows are deaf, raw and over sqrt d", TAKES_WIDTH,
                                 NULL, write};
