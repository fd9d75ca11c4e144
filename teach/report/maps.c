#include "teach/report/maps.h"
#include "autograd/tape.h"
#include "models/training/diagnosis.h"
#include "tensor/failure.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_SYMBOLS = 64, MOST_NUMBERS = 20000 };

const sb_tensor *maps_layer(const struct maps *maps, const sb_example_attention *at, int layer)
{
    return maps->found->map[at->first + layer].weights;
}

static void gap(struct html *html, int64_t cells)
{
    if (cells > 0)
        html_print(html, "<td colspan=\"%lld\"></td>", (long long)cells);
}

/* A row for each symbol that attends: the weights of head h in per cent, or the mean over all for
   h < 0; nothing for weights below `least`. */
static void table(struct html *html, const sb_example_attention *at, const sb_tensor *w, int64_t h,
                  double least)
{
    const sb_example_axis *from = &at->queries, *to = &at->keys;
    html_add(html, "<table>\n<tr><td></td>");
    for (int64_t j = 0; j < to->length; j++)
        html_head(html, "col", subject_label(to, j).text);
    for (int64_t i = 0; i < from->length; i++) {
        int64_t empty = 0;
        html_add(html, "</tr>\n<tr>");
        html_head(html, "row", subject_label(from, i).text);
        for (int64_t j = 0; j < to->length; j++) {
            const double a = subject_weight(w, h, i, j);
            if (a < least) {
                empty++;
                continue;
            }
            gap(html, empty);
            empty = 0;
            html_cell_shade(html, round(100 * a) / 100, round(100 * a));
        }
        gap(html, empty);
    }
    html_add(html, "</tr>\n</table>");
}

/* The mean weight of the symbols that are `by` after those that attend. */
static double mean_beside(const sb_tensor *w, int64_t h, int64_t by)
{
    const int64_t Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double sum = 0;
    int64_t rows = 0;
    for (int64_t i = by < 0 ? -by : 0; i < Lq && i + by < Lk; i++, rows++)
        sum += subject_weight(w, h, i, i + by);
    return rows > 0 ? sum / (double)rows : 0;
}

/* What the rows of a head do: where they look most, relative to themselves, or how sharply. */
static void map_summary(struct html *html, const sb_tensor *w, bool relative, int64_t h)
{
    enum { FAR = 3 };
    const int64_t Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    int best = 0;
    double top = 0;
    for (int by = -FAR; by <= FAR; by++)
        best = mean_beside(w, h, by) > mean_beside(w, h, best) ? by : best;
    for (int64_t i = 0; i < Lq; i++) {
        double most = 0;
        for (int64_t j = 0; j < Lk; j++)
            most = fmax(most, subject_weight(w, h, i, j));
        top += most / (double)Lq;
    }
    const double mean = mean_beside(w, h, best);
    if (!relative || mean < 0.5)
        html_print(html, "largest weight, mean %.0f %%", 100 * top);
    else if (best == 0)
        html_print(html, "look at themselves, %.0f %%", 100 * mean);
    else
        html_print(html, "look %d to the %s, %.0f %%", abs(best), best < 0 ? "left" : "right",
                   100 * mean);
}

/* ---- heads, numbered through the layers of an attention ---- */

static void name_head(struct html *html, int layer, int64_t h)
{
    html_print(html, "layer %d, head %lld", layer + 1, (long long)h + 1);
}

static void map(struct html *html, const struct maps *maps, const sb_example_attention *at,
                int layer, int64_t h)
{
    const sb_tensor *w = maps_layer(maps, at, layer);
    const int64_t cells = at->layers * maps->subject->example.heads * sb_tensor_size(w);
    html_print(html, "<figure class=\"shades\" tabindex=\"0\" style=\"--rows:%lld\"><figcaption>",
               (long long)at->queries.length);
    name_head(html, layer, h);
    html_add(html, "</figcaption>\n");
    table(html, at, w, h, cells > MOST_NUMBERS ? 0.05 : 0.005);
    html_add(html, "</figure>\n");
}

static void more(struct html *html, const struct maps *maps, const sb_example_attention *at,
                 int layer, int64_t h)
{
    html_add(html, "</tr>\n<tr><th scope=\"row\">");
    name_head(html, layer, h);
    html_print(html, "</th><td>%.2f</td><td>",
               maps->evenness[(at->first + layer) * maps->subject->example.heads + h]);
    map_summary(html, maps_layer(maps, at, layer), at->self, h);
    html_add(html, "</td>");
}

typedef void of_head(struct html *html, const struct maps *maps, const sb_example_attention *at,
                     int layer, int64_t h);

static void each_head(struct html *html, const struct maps *maps, const sb_example_attention *at,
                      of_head *add)
{
    for (int layer = 0; layer < at->layers; layer++)
        for (int64_t h = 0; h < maps->subject->example.heads; h++)
            add(html, maps, at, layer, h);
}

