/* softback explain saturation: temperature from hot to cold. */
#include "teach/explain/row.h"
#include "teach/explain/topics.h"
#include "tensor/mathematics.h"

static const double temperatures[] = {16, 8, 4, 2, 1, 0.5, 0.25, 0.125, 0.0625};

static void add_row(struct page *page, struct row *row, double T)
{
    double a[EXPLAIN_NUMBERS] = {0}, J[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS] = {0};
    row->temperature = T;
    page_need(page, row_forward(row, a) && row_jacobian(row, J));
    double norm = row_norm(row->n, J);
    PAGE_NUMBERS(page, NULL, T, a[0], row_entropy(row->n, a) / math_log(row->n), norm * T, norm);
}

static void write(struct page *page, const struct explain_options *o)
{
    struct row row = row_of_options(o);
    page_title(page, "cold rows saturate, and hot rows pass small gradients");
    page_text(page,
              "a = softmax(s / T). ||J|| is the norm of the Jacobian da/d(s / T), and ||J||/T "
              "that of da/ds, through which the gradient of the scores passes.");
    page_table(page, "temperatures",
               "T ~4 | a_0 .4 | entropy/log n .4 | ||J|| ~3 | ||J||/T ~3 | #3");
    for (size_t i = 0; i < sizeof temperatures / sizeof temperatures[0]; i++)
        add_row(page, &row, temperatures[i]);
    page_text(page,
              "Low temperatures: one weight takes nearly all, ||J|| decays exponentially, and "
              "the row saturates (||J|| < 0.01). High temperatures: ||J|| stays near its "
              "value for equal weights, sqrt(n - 1) / n, but the factor 1/T makes the "
              "gradient of the scores small.");
}

const struct topic topic_saturation = {"saturation",
                                       "temperatures from hot to cold: weights, entropy, ||J||",
                                       1 << SCORES, row_check, write};
