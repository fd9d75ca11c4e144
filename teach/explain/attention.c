/* softback explain attention: "The cat sat on mat"; a query matches a key. */
#include "autograd/tape.h"
#include "ops/ops.h"
#include "teach/explain/topics.h"
#include <stdio.h>

enum { L = 5, D = 3 };

static const char *const words[L] = {"The", "cat", "sat", "on", "mat"};
/* What each word offers, and what it looks for, in three features: thing, action, place. "sat"
   looks for a thing, "on" for a place, and "cat" and "mat" for an action. */
static const double keys[L][D] = {{0, 0, 0}, {2, 0, 0}, {0, 2, 0}, {0, 0, 1}, {1, 0, 2}};
static const double queries[L][D] = {{2, 0, 0}, {0, 3, 0}, {3, 0, -1}, {0, 0, 3}, {0, 2, 0}};
static const double values[L][D] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 0.5}, {0, 0, 1}};

struct outcome {
    double a[L * L], y[L * D], g[L * L], ds[L * L], dq[L * D], dk[L * D], dv[L * D];
};

/* Forward, and backward from the third output's first feature: the thing in that of "sat". */
static bool compute(struct outcome *outcome)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    const double *q = queries[0], *k = keys[0], *v = values[0];
    sb_tensor *tq = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(L, D), q));
    sb_tensor *tk = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(L, D), k));
    sb_tensor *tv = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(L, D), v));
    sb_tensor *none = sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(L, L))); /* its gradient: ds */
    sb_tensor_requires_grad(tq);
    sb_tensor_requires_grad(tk);
    sb_tensor_requires_grad(tv);
    sb_tensor_requires_grad(none);
    sb_tensor *weights = NULL;
    const sb_attention_options options = {
        .bias = none, .weights = &weights, .algorithm = SB_ATTENTION_COMPOSED};
    sb_tensor *y = sb_keep(sb_attention(tq, tk, tv, &options));
    double upstream[L * D] = {0};
    upstream[2 * D] = 1;
    sb_tensor *dy = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(L, D), upstream));
    bool ok = y && sb_keep(weights) && sb_backward_from(y, dy) &&
              sb_tensor_read(weights, outcome->a) && sb_tensor_read(y, outcome->y) &&
              sb_tensor_read(sb_tensor_grad(weights), outcome->g) &&
              sb_tensor_read(sb_tensor_grad(none), outcome->ds) &&
              sb_tensor_read(sb_tensor_grad(tq), outcome->dq) &&
              sb_tensor_read(sb_tensor_grad(tk), outcome->dk) &&
              sb_tensor_read(sb_tensor_grad(tv), outcome->dv);
    return sb_tape_end(&tape) && ok;
}

static void write_weights(struct page *page, const struct outcome *o)
{
    struct page_column columns[L + 2] = {{"query", PAGE_WORD, 0}};
    for (int j = 0; j < L; j++)
        columns[1 + j] = (struct page_column){words[j], PAGE_NUMBER, 3};
    columns[L + 1] = (struct page_column){"matches", PAGE_WORD, 0};
    page_table(page, "weights", L + 2, columns);
    for (int i = 0; i < L; i++) {
        struct page_cell cells[L + 2] = {cell_word(words[i])};
        int best = 0;
        for (int j = 0; j < L; j++) {
            cells[1 + j] = cell_of(o->a[i * L + j]);
            best = o->a[i * L + j] > o->a[i * L + best] ? j : best;
        }
        cells[L + 1] = cell_word(words[best]);
        page_row(page, cells);
    }
}

static void write_row(struct page *page, const struct outcome *o)
{
    static const struct page_column columns[] = {{"key", PAGE_WORD, 0},  {"a", PAGE_NUMBER, 4},
                                                 {"", PAGE_BAR, 4},      {"g", PAGE_NUMBER, 3},
                                                 {"ds", PAGE_NUMBER, 4}, {"", PAGE_BAR, 4}};
    const double *a = o->a + 2 * L, *g = o->g + 2 * L, *ds = o->ds + 2 * L;
    page_table(page, "sat", 6, columns);
    for (int j = 0; j < L; j++)
        page_row(page, (struct page_cell[]){cell_word(words[j]), cell_of(a[j]), cell_of(a[j]),
                                            cell_of(g[j]), cell_of(ds[j]), cell_of(ds[j])});
}

static void write(struct page *page, const struct explain_options *options)
{
    struct outcome o = {0};
    page_need(page, compute(&o));
    page_title(page, "a query matches a key");
    page_text(page,
              "\"The cat sat on mat\", with hand-made queries, keys and values of three "
              "features: thing, action, place. The query of \"sat\" asks for a thing and "
              "matches the key of \"cat\". softmax(q k' / sqrt 3) v by sb_attention; rows are "
              "queries.");
    write_weights(page, &o);
    page_text(page,
              "The output of \"sat\" is %.3g of a thing, %.3g of an action and %.3g of a place: a "
              "weighted mean of the values, so never more than the largest of them.",
              o.y[2 * D], o.y[2 * D + 1], o.y[2 * D + 2]);
    page_text(
        page,
        "BACKWARD  The upstream gradient is 1 for the thing in the output of \"sat\". g_j = "
        "dL/da_j is that feature of value j; ds = a (g - avg). It is positive for \"cat\" and "
        "negative for all other keys, for each in proportion to its weight.");
    write_row(page, &o);
    page_text(
        page,
        "Through ds the key of \"cat\" gets the gradient dk = ds q / sqrt 3 = (%.3g, %.3g, %.3g), "
        "along the query of \"sat\", and that query gets dq = sum of ds k / sqrt 3 = (%.3g, %.3g, "
        "%.3g). The value of \"cat\" gets dv = a dy = (%.3g, %.3g, %.3g), past the softmax.",
        o.dk[D], o.dk[D + 1], o.dk[D + 2], o.dq[2 * D], o.dq[2 * D + 1], o.dq[2 * D + 2], o.dv[D],
        o.dv[D + 1], o.dv[D + 2]);
    page_text(page, options->code ? "The operation in ops.h:"
                                  : "--code prints the operation in ops.h, and its loops.");
    if (options->code)
        page_operation(page, "attention", true);
}

const struct topic topic_attention = {"attention", "\"The cat sat on mat\": a query matches a key",
                                      TAKES_CODE, NULL, write};
