#include "teach/report/maps.h"
#include "autograd/tape.h"
#include "models/training/diagnosis.h"
#include "teach/report/steps.h"
#include "tensor/failure.h"
#include <math.h>
#include <stdio.h>

enum { CELL = 20, MARGIN = 52, MOST_SYMBOLS = 64, MOST_NUMBERS = 20000 };

/* An attention, in all of its layers. */
struct atlas {
    const sb_example_attention *at;
    char title[64];
    const struct maps *maps;
};

const sb_tensor *maps_layer(const struct maps *maps, const sb_example_attention *at, int layer)
{
    return maps->found->map[at->first + layer].weights;
}

/* The mean over rows of entropy / ln n, where n is the number of keys that a row may attend to;
   rows with one key are left out. */
static double evenness(const sb_tensor *w, int64_t h, bool causal)
{
    const int64_t Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double sum = 0;
    int64_t rows = 0;
    for (int64_t i = 0; i < Lq; i++) {
        const int64_t n = causal ? i + 1 : Lk;
        double entropy = 0;
        for (int64_t j = 0; j < n; j++)
            entropy += diagnosis_entropy_of(subject_weight(w, h, i, j));
        sum += n > 1 ? entropy / log((double)n) : 0;
        rows += n > 1;
    }
    return rows > 0 ? sum / (double)rows : 0;
}

/* A weight as a cell that tells its numbers; nothing below half a tenth. */
static void cell(struct html *html, const sb_example_axis *from, const sb_example_axis *to,
                 int64_t i, int64_t j, double a)
{
    if (a < 0.05)
        return;
    html_print(html,
               "<rect x=\"%lld\" y=\"%lld\" width=\"%d\" height=\"%d\" opacity=\"%.2f\"><title>",
               (long long)(MARGIN + j * CELL), (long long)(MARGIN + i * CELL), CELL, CELL, a);
    html_text(html, subject_label(from, i).text);
    html_add(html, " to ");
    html_text(html, subject_label(to, j).text);
    html_print(html, ": %.0f %%</title></rect>", 100 * a);
}

/* The symbols of both axes: rows at the left, columns above, turned. */
static void map_labels(struct html *html, const sb_example_axis *from, const sb_example_axis *to)
{
    for (int64_t i = 0; i < from->length; i++) {
        html_print(html, "<text x=\"%d\" y=\"%lld\" text-anchor=\"end\">", MARGIN - 3,
                   (long long)(MARGIN + i * CELL + CELL - 6));
        html_text(html, subject_label(from, i).text);
        html_add(html, "</text>");
    }
    for (int64_t j = 0; j < to->length; j++) {
        const long long x = MARGIN + j * CELL + CELL - 6;
        html_print(html, "<text x=\"%lld\" y=\"%d\" transform=\"rotate(-90 %lld %d)\">", x,
                   MARGIN - 3, x, MARGIN - 3);
        html_text(html, subject_label(to, j).text);
        html_add(html, "</text>");
    }
}

/* What a head does in one line: where its rows look most, relative to themselves, or how sharply.
 */
static void map_summary(struct html *html, const sb_tensor *w, bool relative, int64_t h)
{
    enum { FAR = 3 };
    const int64_t Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double at[2 * FAR + 1] = {0}, top = 0;
    int64_t rows[2 * FAR + 1] = {0};
    for (int64_t i = 0; i < Lq; i++) {
        double most = 0;
        for (int64_t j = 0; j < Lk; j++) {
            const double a = subject_weight(w, h, i, j);
            most = fmax(most, a);
            if (j - i >= -FAR && j - i <= FAR) {
                at[j - i + FAR] += a;
                rows[j - i + FAR]++;
            }
        }
        top += most / (double)Lq;
    }
    int best = FAR;
    for (int o = 0; o <= 2 * FAR; o++)
        if (rows[o] > 0 && at[o] / (double)rows[o] > at[best] / (double)(rows[best] + !rows[best]))
            best = o;
    const double mean = rows[best] > 0 ? at[best] / (double)rows[best] : 0;
    if (relative && mean >= 0.5 && best == FAR)
        html_print(html, "looks at itself, %.0f %%", 100 * mean);
    else if (relative && mean >= 0.5)
        html_print(html, "looks %d to the %s, %.0f %%", best < FAR ? FAR - best : best - FAR,
                   best < FAR ? "left" : "right", 100 * mean);
    else
        html_print(html, "largest weight %.0f %% on average", 100 * top);
}

