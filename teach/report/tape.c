#include "teach/report/tape.h"
#include "teach/explain/model.h"
#include "tensor/memory.h"

static void row(struct html *html, const struct drawn_node *node, int64_t number)
{
    html_row(html, NULL);
    html_cell(html, "%lld", (long long)number);
    html_head(html, "row", node->operation);
    html_cell_text(html, node->shape.text);
    html_add(html, "<td>");
    for (int i = 0; i < node->inputs; i++)
        html_print(html, "%s%lld", i > 0 ? ", " : "", (long long)node->from[i] + 1);
    html_add(html, "</td><td>");
    for (int i = 0; i < node->weights; i++) {
        html_add(html, i > 0 ? ", " : "");
        html_text(html, node->weight[i]);
    }
    html_print(html, node->norm < 0 ? "</td><td></td>" : "</td><td>%.3g</td>", node->norm);
}

/* Its table goes to the text of the drawing. */
static void write(struct drawing *d)
{
    d->in_page = true;
    drawing_svg(d);
    struct html html = {.text = d->text, .failed = !d->ok};
    html_add(&html, "</div></details>\n<details class=\"texts\"><summary>The numbers</summary>\n");
    html_table(&html, "", "number;operation;shape;takes;weights;|dy|");
    for (int64_t n = 0; n < d->count; n++)
        row(&html, &d->node[n], n + 1);
    html_table_end(&html);
    html_add(&html, "</details>\n");
    d->text = html.text;
    d->ok = !html.failed;
}

bool tape_picture_add(struct html *html, const struct subject *subject)
{
    char *text = model_tape(subject, write);
    if (!text)
        return false;
    html_add(html,
             "<h2>The tape</h2>\n<p>The nodes that backward visits, for the loss of this text: "
             "each operation with the norm of the gradient that arrived at its result. Wide "
             "lines carry large gradients; the pointer shows formulas.</p>\n"
             "<details><summary>The drawing</summary>\n<div class=\"wide tall\">\n");
    html_add(html, text);
    memory_free(text);
    return true;
}