static void draw_atlas(struct html *html, const struct maps *maps, const sb_example_attention *at)
{
    html_add(html, "<h2>");
    html_print(html,
               maps->subject->example.attentions == 1 ? "Attention"
               : at->self                             ? "The %s's self-attention"
                                                      : "Cross-attention",
               at->name);
    html_print(html, "</h2>\n<p>Rows: %s. Columns: %s.</p>\n<div class=\"maps\">\n", at->rows,
               at->columns);
    each_head(html, maps, at, map);
    html_add(html, "</div>\n<details><summary>More: where each head looks</summary>\n");
    html_table(html,
               "Evenness is the entropy of a row divided by that of equal weights: 1 for equal "
               "weights, 0 for a single symbol.",
               "map;evenness;its rows");
    each_head(html, maps, at, more);
    html_table_end(html);
    html_add(html, "</details>\n");
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
                   "<div class=\"wide\">");
    table(html, at, maps_layer(m, at, at->layers - 1), -1, 0.005);
    html_add(html, "</div></details>\n");
}

/* ---- cross-attention one decoding step at a time: a slider, for browsers that run scripts ---- */

static const char steps_script[] = {
#include "steps.js.inc"
    0};

static void steps_row(struct html *html, const struct maps *maps, const sb_example_attention *cross,
                      int layer, int64_t h)
{
    const sb_tensor *w = maps_layer(maps, cross, layer);
    const int64_t Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    html_add(html, "</tr>\n<tr data-weights=\"");
    for (int64_t n = 0; n < Lq * Lk; n++)
        html_print(html, "%s%.0f", n > 0 ? " " : "", 100 * sb_tensor_get(w, h * Lq * Lk + n));
    html_add(html, "\"><th scope=\"row\">");
    name_head(html, layer, h);
    html_add(html, "</th>");
    for (int64_t j = 0; j < Lk; j++)
        html_add(html, "<td></td>");
}

static void steps_table(struct html *html, const struct maps *maps,
                        const sb_example_attention *cross)
{
    html_add(html, "<p>Attention weights of each head at this step, in per cent; the largest of a "
                   "row is bold.</p>\n");
    html_table(html, "", "the text");
    for (int64_t j = 0; j < cross->keys.length; j++)
        html_head(html, "col", subject_label(&cross->keys, j).text);
    each_head(html, maps, cross, steps_row);
    html_table_end(html);
}

/* The page shows the same elsewhere: without scripts the slider stays hidden. */
static void steps_add(struct html *html, const struct maps *maps, const sb_example_attention *cross)
{
    const sb_example_axis said = cross->queries;
    html_print(html,
               "<section id=\"steps\" hidden>\n<h2>One step at a time</h2>\n"
               "<p><label for=\"step\">Step</label>\n<input type=\"range\" id=\"step\" min=\"1\" "
               "max=\"%lld\" value=\"1\">\n<output for=\"step\">1 of %lld</output></p>\n<p "
               "class=\"said\">",
               (long long)said.length, (long long)said.length);
    for (int64_t i = 0; i < said.length; i++) {
        html_add(html, "<span>");
        html_text(html, subject_label(&said, i).text);
        html_add(html, "</span>");
    }
    html_add(html, "</p>\n");
    steps_table(html, maps, cross);
    html_add(html, "</section>\n");
    html_script(html, steps_script);
}

/* ---- the part of a page ---- */

void maps_all(struct html *html, const struct maps *m)
{
    const sb_example *e = &m->subject->example;
    html_add(html,
             "<p>A map has the weights of one head. <strong>Click a map</strong> for its symbols "
             "and numbers.</p>\n<p class=\"scale\">0 <span class=\"shade\">&#160;</span> 100 "
             "%</p>\n");
    for (int i = 0; i < e->attentions; i++) {
        const bool cross = !e->attention[i].self;
        if (cross)
            alignment(html, m);
        draw_atlas(html, m, &e->attention[i]);
        if (cross)
            steps_add(html, m, &e->attention[i]);
    }
}

bool maps_have_room(const sb_example_axis *symbols)
{
    return symbols->length >= 1 && symbols->length <= MOST_SYMBOLS;
}

static bool are_short(const struct subject *s)
{
    const sb_example_attention *at = subject_attention(s, NULL);
    const int64_t target = at->queries.length, source = at->keys.length;
    if (maps_have_room(&at->keys) && target <= MOST_SYMBOLS)
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
    bool ok = s->model.kind->attentions(s->model.self, s->example.batch, &found);
    if (ok) {
        struct diagnosis heads = {0};
        ok = diagnosis_make_heads(&heads, &found);
        if (ok)
            draw(html, &(struct maps){s, &found, heads.evenness});
        diagnosis_free(&heads);
        sb_free(found.map);
    }
    return sb_tape_end(&tape) && ok;
}
