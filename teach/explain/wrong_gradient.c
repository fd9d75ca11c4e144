/* softback explain wrong-gradient: what happens to a model trained with a wrong softmax. */
#include "teach/explain/reversing.h"
#include "teach/explain/topics.h"
#include "tensor/mathematics.h"

static void write(struct page *page, const struct explain_options *o)
{
    static const struct page_column columns[] = {{"ds in attention", PAGE_WORD, 0},
                                                 {"loss at 1", PAGE_NUMBER, 2},
                                                 {"100", PAGE_NUMBER, 2},
                                                 {"end", PAGE_NUMBER, 2},
                                                 {"", PAGE_BAR, 2},
                                                 {"right %", PAGE_NUMBER, 0}};
    int64_t steps = o->steps > 0 ? o->steps : 400;
    page_title(page, "a wrong gradient that learns at first");
    page_text(
        page,
        "Four encoder-decoders learn to reverse %d symbols of %d, %lld steps each, with the same "
        "initial weights and data. They differ in one line: the gradient of the softmax in "
        "attention. Guessing has a loss of ln %d = %.4g.",
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
    page_text(
        page,
        "With the mistake the loss falls at first, since many ds have the right sign. But its ds "
        "do not sum to 0: scores drift, rows saturate, and most models end worse than with no "
        "gradient at all.");
    page_text(
        page,
        "The true Jacobian ignores two shifts: one of the scores, so that the ds of a row sum to "
        "0, and one of g, since the weights always sum to 1. "
        "The mistake a(1 - a)g keeps neither of these two properties. Restoring the first, less "
        "its mean, repairs "
        "two small models, that of lesson 4 and that of softback explain wrong-gradient, with each "
        "of 3 seeds. It "
        "does not repair the model of the live page: 14 to 58 %% of its digits are right in the "
        "end, depending on "
        "task and learning rate. Restoring both repairs that one too at rates up to 0.003 (88 to "
        "100 %%), and not "
        "at 0.01 (24 to 58 %%). The right gradient learns each time (99 to 100 %%).");
    page_text(page,
              "This depends on the seed (--seed 2 learns in spite of the mistake), so a falling "
              "loss does "
              "not prove a gradient right. A gradient check does: softback explain gradcheck.");
}

const struct topic topic_wrong_gradient = {
    "wrong-gradient", "four models, three of them with a wrong softmax gradient",
    TAKES_STEPS | TAKES_SEED, NULL, write};
