/* Cross-attention with its symbols: the two pictures that can stand alone. */
#include "teach/report/maps.h"

enum { STEP = 46, RISE = 130, CELL = 30, LEFT = 60, TOP = 34, EDGE = 10, FAINT = 5 };

static const sb_tensor *last_layer(const struct maps *maps)
{
    const sb_example_attention *at = subject_attention(maps->subject, NULL);
    return maps_layer(maps, at, at->layers - 1);
}

static void symbol(struct html *html, const sb_example_axis *axis, int64_t i, int64_t x, int64_t y,
                   const char *anchor)
{
    html_print(html, "<text x=\"%lld\" y=\"%lld\" text-anchor=\"%s\">", (long long)x, (long long)y,
               anchor);
    html_text(html, subject_label(axis, i).text);
    html_add(html, "</text>");
}

/* The middle of the i-th of n symbols, which have the whole width of the picture. */
static int64_t place(int64_t i, int64_t n, int64_t width)
{
    return (2 * i + 1) * width / (2 * n);
}

static void line(struct html *html, int64_t from, int64_t to, double a)
{
    html_print(html,
               "<path d=\"M%lld %dL%lld 22\" stroke=\"var(--blue)\" stroke-width=\"%.1f\" "
               "opacity=\"%.2f\"/>\n",
               (long long)from, RISE - 24, (long long)to, 5 * a, a);
}

void alignment_picture(struct html *html, const struct maps *maps)
{
    const sb_example_attention *at = subject_attention(maps->subject, NULL);
    const sb_example_axis from = at->queries, to = at->keys;
    const int64_t n = from.length, m = to.length, width = STEP * (n > m ? n : m);
    const sb_tensor *w = last_layer(maps);
    html_svg_begin(html, width, RISE, "Alignment of the text with what is written");
    for (int64_t j = 0; j < m; j++)
        symbol(html, &to, j, place(j, m, width), 14, "middle");
    for (int64_t i = 0; i < n; i++)
        symbol(html, &from, i, place(i, n, width), RISE - 6, "middle");
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            if (subject_weight(w, -1, i, j) >= 0.1)
                line(html, place(i, n, width), place(j, m, width), subject_weight(w, -1, i, j));
}

void attention_picture(struct html *html, const struct maps *maps)
{
    const sb_example_attention *at = subject_attention(maps->subject, NULL);
    const sb_example_axis from = at->queries, to = at->keys;
    const sb_tensor *w = last_layer(maps);
    const long long width = (long long)to.length * CELL, height = (long long)from.length * CELL;
    html_svg_begin(
        html, LEFT + width + EDGE, TOP + height + EDGE,
        "Attention of each written symbol to the text, in per cent: the last layer, mean "
        "over its heads");
    for (int64_t j = 0; j < to.length; j++)
        symbol(html, &to, j, LEFT + j * CELL + CELL / 2, TOP - 10, "middle");
    for (int64_t i = 0; i < from.length; i++)
        symbol(html, &from, i, LEFT - 8, TOP + i * CELL + CELL / 2 + 4, "end");
    html_print(html, "<path fill=\"none\" stroke=\"var(--line)\" d=\"M%d %dh%lldv%lldh-%lldz\"/>\n",
               LEFT, TOP, width, height, width);
    for (int64_t i = 0; i < from.length; i++)
        for (int64_t j = 0; j < to.length; j++) {
            const double per_cent = 100 * subject_weight(w, -1, i, j);
            if (per_cent >= 1)
                html_square(html, LEFT + j * CELL, TOP + i * CELL, CELL, "blue", per_cent / 100,
                            per_cent >= FAINT ? "%.0f" : " ", per_cent);
        }
}
