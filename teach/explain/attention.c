/* softback explain attention: "The cat sat on the mat"; a query matches a key, and backward. */
#include "autograd/gradcheck.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include <math.h>
#include <stdio.h>

enum { L = 6, D = 3, SAT = 2, CAT = 1 };

static const char *const words[L] = {"The", "cat", "sat", "on", "the", "mat"};
/* What each word offers, and what it looks for, in three features: thing, action, place. "sat"
   looks for a thing, "on" for a place, and "cat" and "mat" for an action. */
static const double keys[L][D] = {{0, 0, 0}, {2, 0, 0}, {0, 2, 0}, {0, 0, 1}, {0, 0, 0}, {1, 0, 2}};
static const double queries[L][D] = {{2, 0, 0}, {0, 3, 0}, {3, 0, -1},
                                     {0, 0, 3}, {2, 0, 0}, {0, 2, 0}};
static const double values[L][D] = {{0, 0, 0},   {1, 0, 0}, {0, 1, 0},
                                    {0, 0, 0.5}, {0, 0, 0}, {0, 0, 1}};
/* The upstream gradient: 1 for the thing in the output of "sat". */
static const double upstream[L][D] = {[SAT] = {1, 0, 0}};

struct outcome {
    double a[L][L], y[L][D], da[L][L], ds[L][L], dq[L][D], dk[L][D], dv[L][D];
};

/* x: q, k, v, and a bias of zeros, whose gradient is ds. */
static sb_tensor *attend(void *weights, sb_tensor *const x[])
{
    const sb_attention_options options = {
        .bias = x[3], .weights = weights, .algorithm = SB_ATTENTION_COMPOSED};
    return sb_attention(x[0], x[1], x[2], &options);
}

/* Forward and backward by the library, and its gradient check. */
static bool compute(struct outcome *o)
{
    static const double none[L * L] = {0};
    const double *const start[] = {queries[0], keys[0], values[0], none};
    sb_tensor *x[4], *weights = NULL;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    for (int i = 0; i < 4; i++)
        x[i] = variable_of(SB_F64, SB_SHAPE(L, i == 3 ? L : D), start[i]);
    sb_tensor *dy = constant_of(SB_F64, SB_SHAPE(L, D), upstream[0]);
    sb_tensor *y = sb_keep(attend(&weights, x));
    bool ok = y && sb_keep(weights) && sb_backward_from(y, dy) &&
              sb_tensor_read(weights, o->a[0]) && sb_tensor_read(y, o->y[0]) &&
              sb_tensor_read(sb_tensor_grad(weights), o->da[0]);
    double *const gradient[] = {o->dq[0], o->dk[0], o->dv[0], o->ds[0]};
    for (int i = 0; ok && i < 4; i++)
        ok = sb_tensor_read(sb_tensor_grad(x[i]), gradient[i]);
    for (int i = 0; ok && i < 4; i++)
        sb_tensor_clear_grad(x[i]);
    ok = ok && sb_gradcheck(attend, NULL, x, 4, NULL, NULL);
    return sb_tape_end(&tape) && ok;
}

static void write_words(struct page *page)
{
    page_table(
        page, "words",
        "word | q_1 ~2 | q_2 ~2 | q_3 ~2 | k_1 ~2 | k_2 ~2 | k_3 ~2 | v_1 ~2 | v_2 ~2 | v_3 ~2");
    for (int i = 0; i < L; i++) {
        const double *q = queries[i], *k = keys[i], *v = values[i];
        PAGE_NUMBERS(page, words[i], q[0], q[1], q[2], k[0], k[1], k[2], v[0], v[1], v[2]);
    }
}

static void write_weights(struct page *page, const struct outcome *o)
{
    page_table(page, "weights",
               "query | The .3 | cat .3 | sat .3 | on .3 | the .3 | mat .3 | matches");
    for (int i = 0; i < L; i++) {
        struct page_cell cells[L + 2] = {cell_word(words[i])};
        int best = 0;
        for (int j = 0; j < L; j++) {
            cells[1 + j] = cell_of(o->a[i][j]);
            best = o->a[i][j] > o->a[i][best] ? j : best;
        }
        cells[L + 1] = cell_word(words[best]);
        page_row(page, cells);
    }
}

static void write_row(struct page *page, const struct outcome *o)
{
    page_table(page, "sat", "key | a = dv_1 .4 | da .0 | ds .4 | #4 | dk_1 .4 | dk_2 .0 | dk_3 .4");
    for (int j = 0; j < L; j++)
        PAGE_NUMBERS(page, words[j], o->dv[j][0], o->da[SAT][j], o->ds[SAT][j], o->dk[j][0],
                     o->dk[j][1], o->dk[j][2]);
}

