/* What a report says of a classifier: the text's label, and which labels it confuses. */
#include "models/classifier.h"
#include "models/confusion.h"
#include "teach/report/report.h"
#include "tensor/memory.h"

static void close_confusion(void *found)
{
    confusion_free(found);
    memory_free(found);
}

static void *open_confusion(const struct report *r)
{
    struct confusion *confusion = memory_new(sizeof *confusion);
    if (!confusion)
        return sb_fail("report: out of memory");
    if (!r->pairs || confusion_measure(confusion, r->subject->model.self, r->pairs))
        return confusion;
    close_confusion(confusion);
    return NULL;
}

static bool begin(struct html *html, const struct report *r, void *found)
{
    const sb_classifier *model = r->subject->model.self;
    const sb_transformer_options *o = &sb_classifier_options_of(model)->transformer;
    sb_class class;
    (void)found;
    if (!sb_classify(model, &r->text, 1, &class))
        return false;
    html_say(html,
             "<p>A classifier with %lld weights: width %lld, %lld heads, feed-forward %lld, %d "
             "layers, %lld labels.</p>\n<p>The text: <code>",
             (long long)sb_parameters_size(r->checkpoint->weights), (long long)o->width,
             (long long)o->heads, (long long)o->feed_forward, o->encoder_layers,
             (long long)r->subject->example.choices);
    html_text(html, r->text);
    html_add(html, "</code>. The model classifies it as <code>");
    html_text(html, sb_classifier_label(model, class.label));
    html_print(html, "</code>, with probability %.3f.</p>\n", class.probability);
    return true;
}

static void add_row(struct html *html, const sb_classifier *model, const struct confusion *c,
                    int64_t label)
{
    html_add(html, "<tr>");
    html_head(html, "row", sb_classifier_label(model, label));
    for (int64_t taken = 0; taken < c->labels; taken++)
        html_print(html, taken == label ? "<td><b>%lld</b></td>" : "<td>%lld</td>",
                   (long long)confusion_at(c, label, taken));
    html_add(html, "</tr>\n");
}

static bool add_confusion(struct html *html, const struct report *r, void *found)
{
    enum { WIDEST_TABLE = 64 };
    const sb_classifier *model = r->subject->model.self;
    const struct confusion *c = found;
    if (!r->pairs) {
        html_add(html, "<h2>Errors</h2>\n<p>No held-out texts were given (--data FILE).</p>\n");
        return true;
    }
    html_print(html,
               "<h2>What it confuses</h2>\n<p>%lld texts that it was not trained on: accuracy "
               "%.2f %%, macro-F1 %.4f.",
               (long long)c->texts, 100 * confusion_accuracy(c), c->f1);
    if (c->labels > WIDEST_TABLE) {
        html_print(html, " The table of %lld labels is too wide for a page.</p>\n",
                   (long long)c->labels);
        return true;
    }
    html_add(html, " Rows: their labels. Columns: what they were classified as.</p>\n"
                   "<div class=\"wide\"><table>\n<tr><td></td>");
    for (int64_t i = 0; i < c->labels; i++)
        html_head(html, "col", sb_classifier_label(model, i));
    html_add(html, "</tr>\n");
    for (int64_t label = 0; label < c->labels; label++)
        add_row(html, model, c, label);
    html_add(html, "</table></div>\n");
    return true;
}

const struct report_kind report_classifier = {
    .open = open_confusion, .close = close_confusion, .begin = begin, .errors = add_confusion};
