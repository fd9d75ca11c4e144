/* softback explain wrong-gradient: what becomes of a model that learns with a wrong softmax. */
#include "autograd/operation.h"
#include "models/explain/reversing.h"
#include "models/explain/topics.h"
#include "models/explain/wrong_softmax.h"
#include "ops/ops.h"
#include "tensor/mathematics.h"

static void row_backward_by(enum wrong wrong, int64_t C, const double *x, const double *a,
                            const double *g, double *dx)
{
    double average = 0, mean = 0, kept = 0;
    for (int64_t c = 0; c < C; c++) {
        average += a[c] * g[c];
        mean += a[c] * (1 - a[c]) * g[c];
        kept += x[c] > -INFINITY;
    }
    mean /= kept;
    for (int64_t c = 0; c < C; c++) {
        double diagonal = a[c] * (1 - a[c]) * g[c];
        if (wrong == WRONG_NONE)
            dx[c] += a[c] * (g[c] - average);
        else if (wrong == WRONG_DIAGONAL)
            dx[c] += diagonal;
        else if (wrong == WRONG_CENTRED && x[c] > -INFINITY)
            dx[c] += diagonal - mean;
    }
}

static bool backward(sb_node *node)
{
    const enum wrong *wrong = sb_node_options(node);
    sb_tensor *dx = sb_node_dx(node, 0);
    if (!dx)
        return true;
    const double *x = sb_tensor_data(sb_node_input(node, 0));
    const double *a = sb_tensor_data(sb_node_result(node, 0));
    const double *g = sb_tensor_data(sb_node_dy(node, 0));
    double *to = sb_tensor_data(dx);
    int64_t C = sb_tensor_dim(dx, -1);
    for (int64_t i = 0; x && a && g && to && i < sb_tensor_size(dx); i += C)
        row_backward_by(*wrong, C, x + i, a + i, g + i, to + i);
    return x && a && g && to;
}

static const sb_operation operation = {"wrong_softmax", "x", backward, false};

sb_tensor *wrong_softmax(sb_tensor *x, enum wrong wrong)
{
    sb_node *node = sb_node_new(&operation, 1, &x, 1, &wrong, sizeof wrong);
    int64_t dim[4];
    int rank = sb_tensor_rank(x);
    for (int i = 0; i < rank && i < 4; i++)
        dim[i] = sb_tensor_dim(x, i);
    sb_tensor *y = node ? sb_node_output(node, SB_F64, rank, dim) : NULL;
    double *to = y ? sb_tensor_data(y) : NULL;
    sb_tape tape; /* forward is the library's */
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *right = to ? sb_softmax(x) : NULL;
    bool ok = right && sb_tensor_read(right, to);
    return sb_tape_end(&tape) && ok ? y : NULL;
}

const char *wrong_name(enum wrong wrong)
{
    static const char *const names[WRONGS] = {"a(g - avg): right", "a(1-a)g: the mistake",
                                              "a(1-a)g less its mean", "0: q and k frozen"};
    return names[wrong];
}

static void write(struct page *page, const struct explain_options *o)
{
    static const struct page_column columns[] = {{"ds in attention", PAGE_WORD, 0},
                                                 {"loss at 1", PAGE_NUMBER, 2},
                                                 {"100", PAGE_NUMBER, 2},
                                                 {"end", PAGE_NUMBER, 2},
                                                 {"", PAGE_BAR, 2},
                                                 {"right %", PAGE_NUMBER, 0}};
    int64_t steps = o->steps > 0 ? o->steps : 400;
    page_title(page, "the mistake that learns at first");
    page_text(page,
              "Four encoder-decoders learn to reverse %d symbols of %d, %lld steps each, with "
              "the same first weights and data. They differ in one line: the gradient of "
              "their softmax in attention. Guessing costs ln %d = %.4g.",
              REVERSING_LENGTH, REVERSING_SYMBOLS, (long long)steps, REVERSING_SYMBOLS,
              math_log(REVERSING_SYMBOLS));
    page_table(page, "training", 6, columns);
    for (int wrong = 0; wrong < WRONGS; wrong++) {
        struct reversed r = {0};
        page_need(page,
                  page->failed || reversing_train((enum wrong)wrong, (uint64_t)o->seed, steps, &r));
        page_row(page, (struct page_cell[]){cell_word(wrong_name((enum wrong)wrong)),
                                            cell_of(r.loss_first), cell_of(r.loss_100),
                                            cell_of(r.loss_last), cell_of(r.loss_last),
                                            cell_of(100 * r.right)});
    }
    page_text(page,
              "With the mistake the loss falls at first, for many ds have the right sign. But its "
              "ds do not add up to 0: scores drift, rows saturate, and most models end worse than "
              "with no gradient at all. Less its mean, the mistake learns: \"ds adds up to 0\" is "
              "what was missing. It is a matter of luck, though: other seeds differ (--seed 2 "
              "learns in spite of the mistake), so a loss that falls proves no gradient. A check "
              "does: softback explain gradcheck.");
}

const struct topic topic_wrong_gradient = {
    "wrong-gradient", "four models, three of them with a wrong softmax gradient",
    TAKES_STEPS | TAKES_SEED, NULL, write};
