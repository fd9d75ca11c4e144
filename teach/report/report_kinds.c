/* What a report says of each kind of model. */
#include "models/classifier.h"
#include "models/score.h"
#include "models/translation.h"
#include "teach/report/chart.h"
#include "teach/report/maps.h"
#include "teach/report/report.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- an encoder-decoder: what it writes, and where that is wrong ---- */

enum { MOST_PAIRS = 200, SHOWN = 12 };

struct errors {
    int64_t count; /* of the pairs that were decoded */
    char **output; /* of each */
    int64_t wrong; /* outputs that differ from their targets, the worst first */
    struct translation_error *found;
    char says[200]; /* what most of the errors have in common, as HTML; "": nothing */
};

/* The number of symbols in the first bytes of a text. */
static size_t symbols_of(const char *text, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += (text[i] & 0xc0) != 0x80; /* the first byte of a symbol in UTF-8 */
    return count;
}

/* A text, marked where it differs: symbol by symbol from one of the same size, otherwise between
   the same beginnings and the same ends. A long one is cut, after the first difference. */
static void marked_code(struct html *html, const char *text, const char *other)
{
    enum { MOST = 40, MORE = 20 };
    const size_t size = strlen(text), others = strlen(other), all = symbols_of(text, size);
    size_t from = 0, to = size, shown = 0;
    while (text[from] && text[from] == other[from])
        from++;
    while (to > from && to + others > from + size && text[to - 1] == other[to + others - size - 1])
        to--;
    const size_t same = text[from] == other[from] ? 0 : symbols_of(text, from),
                 most = same + MORE > MOST ? same + MORE : MOST;
    bool marked = false;
    html_add(html, "<code>");
    for (size_t i = 0, n; i < size && (shown < most || all < most + MORE); i += n, shown++) {
        for (n = 1; (text[i + n] & 0xc0) == 0x80;)
            n++;
        const bool differs =
            i + n > from && i < to && (size != others || memcmp(text + i, other + i, n) != 0);
        if (differs != marked)
            html_add(html, differs ? "<mark>" : "</mark>");
        marked = differs;
        buffer_escape(&html->text, text + i, n, "&<>\"");
    }
    html_print(html, "%s</code>", marked ? "</mark>" : "");
    if (shown < all)
        html_print(html, " ... (%lld more characters)", (long long)(all - shown));
}

static void cell(struct html *html, const char *text, const char *other)
{
    html_add(html, "<td>");
    marked_code(html, text, other);
    html_add(html, "</td>");
}

/* ---- what errors have in common ---- */

/* The symbols of an output and of its target. */
struct symbols {
    int32_t *of[2];
    int64_t n[2], distance;
};

static int64_t same_beginning(const struct symbols *s)
{
    int64_t i = 0;
    while (i < s->n[0] && i < s->n[1] && s->of[0][i] == s->of[1][i])
        i++;
    return i;
}

/* Once or more, and nothing else differs. */
static bool exchanges(const struct symbols *s)
{
    const int32_t *a = s->of[0], *b = s->of[1];
    const int64_t n = s->n[0];
    for (int64_t i = 0; i < n && n == s->n[1]; i++) {
        if (a[i] == b[i])
            continue;
        if (i + 1 == n || a[i] != b[i + 1] || a[i + 1] != b[i])
            return false;
        i++;
    }
    return n == s->n[1];
}

