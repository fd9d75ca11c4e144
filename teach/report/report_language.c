/* What a report says of a language model: how well it predicts the text, and perplexity over time.
 */
#include "teach/report/chart.h"
#include "teach/report/report.h"
#include <math.h>

/* The loss of the text's symbols, in nats, and as bits. */
static bool begin(struct html *html, const struct report *r, const void *unused)
{
    const sb_model *model = &r->subject->model;
    sb_tape tape;
    (void)unused;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *loss = model->kind->loss(model->self, r->subject->example.batch, SB_LOSS_MEAN);
    const double nats = loss ? sb_tensor_value(loss) : (double)NAN;
    html_add(html, "<p>The text: ");
    html_code(html, r->text);
    html_print(html,
               ". The model predicts each of its symbols from those before it: %.3f nats or %.3f "
               "bits a symbol, a perplexity of %.2f.</p>\n",
               nats, nats / log(2), exp(nats));
    return sb_tape_end(&tape) && loss;
}

static void add_perplexity(struct html *html, const struct report *r)
{
    chart_add(html, &(struct chart){.title = "Perplexity of the held-out text",
                                    .unit = "symbols",
                                    .curves = 1,
                                    .curve = {{"held out", r->log, RUN_PERPLEXITY}},
                                    .logarithmic = true});
}

const struct report_kind report_language = {
    .title = "A language model", .outputs = "symbols", .begin = begin, .curves = add_perplexity};