/* Gradients by the formulas with a mistake: what ds is, which key gets it, the divisor. */
static void write_mistake(struct page *page, const char *name, const double ds[L], bool turned,
                          double divisor)
{
    double dq = 0, dk[L] = {0};
    for (int j = 0; j < L; j++) {
        dq += ds[j] * keys[j][0] / divisor;
        dk[turned ? SAT : j] += ds[j] * queries[turned ? j : SAT][0] / divisor;
    }
    PAGE_NUMBERS(page, name, dq, dk[CAT], dk[SAT], dk[L - 1]);
}

static void write_mistakes(struct page *page, const struct outcome *o)
{
    const double *a = o->a[SAT], *da = o->da[SAT], *ds = o->ds[SAT], root = sqrt(D);
    double diagonal[L];
    for (int j = 0; j < L; j++)
        diagonal[j] = a[j] * (1 - a[j]) * da[j];
    page_table(page, "mistakes",
               "backward | dq_1 sat .4 | dk_1 cat .4 | dk_1 sat .4 | dk_1 mat .4");
    write_mistake(page, "right", ds, false, root);
    write_mistake(page, "without 1 / √d", ds, false, 1);
    write_mistake(page, "ds = da", da, false, root);
    write_mistake(page, "ds = a (1 - a) da", diagonal, false, root);
    write_mistake(page, "dk = ds q / √d", ds, true, root);
}

static void write(struct page *page, const struct explain_options *options)
{
    struct outcome o = {0};
    (void)options;
    page_need(page, compute(&o));
    page_title(page, "a query matches a key");
    page_text(page,
              "Each word has a query, what it looks for; a key, what it offers; and a value, "
              "what it hands over. The score of a query with a key is their dot product. Softmax "
              "makes weights of the scores of a query, and its output is the weighted mean of the "
              "values. \"The cat sat on the mat\", with hand-made vectors of d = 3 features: "
              "thing, action, place.");
    write_words(page);
    page_text(page, "FORWARD  s = q kᵀ / √d, a = softmax(s), y = a v. The weights a, a row for "
                    "each query: \"sat\" looks for a thing, and \"cat\" is one.");
    write_weights(page, &o);
    page_text(page,
              "The output of \"sat\" is (%.3f, %.3f, %.3f): %.3f of the value of \"cat\", and a "
              "little of the others.",
              o.y[SAT][0], o.y[SAT][1], o.y[SAT][2], o.a[SAT][CAT]);
    page_text(page, "BACKWARD  From the last line of forward to the first. A sum over keys in "
                    "forward is a sum over queries in backward: that is the transpose.");
    page_lines(page, "  forward         backward\n"
                     "  y = a v         dv = aᵀ dy                 each value, from all queries\n"
                     "                  da = dy vᵀ                 each weight\n"
                     "  a = softmax(s)  ds = a (da - sum of a da)  each score, row by row\n"
                     "  s = q kᵀ / √d   dq = ds k / √d             each query, from all keys\n"
                     "                  dk = dsᵀ q / √d            each key, from all queries\n");
    page_text(
        page,
        "In numbers: let dy be 1 for the thing in the output of \"sat\", and otherwise 0. "
        "Then da_j is the thing in value j, and their average, the sum of a da, is %.3f. "
        "\"cat\" is above it: a higher score of \"cat\" raises that output (ds > 0), and a higher "
        "score of any other key lowers it.",
        o.y[SAT][0]);
    write_row(page, &o);
    page_text(page,
              "Every dk points along the query of \"sat\", (3, 0, -1), and dq of \"sat\" is a sum "
              "of keys, (%.4f, %.4f, %.4f). Here other queries add nothing; in general each adds "
              "its part (+=). Central differences agree within 1e-6.",
              o.dq[SAT][0], o.dq[SAT][1], o.dq[SAT][2]);
    page_text(page, "WHAT GOES WRONG  The first feature of some gradients, with typical mistakes. "
                    "None of them crashes:");
    write_mistakes(page, &o);
    page_text(page,
              "A missing 1 / √d is a factor: %.2f here, 8 at d = 64. ds = da skips the softmax: "
              "ds no longer sums to 0, and keys that a mask blocks get gradients. Without the "
              "transpose, \"sat\" gets the gradients of all keys. With a mask, a = 0 makes ds and "
              "dv of a blocked key 0: with finite numbers backward needs no line for it.",
              sqrt(D));
}

const struct topic topic_attention = {
    "attention", "\"The cat sat on the mat\": a query matches a key, and backward", TAKES_REFERENCE,
    NULL, write};