static int by_number(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Changes the order of both. */
static bool reorders(const struct symbols *s)
{
    for (int i = 0; i < 2; i++)
        qsort(s->of[i], (size_t)s->n[i], sizeof **s->of, by_number);
    return s->n[0] == s->n[1] && same_beginning(s) == s->n[0];
}

static bool differs_once(const struct symbols *s)
{
    return s->distance == 1 && s->n[0] == s->n[1];
}

static bool is_empty(const struct symbols *s)
{
    return s->n[0] == 0;
}

static bool is_cut(const struct symbols *s)
{
    return s->n[0] > 0 && same_beginning(s) == s->n[0];
}

static bool goes_on(const struct symbols *s)
{
    return same_beginning(s) == s->n[1];
}

static bool is_shorter(const struct symbols *s)
{
    return s->n[0] < s->n[1];
}

static bool is_longer(const struct symbols *s)
{
    return s->n[0] > s->n[1];
}

/* The special ones first; a general one is said where it holds for a fifth more. */
static const struct pattern {
    bool (*holds)(const struct symbols *s);
    const char *says;
} patterns[] = {{is_empty, "are empty: it ends at once"},
                {exchanges, "have neighbouring symbols exchanged, and are right otherwise"},
                {differs_once, "differ in one symbol only"},
                {is_cut, "are right as far as they go, but end too early"},
                {goes_on, "are right, but go on after the end"},
                {is_shorter, "are too short"},
                {is_longer, "are too long"},
                {reorders, "have the right symbols in another order"}};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

/* Counts the patterns of one error. */
static bool count_patterns(const sb_vocabulary *v, const char *output, const char *target,
                           int64_t distance, int64_t count[])
{
    struct symbols s = {.distance = distance};
    s.of[0] = sb_vocabulary_encode(v, output, &s.n[0], NULL);
    s.of[1] = s.of[0] ? sb_vocabulary_encode(v, target, &s.n[1], NULL) : NULL;
    for (int p = 0; s.of[1] && p < PATTERNS; p++)
        count[p] += patterns[p].holds(&s);
    const bool ok = s.of[1] != NULL;
    sb_free(s.of[0]);
    sb_free(s.of[1]);
    return ok;
}

/* What most of three or more errors have in common, if at least a quarter has. */
static bool find_pattern(struct errors *e, const struct report *r)
{
    const sb_vocabulary *v = subject_attention(r->subject, NULL)->queries.vocabulary;
    int64_t count[PATTERNS] = {0};
    int most = 0;
    for (int64_t n = 0; n < e->wrong; n++) {
        const int64_t i = e->found[n].pair;
        if (!count_patterns(v, e->output[i], sb_pairs_target(r->pairs, i), e->found[n].distance,
                            count))
            return false;
    }
    for (int p = 1; p < PATTERNS; p++)
        most = 5 * count[p] > 6 * count[most] ? p : most;
    if (e->wrong > 2 && 4 * count[most] >= e->wrong)
        snprintf(e->says, sizeof e->says,
                 "<p class=\"pattern\"><strong>%lld of %lld wrong outputs</strong> %s.</p>\n",
                 (long long)count[most], (long long)e->wrong, patterns[most].says);
    return true;
}

/* ---- the errors ---- */

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
    return e->found && find_pattern(e, r);
}

static void pairs_forget(void *found)
{
    struct errors *e = found;
    for (int64_t i = 0; i < e->count; i++)
        sb_free(e->output[i]);
    memory_free(e->output);
    memory_free(e->found);
}

/* The expected output of the text; NULL: unknown. */
static const char *expected(const struct report *r)
{
    if (r->expected)
        return r->expected;
    for (int64_t i = 0; r->pairs && !r->target_given && i < sb_pairs_count(r->pairs); i++)
        if (strcmp(sb_pairs_source(r->pairs, i), r->text) == 0)
            return sb_pairs_target(r->pairs, i);
    return NULL;
}

static void add_sample(struct html *html, const struct report *r)
{
    const char *written = r->subject->example.target, *target = expected(r);
    const bool right = target && strcmp(written, target) == 0;
    html_add(html, "<p>For ");
    marked_code(html, r->text, r->text);
    html_add(html, written[0] ? " it writes " : " it writes nothing");
    if (written[0])
        marked_code(html, written, target ? target : written);
    if (target && !right) {
        html_add(html, "; expected ");
        marked_code(html, target, written);
    }
    html_add(html, right ? ", which is right. " : ". ");
}

