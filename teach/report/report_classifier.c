/* What a report says of a classifier: the text's label, and which labels it confuses. */
#include "models/classifier.h"
#include "models/confusion.h"
#include "teach/report/report.h"

static bool find(void *confusion, const struct report *r)
{
    return !r->pairs || confusion_measure(confusion, r->subject->model.self, r->pairs);
}

static void forget(void *confusion)
{
    confusion_free(confusion);
}

static bool begin(struct html *html, const struct report *r, const void *confusion)
{
    const sb_classifier *model = r->subject->model.self;
    sb_class class;
    (void)confusion;
    if (!sb_classify(model, &r->text, 1, &class))
        return false;
    html_add(html, "<p>The text: ");
    html_code(html, r->text);
    html_add(html, ". The model classifies it as ");
    html_code(html, sb_classifier_label(model, class.label));
    html_print(html, ", with probability %.3f.</p>\n", class.probability);
    if (!r->pairs)
        html_add(html, "<p>No held-out texts were given (--data FILE).</p>\n");
    return true;
}

static bool add_confusion(struct html *html, const struct report *r, const void *confusion)
{
    enum { WIDEST_TABLE = 64 };
    const sb_classifier *model = r->subject->model.self;
    const struct confusion *c = confusion;
    if (!r->pairs)
        return true;
    report_part(html, "Errors");
    html_print(html,
               "<h2>What it confuses</h2>\n<p>%lld texts that it was not trained on: accuracy "
               "%.2f %%, macro-F1 %.4f.",
               (long long)c->texts, 100 * confusion_accuracy(c), c->f1);
    if (c->labels > WIDEST_TABLE) {
        html_print(html, " The table of %lld labels is too wide for a page.</p>\n",
                   (long long)c->labels);
        return true;
    }
    html_add(html, " Rows: their labels. Columns: what they were classified as.</p>\n");
    html_table(html, "", "");
    for (int64_t i = 0; i < c->labels; i++)
        html_head(html, "col", sb_classifier_label(model, i));
    for (int64_t label = 0; label < c->labels; label++) {
        html_row(html, sb_classifier_label(model, label));
        for (int64_t taken = 0; taken < c->labels; taken++)
            html_cell(html, taken == label ? "<b>%lld</b>" : "%lld",
                      (long long)confusion_at(c, label, taken));
    }
    html_table_end(html);
    return true;
}

const struct report_kind report_classifier = {.title = "A classifier",
                                              .outputs = "labels",
                                              .size = sizeof(struct confusion),
                                              .find = find,
                                              .forget = forget,
                                              .begin = begin,
                                              .errors = add_confusion};
