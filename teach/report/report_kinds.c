/* What a report says of each kind of model. */
#include "models/classifier.h"
#include "models/score.h"
#include "models/translation.h"
#include "teach/report/chart.h"
#include "teach/report/maps.h"
#include "teach/report/report.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/*
 * ---- an encoder-decoder: whether the run is good, at a glance ----
 *
 * A verdict with its numbers, the model's task, if it has one, and the text with what the model
 * writes for it.
 */

/* The verdict: a word for the style, a sentence, and what to do next, as HTML. */
struct verdict_text {
    const char *mood, *says, *next;
};

static struct verdict_text verdict_of(const struct run_end *end, double guessing)
{
    const double loss = isnan(end->held_out_loss) ? end->last_loss : end->held_out_loss;
    if (isnan(loss))
        return (struct verdict_text){"open", "There is no log of its training.",
                                     "give <code>--log FILE</code>, or train with <code>--report"
                                     "</code>"};
    if (end->exact >= 99)
        return (struct verdict_text){"good", "It has learnt its task.",
                                     "try texts that are longer than those it has seen (<code>"
                                     "--input</code>), or a smaller model (<code>--width</code>)"};
    if (end->exact >= 80)
        return (struct verdict_text){"good", "It has nearly learnt its task.",
                                     "see what its errors have in common, and train longer (<code>"
                                     "--steps</code>)"};
    if (loss < 0.7 * guessing)
        return (struct verdict_text){"open",
                                     "It has learnt a part: its loss is well below guessing.",
                                     end->held_out_loss > 2 * end->last_loss
                                         ? "it fits its training texts better than others: give it "
                                           "more of them, or <code>--dropout</code>"
                                         : "train longer (<code>--steps</code>), or a larger "
                                           "model (<code>--width</code>)"};
    return (struct verdict_text){
        "bad", "It has hardly learnt: its loss is near guessing.",
        "try another <code>--learning-rate</code>; <em>Gradients</em> shows which parameters get "
        "none, <em>Check and tape</em> whether backward is right"};
}

/* What to do next: of the schedule, where that is known, otherwise as the verdict says. */
static void add_next(struct html *html, const struct verdict_text *verdict,
                     const struct run_end *end, const sb_schedule *schedule)
{
    html_add(html, "<p>Next: ");
    if ((double)schedule->warmup > end->steps / 4)
        html_print(html,
                   "the warm-up takes %lld of the %.10g steps: give a shorter one (<code>--warmup "
                   "%.0f</code>) or more steps; ",
                   (long long)schedule->warmup, end->steps, floor(end->steps / 10));
    if (end->falls && !(end->exact >= 99))
        html_print(html,
                   "the held-out loss still falls at the end: train longer, <code>--steps "
                   "%.10g</code>.</p>\n",
                   3 * end->steps);
    else
        html_print(html, "%s.</p>\n", verdict->next);
}

static void fact(struct html *html, const char *name, int digits, double x, const char *unit)
{
    if (!isnan(x))
        html_say(html, "<p><span>%s</span> <strong>%.*g%s</strong></p>\n", name, digits, x, unit);
}

