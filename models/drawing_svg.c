/* The drawing as SVG without scripts, in light or dark colours as the browser prefers. */
#include "models/drawing_graph.h"
#include "models/palette.h"
#include <string.h>

enum {
    WIDTH = 340,
    HEIGHT = 40,
    GAP_X = 120,
    GAP_Y = 24,
    MARGIN = 30,
    HEAD = 60,
    TIP = 10, /* of an arrow */
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

/* An arrow from a box's lower edge to the next one's upper edge; round the side where others lie
   between, and across to another column. */
static void svg_edge(struct drawing *d, const struct drawn_node *from, const struct drawn_node *to)
{
    const bool down = from->column == to->column && to->row == from->row + 1;
    const int at = svg_top(from) + HEIGHT / 2, at_to = svg_top(to) + HEIGHT / 2,
              x_to = svg_left(to) + (down ? WIDTH / 2 : 0), y_to = down ? svg_top(to) : at_to;
    buffer_print(&d->text, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"",
                 from->norm < 0 ? "constant" : "edge", drawing_width(d, from->norm));
    if (down) {
        buffer_print(&d->text, "M%d %dV%d", x_to, svg_top(from) + HEIGHT, y_to - TIP);
    } else if (from->column == to->column) {
        const int far = to->row - from->row, side = svg_left(from) - (far < 8 ? 12 + 2 * far : 28);
        buffer_print(&d->text, "M%d %dC%d %d %d %d %d %d", svg_left(from), at, side, at, side,
                     at_to, x_to - TIP, at_to);
    } else {
        const int begin = svg_left(from) + WIDTH, middle = begin + GAP_X / 2;
        buffer_print(&d->text, "M%d %dC%d %d %d %d %d %d", begin, at, middle, at, middle, at_to,
                     x_to - TIP, at_to);
    }
    buffer_print(&d->text, "\"><title>|dy| %.3g</title></path>\n", from->norm);
    buffer_print(&d->text, "<path class=\"tip\" d=\"M%d %dl%s\"/>\n", x_to, y_to,
                 down ? "-7 -10h14z" : "-10 -7v14z");
}

/* The first weight's name; a long one is drawn narrower. */
static void svg_weight(struct drawing *d, const struct drawn_node *node, int x, int y)
{
    const char *name = node->weight[0];
    const size_t n = strlen(name);
    buffer_print(&d->text, "<text class=\"weight\" x=\"%d\" y=\"%d\"", x, y);
    if (n > MOST_LETTERS)
        buffer_print(&d->text, " textLength=\"%d\" lengthAdjust=\"spacingAndGlyphs\"", WIDTH - 24);
    buffer_print(&d->text, ">");
    drawing_print_escaped(d, name, n);
    buffer_print(&d->text, "%s</text>\n", node->weights > 1 ? " …" : "");
}

/* The tooltip. */
static void svg_hint(struct drawing *d, const struct drawn_node *node)
{
    buffer_print(&d->text, "<title>%s", node->operation);
    for (int i = 0; i < node->weights; i++) {
        buffer_print(&d->text, "\n");
        drawing_print_escaped(d, node->weight[i], strlen(node->weight[i]));
    }
    if (d->describe) {
        buffer_print(&d->text, "\n\n");
        d->describe(d, node->operation);
    }
    buffer_print(&d->text, "</title>");
}

static void svg_box(struct drawing *d, const struct drawn_node *node)
{
    const int x = svg_left(node), y = svg_top(node);
    buffer_print(&d->text, "<g>");
    svg_hint(d, node);
    buffer_print(&d->text,
                 "<rect class=\"c%d\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n",
                 node->column, x, y, WIDTH, HEIGHT);
    buffer_print(&d->text, "<text x=\"%d\" y=\"%d\"><tspan class=\"name\">%s</tspan> %s</text>\n",
                 x + 8, y + 16, node->operation, node->shape.text);
    if (node->norm >= 0)
        buffer_print(&d->text, "<text class=\"norm\" x=\"%d\" y=\"%d\">|dy| %.3g</text>\n",
                     x + WIDTH - 8, y + 16, node->norm);
    if (node->weights > 0)
        svg_weight(d, node, x + 8, y + 32);
    buffer_print(&d->text, "</g>\n");
}

/* In a page of HTML, CSS rules of an image apply to the whole page unless they name a class. */
const char drawing_svg_rules[] =
    ".tape{color-scheme:light dark;background:var(--ground);font:12px system-ui,sans-serif}\n"
    ".tape text{fill:var(--ink)}.tape .name{font-weight:600}.tape .norm{text-anchor:end}"
    ".tape .weight{font-size:11px;opacity:.75}.tape .head{font-size:14px;font-weight:600}\n"
    ".tape rect{stroke-width:1.5;fill-opacity:.13}.tape .c0{fill:var(--blue);stroke:var(--blue)}"
    ".tape .c1{fill:var(--orange);stroke:var(--orange)}\n"
    ".tape path{fill:none;stroke:var(--quiet);opacity:.6}.tape .constant{stroke-dasharray:4 3}"
    ".tape .tip{fill:var(--quiet);stroke:none;opacity:1}\n";

void drawing_svg(struct drawing *d)
{
    const int rows = d->rows[0] > d->rows[1] ? d->rows[0] : d->rows[1];
    const int columns = d->rows[1] > 0 ? 2 : 1;
    const int width = 2 * MARGIN + columns * WIDTH + (columns - 1) * GAP_X;
    const int height = HEAD + rows * (HEIGHT + GAP_Y) + MARGIN;
    buffer_print(&d->text,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tape\" viewBox=\"0 0 %d %d\" "
                 "width=\"%d\" "
                 "height=\"%d\" role=\"img\">\n<title>The tape: %lld operations</title>\n",
                 width, height, width, height, (long long)d->count);
    buffer_print(&d->text,
                 "<desc>Each operation from the first at the top to the loss, with the norm "
                 "of the gradient that arrived at its result.</desc>\n");
    if (!d->in_page)
        buffer_print(&d->text, "<style>\n%s%s</style>\n", PALETTE_CSS(".tape", PALETTE_PICTURES),
                     drawing_svg_rules);
    for (int c = 0; c < columns && columns == 2; c++)
        buffer_print(&d->text, "<text class=\"head\" x=\"%d\" y=\"36\">%s</text>\n",
                     MARGIN + c * (WIDTH + GAP_X), c == 0 ? "encoder" : "decoder and loss");
    for (int64_t n = 0; n < d->count; n++)
        for (int i = 0; i < d->node[n].inputs; i++)
            svg_edge(d, &d->node[d->node[n].from[i]], &d->node[n]);
    for (int64_t n = 0; n < d->count; n++)
        svg_box(d, &d->node[n]);
    buffer_print(&d->text, "</svg>\n");
}
