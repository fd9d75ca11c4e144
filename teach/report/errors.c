#include "teach/report/errors.h"
#include "models/translation.h"
#include "teach/report/maps.h"
#include "tensor/memory.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_PAIRS = 200, SHOWN = 12 };

bool errors_find(struct errors *e, const struct subject *s, const sb_pairs *pairs)
{
    const int64_t all = sb_pairs_count(pairs), n = all < MOST_PAIRS ? all : MOST_PAIRS;
    const sb_vocabulary *vocabulary = subject_attention(s, NULL)->queries.vocabulary;
    *e = (struct errors){.pairs = pairs};
    if (n == 0)
        return true;
    e->output = memory_new((size_t)n * sizeof *e->output);
    if (!e->output)
        return sb_fail("report: out of memory for %lld outputs", (long long)n);
    if (!sb_translate_texts(s->model.self, sb_pairs_sources(pairs), n, NULL, e->output))
        return false;
    e->count = n;
    e->found = translation_errors(vocabulary, pairs, e->output, n, &e->wrong);
    return e->found != NULL;
}

void errors_free(struct errors *e)
{
    for (int64_t i = 0; i < e->count; i++)
        sb_free(e->output[i]);
    memory_free(e->output);
    memory_free(e->found);
    *e = (struct errors){0};
}

void errors_summary(struct html *html, const struct errors *e)
{
    if (e->count == 0)
        return;
    html_print(html, "<p>Of %lld held-out texts it writes %lld wrong", (long long)e->count,
               (long long)e->wrong);
    if (e->wrong > 0) {
        const int64_t i = e->found[0].pair;
        html_add(html, ", the worst <code>");
        html_text(html, e->output[i]);
        html_add(html, "</code> for <code>");
        html_text(html, sb_pairs_source(e->pairs, i));
        html_add(html, "</code>, where <code>");
        html_text(html, sb_pairs_target(e->pairs, i));
        html_add(html, "</code> is expected");
    }
    html_add(html, ".</p>\n");
}

static void cell(struct html *html, const char *text)
{
    html_add(html, "<td class=\"names\"><code>");
    html_text(html, text);
    html_add(html, "</code></td>");
}

static void table(struct html *html, const struct errors *e)
{
    html_add(html, "<div class=\"wide\"><table class=\"errors\">\n<tr><th scope=\"col\" "
                   "class=\"names\">text</th>"
                   "<th scope=\"col\" class=\"names\">expected</th><th scope=\"col\" "
                   "class=\"names\">written</th><th scope=\"col\">symbols to change</th></tr>\n");
    for (int64_t n = 0; n < e->wrong && n < SHOWN; n++) {
        const int64_t i = e->found[n].pair;
        html_add(html, "<tr>");
        cell(html, sb_pairs_source(e->pairs, i));
        cell(html, sb_pairs_target(e->pairs, i));
        cell(html, e->output[i]);
        html_print(html, "<td>%lld</td></tr>\n", (long long)e->found[n].distance);
    }
    html_add(html, "</table></div>\n");
}

static void picture(struct html *html, const struct maps *maps)
{
    html_add(html, "<h2>Attention of the worst</h2>\n<p>Rows: what it writes. Columns: the text. "
                   "Weights of the last layer, mean over its heads, in per cent.</p>\n"
                   "<div class=\"wide\">");
    attention_picture(html, maps);
    html_add(html, "</svg></div>\n");
}

bool errors_add(struct html *html, const struct subject *s, const struct errors *e)
{
    struct subject worst;
    if (e->count == 0) {
        html_add(html, "<h2>Errors</h2>\n<p>No held-out pairs were given (--data FILE).</p>\n");
        return true;
    }
    html_add(html, "<h2>Errors</h2>\n");
    if (e->wrong == 0) {
        html_print(html, "<p>None in %lld held-out texts.</p>\n", (long long)e->count);
        return true;
    }
    table(html, e);
    const int64_t i = e->found[0].pair;
    if (strlen(sb_pairs_source(e->pairs, i)) > 64 || strlen(e->output[i]) >= 64)
        return true; /* too long to be drawn */
    const bool ok = subject_begin(&worst, &s->model, sb_pairs_source(e->pairs, i), e->output[i]) &&
                    maps_of(html, &worst, picture);
    subject_end(&worst);
    return ok;
}
