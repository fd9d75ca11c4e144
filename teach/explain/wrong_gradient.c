/* softback explain wrong-gradient: what happens to a model trained with a wrong softmax. */
#include "teach/explain/reversing.h"
#include "teach/explain/topics.h"
#include "tensor/mathematics.h"
#include <math.h>

enum { SEEDS = 3 };

/* The mean over the seeds, and its standard error. */
static double mean_with_error(const double x[SEEDS], double *error)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < SEEDS; i++)
        mean += x[i] / SEEDS;
    for (int i = 0; i < SEEDS; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    *error = sqrt(squares / (SEEDS - 1) / SEEDS);
    return mean;
}

/* Trains with one gradient from each seed, and adds the row of their means. */
static void write_row(struct page *page, enum wrong wrong, uint64_t seed, int64_t steps,
                      double right[SEEDS])
{
    double early[SEEDS] = {0}, last[SEEDS] = {0}, error[3];
    for (int i = 0; i < SEEDS; i++) {
        struct reversed r = {0};
        page_need(page, page->failed || reversing_train(wrong, seed + (uint64_t)i, steps, &r));
        early[i] = r.loss_100;
        last[i] = r.loss_last;
        right[i] = 100 * r.right;
    }
    const double means[] = {mean_with_error(early, &error[0]), mean_with_error(last, &error[1]),
                            mean_with_error(right, &error[2])};
    PAGE_ROW(page, cell_word(wrong_name(wrong)), cell_of(means[0]), cell_of(error[0]),
             cell_of(means[1]), cell_of(error[1]), cell_of(means[2]), cell_of(error[2]));
}

static void write_table(struct page *page, uint64_t seed, int64_t steps,
                        double right[WRONGS][SEEDS])
{
    page_table(page, "training",
               "ds in attention | at 100 .2 | error ~1 | at end .2 | its error ~1 | right % .0 | "
               "error % .0");
    for (int wrong = 0; wrong < WRONGS; wrong++)
        write_row(page, (enum wrong)wrong, seed, steps, right[wrong]);
}

static void write(struct page *page, const struct explain_options *o)
{
    const int64_t steps = o->steps > 0 ? o->steps : 300;
    double right[WRONGS][SEEDS] = {{0}};
    page_title(page, "a wrong gradient that learns at first");
    page_text(page,
              "Encoder-decoders learn to reverse %d symbols of %d, %lld steps each. They differ in "
              "one line: the gradient of the softmax in attention. A row has the loss at step 100 "
              "and at the end, and the share of right symbols: means of the same %d seeds of "
              "weights and data, from %lld on; \"error\" is the standard error of the number "
              "before it. Guessing has a loss of ln %d = %.4g, and %.3g %% right.",
              REVERSING_LENGTH, REVERSING_SYMBOLS, (long long)steps, SEEDS, (long long)o->seed,
              REVERSING_SYMBOLS, math_log(REVERSING_SYMBOLS), 100.0 / REVERSING_SYMBOLS);
    write_table(page, (uint64_t)o->seed, steps, right);
    int worse = 0;
    for (int i = 0; i < SEEDS; i++)
        worse += right[WRONG_DIAGONAL][i] < right[WRONG_ZERO][i];
    page_text(
        page,
        "With the mistake the loss falls at first, since many ds have the right sign. But "
        "its ds do not sum to 0, so scores drift and rows saturate. Here %d of %d models with "
        "the mistake have fewer symbols right in the end than with no gradient at all.",
        worse, SEEDS);
    page_text(
        page,
        "The Jacobian of softmax, J_ij = da_i/ds_j, ignores two shifts. One of the scores "
        "changes no weight: the rows of J sum to 0, and so do the ds. One of g changes nothing,"
        " since the weights always sum to 1: the columns of J sum to 0. The mistake a(1 - a)g "
        "keeps neither of these two properties. Restoring the first, less its mean, repairs two"
        " small models, that of lesson 4 and that of softback explain wrong-gradient, with each"
        " of 3 seeds. It does not repair the model of the live page: 14 to 58 %% of its digits "
        "are right in the end, depending on task and learning rate. Restoring both repairs that"
        " one too at rates up to 0.003 (88 to 100 %%), and not at 0.01 (24 to 58 %%). The "
        "correct gradient learns each time (99 to 100 %%).");
    page_text(
        page,
        "A model can learn in spite of the mistake; which one does depends on the seed, and so "
        "the error is large. A falling loss does not prove a gradient right. A gradient "
        "check does: softback explain gradcheck.");
}

const struct topic topic_wrong_gradient = {
    "wrong-gradient", "a model with the right and three wrong softmax gradients",
    TAKES_STEPS | TAKES_SEED, NULL, write};
