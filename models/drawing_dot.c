/* The drawing for Graphviz: dot -Tsvg. */
#include "models/drawing_graph.h"
#include <string.h>

void drawing_dot(struct drawing *d)
{
    buffer_print(&d->text, "digraph tape {\n    node [shape=box, fontname=\"sans-serif\"];\n");
    for (int64_t n = 0; n < d->count; n++) {
        const struct drawn_node *node = &d->node[n];
        buffer_print(&d->text, "    n%lld [label=\"%s %s", (long long)n, node->operation,
                     node->shape.text);
        for (int i = 0; i < node->weights; i++) {
            buffer_print(&d->text, "\\n");
            drawing_print_escaped(d, node->weight[i], strlen(node->weight[i]));
        }
        if (node->norm >= 0)
            buffer_print(&d->text, "\\n|dy| %.3g", node->norm);
        buffer_print(&d->text, "\"];\n");
        for (int i = 0; i < node->inputs; i++) {
            const double norm = d->node[node->from[i]].norm;
            buffer_print(&d->text, "    n%lld -> n%lld [penwidth=%.2f%s];\n",
                         (long long)node->from[i], (long long)n, drawing_width(d, norm),
                         norm < 0 ? ", style=dashed" : "");
        }
    }
    buffer_print(&d->text, "}\n");
}
