#include "teach/report/jacobian.h"
#include "teach/report/html.h"
#include <math.h>

enum {
    LEFT = 92,
    TOP = 44,
    FOOT = 58,
    EDGE = 12,
    LARGE = 72,
    SMALL = 24,
    MOST_LARGE = 8,
    NARROWEST = 320
};

/* Blue and "+" above 0, orange and "-" below; where there is room, the number. */
static void cell(struct html *html, int size, int i, int j, double value, double largest)
{
    const double share = largest > 0 ? fabs(value) / largest : 0;
    html_square(html, LEFT + j * size, TOP + i * size, size, value < 0 ? "orange" : "blue", share,
                share < 0.001   ? "0"
                : size == LARGE ? "%+.3f"
                : value < 0     ? "-"
                                : "+",
                value);
}

static void grid(struct html *html, const struct row *row, double J[][EXPLAIN_NUMBERS],
                 const double a[])
{
    const int n = row->n, size = n > MOST_LARGE ? SMALL : LARGE;
    double largest = 0;
    for (int i = 0; i < n * n; i++)
        largest = fmax(largest, fabs(J[i / n][i % n]));
    const int width = LEFT + n * size + EDGE;
    html_svg_begin(html, width < NARROWEST ? NARROWEST : width, TOP + n * size + FOOT,
                   "The Jacobian of a softmax of %d scores", n);
    for (int i = 0; i < n; i++) {
        html_print(html, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                   LEFT + i * size + size / 2, TOP - 12);
        html_print(html, size == LARGE ? "s = %.4g" : "%.2g", row->s[i]);
        html_print(html, "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">a = %.3f</text>\n",
                   LEFT - 10, TOP + i * size + size / 2 + 4, a[i]);
        for (int j = 0; j < n; j++)
            cell(html, size, i, j, J[i][j], largest);
    }
    html_print(html,
               "<path fill=\"none\" stroke=\"var(--line)\" d=\"M%d %dh%dv%dh-%dz\"/>\n"
               "<text x=\"%d\" y=\"%d\">What one weight gains, the others lose:</text>"
               "<text x=\"%d\" y=\"%d\">each row and column sums to 0.</text>\n",
               LEFT, TOP, n * size, n * size, n * size, LEFT, TOP + n * size + 24, LEFT,
               TOP + n * size + 42);
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
