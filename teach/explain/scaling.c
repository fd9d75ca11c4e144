/* softback explain scaling: why scores are divided by the square root of the size. */
#include "autograd/tape.h"
#include "teach/explain/row.h"
#include "teach/explain/topics.h"
#include "teach/explain/width.h"
#include <math.h>

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

static void write(struct page *page, const struct explain_options *o)
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
    "scaling", "why over sqrt d: saturated rows and large gradients", 0, NULL, write};
