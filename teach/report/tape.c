#include "teach/report/tape.h"
#include "teach/explain/model.h"
#include "tensor/memory.h"
#include <string.h>

static void row(struct drawing *d, int64_t n)
{
    const struct drawn_node *node = &d->node[n];
    drawing_print(d, "<tr><td>%lld</td><th scope=\"row\">%s</th><td>%s</td><td>", (long long)n + 1,
                  node->operation, node->shape.text);
    for (int i = 0; i < node->inputs; i++)
        drawing_print(d, "%s%lld", i > 0 ? ", " : "", (long long)node->from[i] + 1);
    drawing_print(d, "</td><td class=\"names\">");
    for (int i = 0; i < node->weights; i++) {
        drawing_print(d, "%s", i > 0 ? ", " : "");
        drawing_print_escaped(d, node->weight[i], strlen(node->weight[i]));
    }
    drawing_print(d, node->norm < 0 ? "</td><td></td></tr>\n" : "</td><td>%.3g</td></tr>\n",
                  node->norm);
}

static void write(struct drawing *d)
{
    d->in_page = true;
    drawing_svg(d);
    drawing_print(d, "</div></details>\n<details><summary>The numbers</summary>\n"
                     "<div class=\"wide\"><table>\n<tr><th scope=\"col\">number</th>"
                     "<th scope=\"col\">operation</th><th scope=\"col\">shape</th>"
                     "<th scope=\"col\">takes</th><th scope=\"col\">weights</th>"
                     "<th scope=\"col\">|dy|</th></tr>\n");
    for (int64_t n = 0; n < d->count; n++)
        row(d, n);
    drawing_print(d, "</table></div></details>\n");
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
