/* What a report says of an encoder-decoder: what it writes, and where that is wrong. */
#include "models/translation.h"
#include "models/translation_score.h"
#include "teach/report/maps.h"
#include "teach/report/overview.h"
#include "teach/report/report.h"
#include "tensor/memory.h"
#include <string.h>

enum { MOST_PAIRS = 200, SHOWN = 12 };

struct errors {
    int64_t count; /* of the pairs that were decoded */
    char **output; /* of each */
    int64_t wrong; /* outputs that differ from their targets, the worst first */
    struct translation_error *found;
};

static bool find(void *found, const struct report *r)
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

static void forget(void *found)
{
    struct errors *e = found;
    for (int64_t i = 0; i < e->count; i++)
        sb_free(e->output[i]);
    memory_free(e->output);
    memory_free(e->found);
}

static bool begin(struct html *html, const struct report *r, const void *found)
{
    const struct errors *e = found;
    overview_add(html, r->subject, r->text, r->checkpoint, r->log);
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

static void cell(struct html *html, const char *text)
{
    html_add(html, "<td>");
    html_code(html, text);
    html_add(html, "</td>");
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
    html_add(html, "<h2>Errors</h2>\n<div class=\"texts errors\">\n");
    html_table(html, "", "text;expected;written;edits");
    for (int64_t n = 0; n < e->wrong && n < SHOWN; n++) {
        const int64_t i = e->found[n].pair;
        html_row(html, NULL);
        cell(html, sb_pairs_source(r->pairs, i));
        cell(html, sb_pairs_target(r->pairs, i));
        cell(html, e->output[i]);
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
                                         .find = find,
                                         .forget = forget,
                                         .begin = begin,
                                         .errors = add_errors};
