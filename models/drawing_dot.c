/* The drawing for Graphviz: dot -Tsvg. */
#include "models/drawing_graph.h"
#include <string.h>

void drawing_dot(struct drawing *d)
{
    drawing_print(d, "digraph tape {\n    node [shape=box, fontname=\"sans-serif\"];\n");
    for (int64_t n = 0; n < d->count; n++) {
        const struct drawn_node *node = &d->node[n];
        drawing_print(d, "    n%lld [label=\"%s %s", (long long)n, node->operation,
                      node->shape.text);
        for (int i = 0; i < node->weights; i++) {
            drawing_print(d, "\\n");
            drawing_print_escaped(d, node->weight[i], strlen(node->weight[i]));
        }
        if (node->norm >= 0)
            drawing_print(d, "\\n|dy| %.3g", node->norm);
        drawing_print(d, "\"];\n");
        for (int i = 0; i < node->inputs; i++) {
            const double norm = d->node[node->from[i]].norm;
            drawing_print(d, "    n%lld -> n%lld [penwidth=%.2f%s];\n", (long long)node->from[i],
                          (long long)n, drawing_width(d, norm), norm < 0 ? ", style=dashed" : "");
        }
    }
    drawing_print(d, "}\n");
}
