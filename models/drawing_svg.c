/* The drawing as SVG without scripts, in light or dark colours as the browser prefers. */
#include "models/drawing_graph.h"
#include <string.h>

enum {
    WIDTH = 340,
    HEIGHT = 40,
    GAP_X = 120,
    GAP_Y = 24,
    MARGIN = 30,
    HEAD = 60,
    MOST_LETTERS = 50
};

static int svg_left(const struct drawn_node *node)
{
    return MARGIN + node->column * (WIDTH + GAP_X);
}

static int svg_top(const struct drawn_node *node)
{
    return HEAD + node->row * (HEIGHT + GAP_Y);
}

/* From a box's lower edge to the next one's upper edge; round the side where others lie between,
   and across to another column. */
static void svg_edge(struct drawing *d, const struct drawn_node *from, const struct drawn_node *to)
{
    const int at = svg_top(from) + HEIGHT / 2, at_to = svg_top(to) + HEIGHT / 2;
    drawing_print(d, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"",
                  from->norm < 0 ? "constant" : "edge", drawing_width(d, from->norm));
    if (from->column == to->column && to->row == from->row + 1) {
        drawing_print(d, "M%d %dV%d", svg_left(from) + WIDTH / 2, svg_top(from) + HEIGHT,
                      svg_top(to));
    } else if (from->column == to->column) {
        const int far = to->row - from->row, side = svg_left(from) - (far < 12 ? 4 + 2 * far : 28);
        drawing_print(d, "M%d %dC%d %d %d %d %d %d", svg_left(from), at, side, at, side, at_to,
                      svg_left(to), at_to);
    } else {
        const int begin = svg_left(from) + WIDTH, middle = begin + GAP_X / 2;
        drawing_print(d, "M%d %dC%d %d %d %d %d %d", begin, at, middle, at, middle, at_to,
                      svg_left(to), at_to);
    }
    drawing_print(d, "\"><title>|dy| %.3g</title></path>\n", from->norm);
}

/* The first weight's name; a long one is drawn narrower. */
static void svg_weight(struct drawing *d, const struct drawn_node *node, int x, int y)
{
    const char *name = node->weight[0];
    const size_t n = strlen(name);
    drawing_print(d, "<text class=\"weight\" x=\"%d\" y=\"%d\"", x, y);
    if (n > MOST_LETTERS)
        drawing_print(d, " textLength=\"%d\" lengthAdjust=\"spacingAndGlyphs\"", WIDTH - 24);
    drawing_print(d, ">");
    drawing_print_escaped(d, name, n);
    drawing_print(d, "%s</text>\n", node->weights > 1 ? " …" : "");
}

/* The tooltip. */
static void svg_hint(struct drawing *d, const struct drawn_node *node)
{
    drawing_print(d, "<title>%s", node->operation);
    for (int i = 0; i < node->weights; i++) {
        drawing_print(d, "\n");
        drawing_print_escaped(d, node->weight[i], strlen(node->weight[i]));
    }
    if (d->describe) {
        drawing_print(d, "\n\n");
        d->describe(d, node->operation);
    }
    drawing_print(d, "</title>");
}

static void svg_box(struct drawing *d, const struct drawn_node *node)
{
    const int x = svg_left(node), y = svg_top(node);
    drawing_print(d, "<g>");
    svg_hint(d, node);
    drawing_print(d,
                  "<rect class=\"c%d\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n",
                  node->column, x, y, WIDTH, HEIGHT);
    drawing_print(d, "<text x=\"%d\" y=\"%d\"><tspan class=\"name\">%s</tspan> %s</text>\n", x + 8,
                  y + 16, node->operation, node->shape.text);
    if (node->norm >= 0)
        drawing_print(d, "<text class=\"norm\" x=\"%d\" y=\"%d\">|dy| %.3g</text>\n", x + WIDTH - 8,
                      y + 16, node->norm);
    if (node->weights > 0)
        svg_weight(d, node, x + 8, y + 32);
    drawing_print(d, "</g>\n");
}

/* In a page of HTML, CSS rules of an image apply to the whole page unless they name a class. */
const char drawing_svg_rules[] =
    ".tape{color-scheme:light dark;background:Canvas;font:12px system-ui,sans-serif}\n"
    ".tape text{fill:CanvasText}.tape .name{font-weight:600}.tape .norm{text-anchor:end}"
    ".tape .weight{font-size:11px;opacity:.75}.tape .head{font-size:14px;font-weight:600}\n"
    ".tape rect{stroke-width:1.5}.tape .c0{fill:#1f77b422;stroke:#1f77b4}"
    ".tape .c1{fill:#ff7f0e22;stroke:#ff7f0e}\n"
    ".tape path{fill:none;stroke:#888;opacity:.7}"
    ".tape .constant{stroke-dasharray:4 3;opacity:.5}\n";

void drawing_svg(struct drawing *d)
{
    const int rows = d->rows[0] > d->rows[1] ? d->rows[0] : d->rows[1];
    const int columns = d->rows[1] > 0 ? 2 : 1;
    const int width = 2 * MARGIN + columns * WIDTH + (columns - 1) * GAP_X;
    const int height = HEAD + rows * (HEIGHT + GAP_Y) + MARGIN;
    drawing_print(d,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tape\" viewBox=\"0 0 %d %d\" "
                  "width=\"%d\" "
                  "height=\"%d\" role=\"img\">\n<title>The tape: %lld operations</title>\n",
                  width, height, width, height, (long long)d->count);
    drawing_print(d, "<desc>Each operation from the first at the top to the loss, with the norm "
                     "of the gradient that arrived at its result.</desc>\n");
    if (!d->in_page)
        d->ok = d->ok && buffer_add_text(&d->text, "<style>\n") &&
                buffer_add_text(&d->text, drawing_svg_rules) &&
                buffer_add_text(&d->text, "</style>\n");
    for (int c = 0; c < columns && columns == 2; c++)
        drawing_print(d, "<text class=\"head\" x=\"%d\" y=\"36\">%s</text>\n",
                      MARGIN + c * (WIDTH + GAP_X), c == 0 ? "encoder" : "decoder and loss");
    for (int64_t n = 0; n < d->count; n++)
        for (int i = 0; i < d->node[n].inputs; i++)
            svg_edge(d, &d->node[d->node[n].from[i]], &d->node[n]);
    for (int64_t n = 0; n < d->count; n++)
        svg_box(d, &d->node[n]);
    drawing_print(d, "</svg>\n");
}
