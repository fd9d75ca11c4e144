#include "teach/report/chart.h"
#include "teach/report/maps.h"
#include "teach/report/report.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/* ---- cross-attention with its symbols ---- */

enum { STEP = 46, RISE = 130, CELL = 30, LEFT = 60, TOP = 34, EDGE = 10, FAINT = 5 };

static void symbol(struct html *html, const sb_example_axis *axis, int64_t i, int64_t x, int64_t y,
                   const char *anchor)
{
    html_svg_text(html, x, y, anchor, "%s", subject_label(axis, i).text);
}

/* The middle of the i-th of n symbols, which have the whole width of the picture. */
static int64_t place(int64_t i, int64_t n, int64_t width)
{
    return (2 * i + 1) * width / (2 * n);
}

void alignment_picture(struct html *html, const struct maps *maps)
{
    const sb_example_attention *at = subject_attention(maps->subject, NULL);
    const sb_example_axis from = at->queries, to = at->keys;
    const int64_t n = from.length, m = to.length, width = STEP * (n > m ? n : m);
    const sb_tensor *w = maps_layer(maps, at, at->layers - 1);
    html_svg_begin(html, width, RISE, "Alignment of the text with what is written");
    for (int64_t j = 0; j < m; j++)
        symbol(html, &to, j, place(j, m, width), 14, "middle");
    for (int64_t i = 0; i < n; i++)
        symbol(html, &from, i, place(i, n, width), RISE - 6, "middle");
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            const double a = subject_weight(w, -1, i, j);
            if (a >= 0.1)
                html_print(html,
                           "<path d=\"M%lld %dL%lld 22\" stroke=\"var(--blue)\" "
                           "stroke-width=\"%.1f\" opacity=\"%.2f\"/>\n",
                           (long long)place(i, n, width), RISE - 24, (long long)place(j, m, width),
                           5 * a, a);
        }
}

void attention_picture(struct html *html, const struct maps *maps)
{
    const sb_example_attention *at = subject_attention(maps->subject, NULL);
    const sb_example_axis from = at->queries, to = at->keys;
    const sb_tensor *w = maps_layer(maps, at, at->layers - 1);
    const int64_t width = to.length * CELL, height = from.length * CELL;
    html_svg_begin(
        html, LEFT + width + EDGE, TOP + height + EDGE,
        "Attention of each written symbol to the text, in per cent: the last layer, mean "
        "over its heads");
    for (int64_t j = 0; j < to.length; j++)
        symbol(html, &to, j, LEFT + j * CELL + CELL / 2, TOP - 10, "middle");
    for (int64_t i = 0; i < from.length; i++)
        symbol(html, &from, i, LEFT - 8, TOP + i * CELL + CELL / 2 + 4, "end");
    html_svg_frame(html, LEFT, TOP, width, height);
    for (int64_t i = 0; i < from.length; i++)
        for (int64_t j = 0; j < to.length; j++) {
            const double per_cent = 100 * subject_weight(w, -1, i, j);
            const int64_t x = LEFT + j * CELL, y = TOP + i * CELL;
            if (per_cent < 1)
                continue;
            html_svg_square(html, x, y, CELL, "blue", per_cent / 100);
            html_svg_text(html, x + CELL / 2, y + CELL / 2 + 4, "middle",
                          per_cent >= FAINT ? "%.0f" : " ", per_cent);
            html_add(html, "\n");
        }
}

enum figure figure_named(const char *name)
{
    static const char *const names[] = {"attention", "alignment", "loss"};
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0)
            return (enum figure)(FIGURE_ATTENTION + i);
    sb_fail("--figure: \"%s\" is none of attention, alignment, loss", name);
    return NO_FIGURE;
}

char *figure_svg(enum figure figure, const struct subject *subject, const struct run_log *log)
{
    struct html html = {.alone = true};
    bool ok = false;
    html_add(&html, SIGNATURE_FIGURE);
    if (figure == FIGURE_LOSS)
        ok = curves_loss(&html, log, subject->example.choices);
    else
        ok = maps_of(&html, subject,
                     figure == FIGURE_ATTENTION ? attention_picture : alignment_picture);
    char *svg = html_svg_end(&html);
    if (ok)
        return svg;
    memory_free(svg);
    return NULL;
}

/* ---- the Jacobian of a row of softmax ---- */

enum {
    BESIDE = 92,
    ABOVE = 44,
    BELOW = 58,
    LARGE = 72,
    SMALL = 24,
    MOST_LARGE = 8,
    NARROWEST = 320
};

/* Blue and "+" above 0, orange and "-" below; where there is room, the number. */
static void cell(struct html *html, int size, int i, int j, double value, double largest)
{
    const double share = largest > 0 ? fabs(value) / largest : 0;
    const int x = BESIDE + j * size, y = ABOVE + i * size;
    html_svg_square(html, x, y, size, value < 0 ? "orange" : "blue", share);
    html_svg_text(html, x + size / 2, y + size / 2 + 4, "middle",
                  share < 0.001   ? "0"
                  : size == LARGE ? "%+.3f"
                  : value < 0     ? "-"
                                  : "+",
                  value);
    html_add(html, "\n");
}

static void grid(struct html *html, const struct row *row, double J[][EXPLAIN_NUMBERS],
                 const double a[])
{
    const int n = row->n, size = n > MOST_LARGE ? SMALL : LARGE, width = BESIDE + n * size + 12;
    double largest = 0;
    for (int i = 0; i < n * n; i++)
        largest = fmax(largest, fabs(J[i / n][i % n]));
    html_svg_begin(html, width < NARROWEST ? NARROWEST : width, ABOVE + n * size + BELOW,
                   "The Jacobian of a softmax of %d scores", n);
    for (int i = 0; i < n; i++) {
        html_svg_text(html, BESIDE + i * size + size / 2, ABOVE - 12, "middle",
                      size == LARGE ? "s = %.4g" : "%.2g", row->s[i]);
        html_svg_text(html, BESIDE - 10, ABOVE + i * size + size / 2 + 4, "end", "a = %.3f", a[i]);
        html_add(html, "\n");
        for (int j = 0; j < n; j++)
            cell(html, size, i, j, J[i][j], largest);
    }
    html_svg_frame(html, BESIDE, ABOVE, n * size, n * size);
    html_print(html,
               "<text x=\"%d\" y=\"%d\">What one weight gains, the others lose:</text>"
               "<text x=\"%d\" y=\"%d\">each row and column sums to 0.</text>\n",
               BESIDE, ABOVE + n * size + 24, BESIDE, ABOVE + n * size + 42);
}

char *jacobian_svg(const struct row *row)
{
    struct html html = {.alone = true};
    double J[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS] = {0}, a[EXPLAIN_NUMBERS] = {0};
    if (!row_forward(row, a) || !row_jacobian(row, J))
        return NULL;
    grid(&html, row, J, a);
    return html_svg_end(&html);
}