static void map(struct html *html, const struct atlas *a, int layer, int64_t h)
{
    const sb_tensor *w = maps_layer(a->maps, a->at, layer);
    const sb_example_axis *from = &a->at->queries, *to = &a->at->keys;
    const long long width = (long long)to->length * CELL, height = (long long)from->length * CELL;
    html_add(html, "<figure>");
    html_svg_begin(html, MARGIN + width + 1, MARGIN + height + 1, "%s, layer %d, head %lld",
                   a->title, layer + 1, (long long)h + 1);
    html_add(html, "<g style=\"font-size:10px\">");
    map_labels(html, from, to);
    html_print(html,
               "</g><g fill=\"var(--blue)\"><path fill=\"none\" stroke=\"var(--line)\" "
               "d=\"M%d %dh%lldv%lldh-%lldz\"/>\n",
               MARGIN, MARGIN, width, height, width);
    for (int64_t i = 0; i < from->length; i++)
        for (int64_t j = 0; j < to->length; j++)
            cell(html, from, to, i, j, subject_weight(w, h, i, j));
    html_print(html, "</g></svg><figcaption>layer %d, head %lld<br>evenness %.2f<br>", layer + 1,
               (long long)h + 1, evenness(w, h, a->at->causal));
    map_summary(html, w, a->at->self, h);
    html_add(html, "</figcaption></figure>\n");
}

/* Which shade is which weight. */
static void colour_bar(struct html *html)
{
    enum { SHADES = 10, WIDE = 20 };
    html_svg_begin(html, SHADES * WIDE + 90, 18, "Shades from 0 to 100 per cent");
    html_add(html, "<text x=\"0\" y=\"13\">0 %</text>");
    for (int n = 0; n < SHADES; n++)
        html_print(html,
                   "<rect x=\"%d\" y=\"2\" width=\"%d\" height=\"14\" fill=\"var(--blue)\" "
                   "opacity=\"%.2f\"/>",
                   30 + n * WIDE, WIDE, 0.05 + 0.1 * n);
    html_print(html, "<text x=\"%d\" y=\"13\">100 %%</text></svg>\n", 36 + SHADES * WIDE);
}

/* A table with a row for each symbol that attends: the weights of head h, or the mean over all for
   h < 0, in per cent. */
static void numbers(struct html *html, const sb_example_axis *from, const sb_example_axis *to,
                    const sb_tensor *w, int64_t h)
{
    html_add(html, "<tr><td></td>");
    for (int64_t j = 0; j < to->length; j++) {
        html_add(html, "<th scope=\"col\">");
        html_text(html, subject_label(to, j).text);
        html_add(html, "</th>");
    }
    for (int64_t i = 0; i < from->length; i++) {
        html_add(html, "</tr>\n<tr><th scope=\"row\">");
        html_text(html, subject_label(from, i).text);
        html_add(html, "</th>");
        for (int64_t j = 0; j < to->length; j++) {
            const double a = 100 * subject_weight(w, h, i, j);
            html_print(html, a < 0.5 ? "<td></td>" : "<td>%.0f</td>", a);
        }
    }
    html_add(html, "</tr>\n</table></div>\n");
}

