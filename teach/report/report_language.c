/* What a report says of a language model: how well it predicts the text, and perplexity over time.
 */
#include "models/language_model.h"
#include "teach/report/chart.h"
#include "teach/report/report.h"
#include "tensor/memory.h"
#include <math.h>

/* The loss of the text's symbols, in nats, and as bits. */
static bool add_predicted(struct html *html, const struct subject *s)
{
    const sb_model *model = &s->model;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *loss = model->kind->loss(model->self, s->example.batch, SB_LOSS_MEAN);
    const double nats = loss ? sb_tensor_value(loss) : (double)NAN;
    if (loss)
        html_print(
            html,
            "</code>. The model predicts each of its symbols from those before it: %.3f nats "
            "or %.3f bits a symbol, a perplexity of %.2f.</p>\n",
            nats, nats / log(2), exp(nats));
    return sb_tape_end(&tape) && loss;
}

static bool begin(struct html *html, const struct report *r, void *found)
{
    const sb_transformer_options *o =
        &sb_language_model_options_of(r->subject->model.self)->transformer;
    (void)found;
    html_say(html,
             "<p>A language model with %lld weights: width %lld, %lld heads, feed-forward %lld, "
             "%d layers, %lld symbols.</p>\n<p>The text: <code>",
             (long long)sb_parameters_size(r->checkpoint->weights), (long long)o->width,
             (long long)o->heads, (long long)o->feed_forward, o->decoder_layers,
             (long long)r->subject->example.choices);
    html_text(html, r->text);
    return add_predicted(html, r->subject);
}

static bool add_perplexity(struct html *html, const struct report *r)
{
    const struct run_log *log = r->log;
    const int64_t n = log->count;
    double *step = memory_new((size_t)(2 * n + 1) * sizeof *step);
    if (!step)
        return sb_fail("out of memory for the log");
    double *perplexity = step + n;
    for (int64_t i = 0; i < n; i++) {
        step[i] = log->line[i].step;
        perplexity[i] = exp(log->line[i].held_out_loss);
    }
    const struct chart chart = {.title = "Perplexity of the held-out text",
                                .unit = "symbols",
                                .points = n,
                                .x = step,
                                .curves = 1,
                                .curve = {{"held out", perplexity, .dots = true}},
                                .logarithmic = true,
                                .level = NAN};
    chart_add(html, &chart);
    memory_free(step);
    return true;
}

const struct report_kind report_language = {.begin = begin, .curves = add_perplexity};
