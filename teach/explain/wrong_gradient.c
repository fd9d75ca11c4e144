/* softback explain wrong-gradient: what happens to a model trained with a wrong softmax. */
#include "teach/explain/row.h"
#include "teach/explain/topics.h"
#include "teach/explain/wrong_softmax.h"
#include "tensor/mathematics.h"

enum { SEEDS = 3 };

/* Trains with one gradient from each seed, and adds the row of their means and standard errors. */
static void write_row(struct page *page, enum wrong wrong, uint64_t seed, int steps,
                      double right[SEEDS])
{
    double early[SEEDS] = {0}, last[SEEDS] = {0}, error[3];
    for (int i = 0; i < SEEDS; i++) {
        struct reverse_result r = {0};
        page_need(page, page->failed ||
                            reverse_train(wrong_gradients[wrong], seed + (uint64_t)i, steps, &r));
        early[i] = r.early;
        last[i] = r.last;
        right[i] = 100 * r.accuracy;
    }
    const double means[] = {row_mean(SEEDS, early, &error[0]), row_mean(SEEDS, last, &error[1]),
                            row_mean(SEEDS, right, &error[2])};
    PAGE_NUMBERS(page, wrong_name(wrong), means[0], error[0], means[1], error[1], means[2],
                 error[2]);
}

static void write_table(struct page *page, uint64_t seed, int steps, double right[WRONGS][SEEDS])
{
    page_table(page, "training",
               "ds in attention | at 100 .2 | error ~1 | at end .2 | its error ~1 | right % .0 | "
               "error % .0");
    for (int wrong = 0; wrong < WRONGS; wrong++)
        write_row(page, (enum wrong)wrong, seed, steps, right[wrong]);
}

/* From teach/wrong_gradients.md. */
static void write_measured(struct page *page)
{
    static const char *const rows[][4] = {
        {"a(g - avg): right", "both", "99 to 100 %", "100 %"},
        {"a(1-a)g: the mistake", "neither", "13 to 29 %", "12 to 18 %"},
        {"a(1-a)g less its mean", "shift of s", "15 to 58 %", "14 to 27 %"},
        {"a(1-a)(g - avg)", "shift of g", "68 to 98 %", "20 to 47 %"},
        {"a(1-a)(g - avg) less its mean", "both", "88 to 100 %", "24 to 58 %"}};
    page_table(page, "right digits of the live page's model",
               "ds | ignores | rate 0.003 or less | 0.01 (race)");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        PAGE_ROW(page, cell_word(rows[i][0]), cell_word(rows[i][1]), cell_word(rows[i][2]),
                 cell_word(rows[i][3]));
}

static void write(struct page *page, const struct explain_options *o)
{
    const int steps = o->steps > 0 ? (int)o->steps : 800;
    const uint64_t seed = o->seed > 0 ? (uint64_t)o->seed : 1; /* those of lesson 4 */
    double right[WRONGS][SEEDS] = {{0}};
    page_title(page, "a wrong gradient that learns at first");
    page_text(page,
              "The encoder-decoders of lesson 4 learn to reverse %d symbols of %d, %d steps each. "
              "They differ in one line: the gradient of the softmax in attention. A row has the "
              "loss at step 100 and at the end, and the share of right symbols: means of the same "
              "%d seeds of weights and data, from %lld on; \"error\" is the standard error of the "
              "number before it. Guessing has a loss of ln %d = %.4g, and %.3g %% right.",
              REVERSE_LENGTH, REVERSE_SYMBOLS, steps, SEEDS, (long long)seed, REVERSE_SYMBOLS,
              math_log(REVERSE_SYMBOLS), 100.0 / REVERSE_SYMBOLS);
    write_table(page, seed, steps, right);
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
        "The Jacobian of softmax, J_ij = da_i/ds_j, ignores two shifts. A shift of all scores "
        "changes no weight: the rows of J sum to 0, and so do the ds. A shift of all g changes no "
        "ds, since the weights always sum to 1: the columns of J sum to 0. The mistake a(1 - a)g "
        "has neither of these two properties. With its mean subtracted it has the first, with the "
        "average subtracted from g the second, with both changes both. The small model of lesson "
        "4 learns with the first alone, with each of 3 seeds. The model of the live page does "
        "not: it needs both, and a learning rate of 0.003 or less. With the second alone it "
        "learns in part there. Only the correct gradient learns each time.");
    write_measured(page);
    page_text(
        page,
        "A model can learn in spite of the mistake; which one does depends on the seed, and so "
        "the error is large. A falling loss does not prove a gradient right. A gradient "
        "check does: softback explain gradcheck.");
}

const struct topic topic_wrong_gradient = {
    "wrong-gradient", "a model with the right and three wrong softmax gradients",
    TAKES_STEPS | TAKES_SEED, NULL, write};