static void add_overview(struct html *html, const struct subject *s, const char *text,
                         const struct checkpoint *c, const struct run_log *run)
{
    const struct run_end end = run_end(run);
    const double guessing = log((double)s->example.choices);
    const struct verdict_text verdict = verdict_of(&end, guessing);
    html_print(html, "<section class=\"overview %s\">\n<p class=\"verdict\">%s", verdict.mood,
               verdict.says);
    if (!isnan(end.exact))
        html_say(html, " %.3g&#160;%% of held-out texts are exactly right.", end.exact);
    else if (!isnan(end.last_loss))
        html_say(html, " %.3g nats a symbol; guessing has %.3g.",
                 isnan(end.held_out_loss) ? end.last_loss : end.held_out_loss, guessing);
    html_add(html, "</p>\n<p>For ");
    html_code(html, text);
    html_add(html, " it writes ");
    html_code(html, s->example.target);
    html_add(html, ".</p>\n");
    add_next(html, &verdict, &end, &c->settings.trainer.optimiser.schedule);
    html_add(html, "<details><summary>All numbers</summary>\n<div class=\"facts\">\n");
    if (c->task[0]) {
        html_add(html, "<p><span>task</span> <strong>");
        html_text(html, c->task);
        html_add(html, "</strong></p>\n");
    }
    fact(html, "held-out texts exactly right", 3, end.exact, " %");
    fact(html, "held-out loss, nats a symbol", 3, end.held_out_loss, "");
    fact(html, "loss of guessing", 3, guessing, "");
    fact(html, "loss at the start", 3, end.first_loss, "");
    fact(html, "loss at the end", 3, end.last_loss, "");
    fact(html, "steps", 10, end.steps, "");
    html_add(html, "</div>\n");
    if (!isnan(end.last_loss))
        html_add(html, "<p>A nat is the unit of natural logarithms: ln 2 = 0.69 nats are one bit. "
                       "The loss at the end is a mean over the last tenth of the steps.</p>\n");
    if (!isnan(end.best_step))
        html_say(html,
                 "<p>The held-out numbers are those of the best evaluation in training, at step "
                 "%.10g, whose weights were saved as this model. An evaluation decodes up to %lld "
                 "texts.</p>\n",
                 end.best_step, (long long)c->settings.evaluate_pairs);
    html_add(html, "</details>\n</section>\n");
}

/* ---- an encoder-decoder: what it writes, and where that is wrong ---- */

enum { MOST_PAIRS = 200, SHOWN = 12 };

struct errors {
    int64_t count; /* of the pairs that were decoded */
    char **output; /* of each */
    int64_t wrong; /* outputs that differ from their targets, the worst first */
    struct translation_error *found;
};

static bool pairs_find(void *found, const struct report *r)
{
    struct errors *e = found;
    const int64_t all = r->pairs ? sb_pairs_count(r->pairs) : 0,
                  n = all < MOST_PAIRS ? all : MOST_PAIRS;
    if (n == 0)
        return true;
    e->output = memory_new((size_t)n * sizeof *e->output);
    if (!e->output)
        return sb_fail("report: out of memory for %lld outputs", (long long)n);
    if (!sb_translate_texts(r->subject->model.self, sb_pairs_sources(r->pairs), n, NULL, e->output))
        return false;
    e->count = n;
    e->found = translation_errors(subject_attention(r->subject, NULL)->queries.vocabulary, r->pairs,
                                  e->output, n, &e->wrong);
    return e->found != NULL;
}

static void pairs_forget(void *found)
{
    struct errors *e = found;
    for (int64_t i = 0; i < e->count; i++)
        sb_free(e->output[i]);
    memory_free(e->output);
    memory_free(e->found);
}

static bool pairs_begin(struct html *html, const struct report *r, const void *found)
{
    const struct errors *e = found;
    add_overview(html, r->subject, r->text, r->checkpoint, r->log);
    if (e->count == 0) {
        html_add(html, "<p>No held-out pairs were given (--data FILE).</p>\n");
        return true;
    }
    html_print(html, "<p>Of %lld %s it writes %lld wrong", (long long)e->count, r->pairs_are,
               (long long)e->wrong);
    if (e->wrong > 0) {
        const int64_t i = e->found[0].pair;
        html_add(html, ", the worst ");
        html_code(html, e->output[i]);
        html_add(html, " for ");
        html_code(html, sb_pairs_source(r->pairs, i));
        html_add(html, ", where ");
        html_code(html, sb_pairs_target(r->pairs, i));
        html_add(html, " is expected");
    }
    html_add(html, ".</p>\n");
    return true;
}

/* A text, marked where it differs: symbol by symbol from one of the same size, otherwise between
   the same beginnings and the same ends. */
