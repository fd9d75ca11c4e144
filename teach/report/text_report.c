#include "teach/report/text_report.h"
#include "models/drawing_graph.h"
#include "models/training/evaluation.h"
#include "teach/report/chart.h"
#include "teach/report/curves.h"
#include "teach/report/details.h"
#include "teach/report/inside.h"
#include "teach/report/maps.h"
#include "teach/report/tabs.h"
#include "teach/report/zoom.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>

static const char *text_head_name(const void *context, int64_t row)
{
    static _Thread_local char text[64];
    const sb_transformer_options *o = context;
    snprintf(text, sizeof text, "layer %lld, head %lld", (long long)(row / o->heads + 1),
             (long long)(row % o->heads + 1));
    return text;
}

/* ---- what the model makes of the text ---- */

static bool add_classified(struct html *html, const struct text_subject *s, const char *text)
{
    const sb_classifier *model = s->checkpoint->subject.self;
    sb_class found;
    if (!sb_classify(model, &text, 1, &found))
        return false;
    html_add(html, "</code>. The model classifies it as <code>");
    html_text(html, sb_classifier_label(model, found.label));
    html_print(html, "</code>, with probability %.3f.</p>\n", found.probability);
    return true;
}

/* The loss of the text's symbols, in nats, and as bits. */
static bool add_predicted(struct html *html, const struct text_subject *s)
{
    const sb_model *model = &s->checkpoint->subject;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *loss = model->kind->loss(model->self, s->batch, SB_LOSS_MEAN);
    const double nats = loss ? sb_tensor_value(loss) : (double)NAN;
    if (loss)
        html_print(
            html,
            "</code>. The model predicts each of its symbols from those before it: %.3f nats "
            "or %.3f bits a symbol, a perplexity of %.2f.</p>\n",
            nats, nats / log(2), exp(nats));
    return sb_tape_end(&tape) && loss;
}

static bool add_facts(struct html *html, const struct text_subject *s, const char *text)
{
    const sb_transformer_options *o = s->options;
    html_print(html,
               "<p>A %s with %lld weights: width %lld, %lld heads, feed-forward %lld, %d layers, "
               "%lld %s.</p>\n<p>The text: <code>",
               s->causal ? "language model" : "classifier",
               (long long)sb_parameters_size(s->checkpoint->weights), (long long)o->width,
               (long long)o->heads, (long long)o->feed_forward, s->layers, (long long)s->choices,
               s->causal ? "symbols" : "labels");
    html_text(html, text);
    return s->causal ? add_predicted(html, s) : add_classified(html, s, text);
}

/* ---- perplexity over time ---- */

static bool add_perplexity(struct html *html, const struct run_log *log)
{
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

/* ---- the confusion table ---- */

static void add_confusion_row(struct html *html, const sb_classifier *model,
                              const struct confusion *c, int64_t label)
{
    html_add(html, "<tr><th scope=\"row\">");
    html_text(html, sb_classifier_label(model, label));
    html_add(html, "</th>");
    for (int64_t taken = 0; taken < c->labels; taken++)
        html_print(html, taken == label ? "<td><b>%lld</b></td>" : "<td>%lld</td>",
                   (long long)confusion_at(c, label, taken));
    html_add(html, "</tr>\n");
}

static void add_confusion(struct html *html, const sb_classifier *model, const struct confusion *c)
{
    enum { WIDEST_TABLE = 64 };
    html_print(html,
               "<h2>What it confuses</h2>\n<p>%lld texts that it was not trained on: accuracy "
               "%.2f %%, macro-F1 %.4f.",
               (long long)c->texts, 100 * confusion_accuracy(c), c->f1);
    if (c->labels > WIDEST_TABLE) {
        html_print(html, " The table of %lld labels is too wide for a page.</p>\n",
                   (long long)c->labels);
        return;
    }
    html_add(html, " Rows: their labels. Columns: what they were classified as.</p>\n"
                   "<div class=\"wide\"><table>\n<tr><td></td>");
    for (int64_t i = 0; i < c->labels; i++) {
        html_add(html, "<th scope=\"col\">");
        html_text(html, sb_classifier_label(model, i));
        html_add(html, "</th>");
    }
    html_add(html, "</tr>\n");
    for (int64_t label = 0; label < c->labels; label++)
        add_confusion_row(html, model, c, label);
    html_add(html, "</table></div>\n");
}

/* ---- the page ---- */

static bool add_parts(struct html *html, const struct text_subject *s,
                      const struct confusion *confusion, const struct run_log *log,
                      uint64_t data_hash)
{
    tabs_begin(html, "Curves");
    zoom_add(html);
    bool ok = curves_add(html, log, s->choices) && (!s->causal || add_perplexity(html, log));
    if (confusion) {
        tabs_next(html, "Errors");
        add_confusion(html, s->checkpoint->subject.self, confusion);
    }
    tabs_next(html, "Attention");
    ok = ok && maps_add_text(html, s);
    tabs_next(html, "Gradients");
    ok = ok && inside_add(html, log, s->checkpoint->weights, s->layers * s->options->heads,
                          text_head_name, s->options);
    tabs_next(html, "Details");
    ok = ok && details_add(html, s->checkpoint, data_hash, log->seconds);
    tabs_end(html);
    zoom_script(html);
    return ok;
}

char *text_report_page(const struct text_subject *s, const char *title, const char *text,
                       const struct confusion *confusion, const struct run_log *log,
                       uint64_t data_hash)
{
    struct html html = {0};
    html_begin(&html, title, drawing_svg_rules);
    const bool ok = add_facts(&html, s, text) && add_parts(&html, s, confusion, log, data_hash);
    char *page = html_end(&html);
    if (ok)
        return page;
    memory_free(page);
    return NULL;
}
