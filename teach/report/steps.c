#include "teach/report/steps.h"

static const char script[] = {
#include "steps.js.inc"
    0};

static void head(struct html *html, const sb_tensor *w, int layer, int64_t h)
{
    const int64_t Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    html_add(html, "</tr>\n<tr data-weights=\"");
    for (int64_t n = 0; n < Lq * Lk; n++)
        html_print(html, "%s%.0f", n > 0 ? " " : "", 100 * sb_tensor_get(w, h * Lq * Lk + n));
    html_print(html, "\"><th scope=\"row\">layer %d, head %lld</th>", layer + 1, (long long)h + 1);
    for (int64_t j = 0; j < Lk; j++)
        html_add(html, "<td></td>");
}

static void table(struct html *html, const struct maps *maps, const sb_example_attention *cross)
{
    html_table(html,
               "Attention weights of each head at this step, in per cent; the largest of a row is "
               "bold.",
               "the text");
    for (int64_t j = 0; j < cross->keys.length; j++)
        html_head(html, "col", subject_label(&cross->keys, j).text);
    for (int layer = 0; layer < cross->layers; layer++)
        for (int64_t h = 0; h < maps->subject->example.heads; h++)
            head(html, maps_layer(maps, cross, layer), layer, h);
    html_table_end(html);
}

void steps_add(struct html *html, const struct maps *maps, const sb_example_attention *cross)
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
    table(html, maps, cross);
    html_add(html, "</section>\n");
    html_script(html, script);
}