static void cell(struct html *html, const char *text, const char *other)
{
    const size_t size = strlen(text), others = strlen(other);
    size_t from = 0, to = size;
    while (text[from] && text[from] == other[from])
        from++;
    while (to > from && to + others > from + size && text[to - 1] == other[to + others - size - 1])
        to--;
    bool marked = false;
    html_add(html, "<td><code>");
    for (size_t i = 0, n; i < size; i += n) {
        for (n = 1; (text[i + n] & 0xc0) == 0x80;) /* the bytes of a symbol in UTF-8 */
            n++;
        const bool differs =
            i + n > from && i < to && (size != others || memcmp(text + i, other + i, n) != 0);
        if (differs != marked)
            html_add(html, differs ? "<mark>" : "</mark>");
        marked = differs;
        buffer_escape(&html->text, text + i, n, "&<>\"");
    }
    html_print(html, "%s</code></td>", marked ? "</mark>" : "");
}

static void picture(struct html *html, const struct maps *maps)
{
    html_add(html, "<h2>Attention of the worst</h2>\n<p>Rows: what it writes. Columns: the text. "
                   "Weights of the last layer, mean over its heads, in per cent.</p>\n"
                   "<div class=\"wide\">");
    attention_picture(html, maps);
    html_add(html, "</svg></div>\n");
}

static bool add_errors(struct html *html, const struct report *r, const void *found)
{
    const struct errors *e = found;
    struct subject worst;
    if (e->wrong == 0)
        return true;
    report_part(html, "Errors");
    html_print(html,
               "<h2>Errors</h2>\n<p>%lld of %lld, the worst first. Bold: where expected and "
               "written differ.</p>\n<div class=\"texts errors\">\n",
               (long long)(e->wrong < SHOWN ? e->wrong : SHOWN), (long long)e->wrong);
    html_table(html, "", "text;expected;written;edits");
    for (int64_t n = 0; n < e->wrong && n < SHOWN; n++) {
        const int64_t i = e->found[n].pair;
        html_row(html, NULL);
        const char *source = sb_pairs_source(r->pairs, i), *target = sb_pairs_target(r->pairs, i);
        cell(html, source, source);
        cell(html, target, e->output[i]);
        cell(html, e->output[i], target);
        html_cell(html, "%lld", (long long)e->found[n].distance);
    }
    html_table_end(html);
    html_add(html, "</div>\n");
    const char *text = sb_pairs_source(r->pairs, e->found[0].pair),
               *written = e->output[e->found[0].pair];
    if (strlen(text) > 64 || strlen(written) >= 64)
        return true; /* too long to be drawn */
    const bool ok =
        subject_begin(&worst, &r->subject->model, text, written) && maps_of(html, &worst, picture);
    subject_end(&worst);
    return ok;
}

const struct report_kind report_pairs = {.title = "An encoder-decoder",
                                         .outputs = "symbols",
                                         .size = sizeof(struct errors),
                                         .find = pairs_find,
                                         .forget = pairs_forget,
                                         .begin = pairs_begin,
                                         .errors = add_errors};

/* ---- a language model: how well it predicts the text, and perplexity over time ---- */

/* The loss of the text's symbols, in nats, and as bits. */
static bool language_begin(struct html *html, const struct report *r, const void *unused)
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

const struct report_kind report_language = {.title = "A language model",
                                            .outputs = "symbols",
                                            .begin = language_begin,
                                            .curves = add_perplexity};

/* ---- a classifier: the text's label, and which labels it confuses ---- */

static bool classifier_find(void *confusion, const struct report *r)
{
    return !r->pairs || confusion_measure(confusion, r->subject->model.self, r->pairs);
}

static void classifier_forget(void *confusion)
{
    confusion_free(confusion);
}

static bool classifier_begin(struct html *html, const struct report *r, const void *confusion)
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
                                              .find = classifier_find,
                                              .forget = classifier_forget,
                                              .begin = classifier_begin,
                                              .errors = add_confusion};