static bool pairs_begin(struct html *html, const struct report *r, const void *found)
{
    const struct errors *e = found;
    if (!verdict_add(html, r, false, e->says))
        return false;
    add_sample(html, r);
    if (e->count == 0) {
        html_add(html, "No held-out pairs were given (--data FILE).</p>\n");
        return true;
    }
    html_print(html, "Of %lld %s it writes %lld wrong", (long long)e->count, r->pairs_are,
               (long long)e->wrong);
    if (e->wrong > 0) {
        const int64_t i = e->found[0].pair;
        html_add(html, ", the worst ");
        const char *source = sb_pairs_source(r->pairs, i), *target = sb_pairs_target(r->pairs, i);
        marked_code(html, e->output[i], target);
        html_add(html, " for ");
        marked_code(html, source, source);
        html_add(html, ", where ");
        marked_code(html, target, e->output[i]);
        html_add(html, " is expected");
    }
    html_add(html, ".</p>\n");
    return true;
}

static void picture(struct html *html, const struct maps *maps)
{
    html_add(html,
             "<h2>Attention of the worst</h2>\n<p>Rows: what it writes. Columns: the text. "
             "Weights of the last layer, mean over its heads, in per cent. Look at the rows of "
             "wrong symbols: with the weight on the wrong column the model looks at the wrong "
             "place, with the weight on the right one it reads that symbol wrong.</p>\n"
             "<div class=\"wide\">");
    attention_picture(html, maps);
    html_add(html, "</svg></div>\n");
}

/* Those from the n-th up to another, the worst first. */
static void table(struct html *html, const struct report *r, const struct errors *e, int64_t n,
                  int64_t end)
{
    html_table(html, "", "text;expected;written;edits");
    for (; n < end; n++) {
        const int64_t i = e->found[n].pair;
        html_row(html, NULL);
        const char *source = sb_pairs_source(r->pairs, i), *target = sb_pairs_target(r->pairs, i);
        cell(html, source, source);
        cell(html, target, e->output[i]);
        cell(html, e->output[i], target);
        html_cell(html, "%lld", (long long)e->found[n].distance);
    }
    html_table_end(html);
}

static bool add_errors(struct html *html, const struct report *r, const void *found)
{
    const struct errors *e = found;
    const int64_t shown = e->wrong < SHOWN ? e->wrong : SHOWN;
    struct subject worst;
    if (e->wrong == 0)
        return true;
    report_part(html, "Errors");
    html_add(html, "<h2>Errors</h2>\n");
    html_add(html,
             e->says[0] ? e->says : "<p class=\"pattern\">They have no pattern in common.</p>\n");
    html_print(html,
               "<p>%lld of %lld, the worst first. Bold: from where expected and written first "
               "differ to where "
               "they last do.</p>\n"
               "<div class=\"texts errors\">\n",
               (long long)shown, (long long)e->wrong);
    table(html, r, e, 0, shown);
    if (shown < e->wrong) {
        html_print(html, "<details><summary>The other %lld</summary>\n",
                   (long long)(e->wrong - shown));
        table(html, r, e, shown, e->wrong);
        html_print(html, "<p>A report decodes up to %d texts.</p>\n</details>\n", MOST_PAIRS);
    }
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
    if (!verdict_add(html, r, false, ""))
        return false;
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
    if (!sb_classify(model, &r->text, 1, &class) || !verdict_add(html, r, true, ""))
        return false;
    html_add(html, "<p>The text: ");
    html_code(html, r->text);
    html_add(html, ". The model classifies it as ");
    html_code(html, sb_classifier_label(model, class.label));
    html_print(html, ", with probability %.3f", class.probability);
    const char *right = expected(r);
    if (right && strcmp(right, sb_classifier_label(model, class.label)) == 0)
        html_add(html, ", which is right");
    else if (right) {
        html_add(html, "; expected ");
        html_code(html, right);
    }
    html_add(html, ".</p>\n");
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
               "<h2>What it confuses</h2>\n<p>Of %lld %s it classifies %.2f %% right, with a "
               "macro-F1 of %.4f.",
               (long long)c->texts, r->pairs_are, 100 * confusion_accuracy(c), c->f1);
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
