/* softback explain softmax: one row forward, its Jacobian, and backward. */
#include "autograd/tape.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include <math.h>

enum { WIDEST_JACOBIAN = 8 };

/* As many upstream gradients as scores: the first one up, the last one down. */
static struct numbers upstream_of(const struct explain_options *o, int n)
{
    struct numbers g = {.count = n};
    g.value[n - 1] = -1;
    g.value[0] = 1;
    return o->list[UPSTREAM].count > 0 ? o->list[UPSTREAM] : g;
}

static bool check(const struct explain_options *o)
{
    int n = o->list[SCORES].count ? o->list[SCORES].count : 4;
    for (int i = 0; i < o->list[KEPT].count; i++)
        if (o->list[KEPT].value[i] != 0 && o->list[KEPT].value[i] != 1)
            return sb_fail("--mask: %g is neither 1, which keeps a score, nor 0, which blocks it",
                           o->list[KEPT].value[i]);
    return row_check(o) && check_count("upstream", &o->list[UPSTREAM], n, "scores") &&
           check_count("mask", &o->list[KEPT], n, "scores");
}

/* The steps of forward, each by an operation: z = s / T, z - max, and exp of that. */
struct steps {
    double max, sum, shifted[EXPLAIN_NUMBERS], power[EXPLAIN_NUMBERS];
};

static bool compute_steps(const struct row *row, struct steps *steps)
{
    double s[EXPLAIN_NUMBERS];
    for (int i = 0; i < row->n; i++)
        s[i] = row->kept[i] ? row->s[i] : -INFINITY;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *x = constant_of(SB_F64, SB_SHAPE(row->n), s);
    sb_tensor *z = sb_scale(x, 1 / row->temperature), *max = sb_max(z, -1, true);
    sb_tensor *shifted = sb_subtract(z, max), *power = sb_exp(shifted);
    sb_tensor *sum = sb_sum(power, SB_ALL, false);
    bool ok = sum && sb_tensor_read(shifted, steps->shifted) && sb_tensor_read(power, steps->power);
    steps->max = ok ? sb_tensor_get(max, 0) : 0;
    steps->sum = ok ? sb_tensor_value(sum) : 0;
    return sb_tape_end(&tape) && ok;
}

static void write_forward(struct page *page, const struct row *row, const double a[])
{
    struct steps steps = {0};
    bool any = false;
    for (int i = 0; i < row->n; i++)
        any |= row->kept[i];
    page_need(page, !any || compute_steps(row, &steps));
    if (any)
        page_text(
            page,
            "FORWARD  a = exp(s/T - max) / sum, with T = %.4g, max = %.4g and sum = "
            "%.4g. The shift by max keeps exp from overflowing and does not change the result.",
            row->temperature, steps.max, steps.sum);
    else
        page_text(page, "FORWARD  The mask blocks every score: all weights are 0 by definition, "
                        "and so are all gradients. Nothing is divided by 0.");
    page_table(page, "forward", "i .0 | s .3 | s/T - max .3 | exp .6 | a .4");
    for (int i = 0; i < row->n; i++)
        PAGE_ROW(page, cell_of(i), cell_of(row->s[i]),
                 row->kept[i] ? cell_of(steps.shifted[i]) : cell_word("blocked"),
                 cell_of(row->kept[i] ? steps.power[i] : 0), cell_of(a[i]));
}

static void write_jacobian(struct page *page, const struct row *row)
{
    double J[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS] = {0};
    page_need(page, row_jacobian(row, J));
    page_text(
        page,
        "JACOBIAN  da_i/ds_j = a_i ((i == j) - a_j) / T, with ||J|| = %.3g. Each column "
        "sums to 0: what one weight gains, the others lose. Each row sums to 0: a shift of all "
        "scores changes no weight.",
        row_norm(row->n, J));
    if (row->n > WIDEST_JACOBIAN)
        return;
    row_table(page, "jacobian", "i .0", row->n);
    for (int i = 0; i < row->n; i++)
        row_cells(page, 1, (const struct page_cell[]){cell_of(i)}, row->n, J[i]);
}

static void write_backward(struct page *page, const struct row *row, const double a[],
                           const double g[])
{
    double ds[EXPLAIN_NUMBERS] = {0}, average = row_dot(row->n, a, g), wrong = 0;
    page_need(page, row_backward(row, g, ds));
    page_text(
        page,
        "BACKWARD  ds_i = a_i (g_i - avg) / T, where g = dL/da and avg = sum of a_j g_j "
        "= %.4g. Next to it: the central difference, and the usual mistake a (1 - a) g, which "
        "ignores that each score lowers all other weights.",
        average);
    page_table(page, "backward",
               "i .0 | g .4 | g - avg .4 | ds .4 | #4 | difference .4 | check | mistake .4");
    for (int i = 0; i < row->n; i++) {
        /* The mistake: each score by its own diagonal entry of J alone. */
        double difference = 0, mistake = a[i] * (1 - a[i]) * g[i] / row->temperature;
        page_need(page, row_difference(row, g, i, &difference));
        wrong += mistake;
        bool same = fabs(difference - ds[i]) <= 1e-8 * fmax(1, fabs(ds[i]));
        PAGE_ROW(page, cell_of(i), cell_of(g[i]), cell_of(g[i] - average), cell_of(ds[i]),
                 cell_of(difference), cell_word(same ? "ok" : "off"), cell_of(mistake));
    }
    double sum = row_sum(row->n, ds);
    page_text(page,
              "The ds sum to %.3g: a constant added to every score changes nothing. Those of the "
              "mistake sum to %.3g.",
              fabs(sum) < 1e-12 ? 0 : sum, fabs(wrong) < 1e-12 ? 0 : wrong);
}

static void write(struct page *page, const struct explain_options *o)
{
    struct row row = row_of_options(o);
    struct numbers g = upstream_of(o, row.n);
    double a[EXPLAIN_NUMBERS] = {0};
    page_title(page, "every score changes every weight");
    page_need(page, row_forward(&row, a));
    write_forward(page, &row, a);
    write_jacobian(page, &row);
    write_backward(page, &row, a, g.value);
}

const struct topic topic_softmax = {
    "softmax", "one row: forward, its Jacobian, and backward, right and wrong",
    1 << SCORES | 1 << UPSTREAM | 1 << KEPT | TAKES_TEMPERATURE | TAKES_SVG | TAKES_REFERENCE,
    check, write};