/* Long texts get the mean over the heads of a layer, which keeps the page small. */
static void all_numbers(struct html *html, const struct atlas *a)
{
    const int64_t heads = a->maps->subject->example.heads;
    const sb_example_axis *from = &a->at->queries, *to = &a->at->keys;
    const bool mean = a->at->layers * heads * from->length * to->length > MOST_NUMBERS;
    html_add(html, "<details><summary>The numbers, in per cent</summary>\n");
    for (int layer = 0; layer < a->at->layers; layer++)
        for (int64_t h = mean ? -1 : 0; h < (mean ? 0 : heads); h++) {
            html_print(html, "<div class=\"wide\"><table>\n<caption>Layer %d, ", layer + 1);
            html_print(html, h < 0 ? "mean over its heads" : "head %lld", (long long)h + 1);
            html_add(html, "</caption>\n");
            numbers(html, from, to, maps_layer(a->maps, a->at, layer), h);
        }
    html_add(html, "</details>\n");
}

static void draw_atlas(struct html *html, const struct maps *maps, const sb_example_attention *at)
{
    struct atlas a = {.at = at, .maps = maps};
    snprintf(a.title, sizeof a.title,
             maps->subject->example.attentions == 1 ? "Attention"
             : at->self                             ? "The %s's self-attention"
                                                    : "Cross-attention",
             at->name);
    html_print(
        html,
        "<h2>%s</h2>\n<p>Rows: %s. Columns: %s. A stronger blue is a larger weight. Evenness is "
        "the "
        "entropy of a row divided by that of equal weights: 1 for equal weights, 0 for a single "
        "symbol.</p>\n",
        a.title, at->rows, at->columns);
    colour_bar(html);
    html_add(html, "<div class=\"maps\">\n");
    for (int layer = 0; layer < at->layers; layer++)
        for (int64_t h = 0; h < maps->subject->example.heads; h++)
            map(html, &a, layer, h);
    html_add(html, "</div>\n");
    all_numbers(html, &a);
}

static void alignment(struct html *html, const struct maps *m)
{
    const sb_example_attention *at = subject_attention(m->subject, NULL);
    html_add(html,
             "<h2>Alignment</h2>\n<p>The text is above, what the model writes below; lines "
             "are cross-attention weights of the last layer from 10 %, mean over its heads.</p>\n"
             "<div class=\"wide\">");
    alignment_picture(html, m);
    html_add(html, "</svg></div>\n<details><summary>The numbers, in per cent</summary>\n"
                   "<div class=\"wide\"><table>\n");
    numbers(html, &at->queries, &at->keys, maps_layer(m, at, at->layers - 1), -1);
    html_add(html, "</details>\n");
}

static void draw_all(struct html *html, const struct maps *m)
{
    const sb_example *e = &m->subject->example;
    for (int i = 0; i < e->attentions; i++) {
        const bool cross = !e->attention[i].self;
        if (cross)
            alignment(html, m);
        draw_atlas(html, m, &e->attention[i]);
        if (cross)
            steps_add(html, m, &e->attention[i]);
    }
}

bool maps_add(struct html *html, const struct subject *subject)
{
    return maps_of(html, subject, draw_all);
}

static bool are_short(const struct subject *s)
{
    const sb_example_attention *at = subject_attention(s, NULL);
    const int64_t target = at->queries.length, source = at->keys.length;
    if (source >= 1 && source <= MOST_SYMBOLS && target <= MOST_SYMBOLS)
        return true;
    return at->self ? sb_fail("the text has %lld symbols; up to %d can be drawn; give a shorter "
                              "--input",
                              (long long)source, MOST_SYMBOLS)
                    : sb_fail("the text has %lld symbols and its target %lld; from 1 to %d can be "
                              "drawn; give a shorter --input or --target",
                              (long long)source, (long long)target, MOST_SYMBOLS);
}

bool maps_of(struct html *html, const struct subject *s, maps_draw *draw)
{
    sb_attentions found;
    sb_tape tape;
    if (!are_short(s))
        return false;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const bool ok = s->model.kind->attentions(s->model.self, s->example.batch, &found);
    if (ok) {
        draw(html, &(struct maps){s, &found});
        sb_free(found.map);
    }
    return sb_tape_end(&tape) && ok;
}
