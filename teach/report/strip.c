#include "teach/report/strip.h"
#include <math.h>
#include <string.h>

enum {
    LEFT = 330,
    WIDEST = 24,
    ROOM = 440,
    ROW = 13,
    TOP = 4,
    FOOT = 34,
    MOST_LETTERS = 48,
    SHADES = 10
};

static double largest_of(const struct strip *s)
{
    double largest = 0;
    for (int64_t c = 0; c < s->columns; c++)
        for (int64_t r = 0; r < s->rows; r++)
            largest = fmax(largest, s->values[c][r]);
    return largest;
}

/* 0 for nothing, to SHADES. */
static int shade(const struct strip *s, double value, double largest)
{
    if (!(value > 0) || !(largest > 0))
        return 0;
    const double share = s->logarithmic ? 1 + log10(value / largest) / 4 : value / largest;
    return share <= 0 ? 0 : (int)ceil(SHADES * fmin(share, 1));
}

static double cell_width(const struct strip *s)
{
    return fmin(WIDEST, (double)ROOM / (double)s->columns);
}

static void names(struct html *html, const struct strip *s)
{
    for (int64_t r = 0; r < s->rows; r++) {
        const char *name = s->name(s->context, r);
        const size_t n = strlen(name);
        html_print(html, "<text x=\"%d\" y=\"%lld\" text-anchor=\"end\" font-size=\"10\">",
                   LEFT - 6, (long long)(TOP + r * ROW + 10));
        html_text(html, n > MOST_LETTERS ? name + n - MOST_LETTERS : name);
        html_add(html, "</text>\n");
    }
}

static void cells(struct html *html, const struct strip *s, int wanted, double largest)
{
    const double width = cell_width(s);
    bool any = false;
    for (int64_t c = 0; c < s->columns; c++)
        for (int64_t r = 0; r < s->rows; r++)
            if (shade(s, s->values[c][r], largest) == wanted) {
                if (!any)
                    html_print(html, "<path opacity=\"%.2f\" d=\"", (double)wanted / SHADES);
                any = true;
                html_print(html, "M%.4g %lldh%.4gv%dh-%.4gz", LEFT + (double)c * width,
                           (long long)(TOP + r * ROW), width, ROW - 1, width);
            }
    html_add(html, any ? "\"/>\n" : "");
}

static void data(struct html *html, const struct strip *s)
{
    html_add(html, "<details><summary>The numbers</summary>\n<div class=\"wide\"><table>\n"
                   "<tr><th scope=\"col\">step</th>");
    for (int64_t c = 0; c < s->columns; c++)
        html_print(html, "<th scope=\"col\">%.10g</th>", s->steps[c]);
    html_add(html, "</tr>\n");
    for (int64_t r = 0; r < s->rows; r++) {
        html_add(html, "<tr><th scope=\"row\">");
        html_text(html, s->name(s->context, r));
        html_add(html, "</th>");
        for (int64_t c = 0; c < s->columns; c++)
            html_print(html, "<td>%.3g</td>", s->values[c][r]);
        html_add(html, "</tr>\n");
    }
    html_data_end(html);
}

void strip_add(struct html *html, const struct strip *s)
{
    if (s->columns == 0 || s->rows == 0)
        return;
    const double largest = largest_of(s);
    const int64_t height = TOP + s->rows * ROW + FOOT;
    const int width = LEFT + (int)(cell_width(s) * (double)s->columns) + 40;
    html_print(html, "<h2>%s</h2>\n<p>%s The strongest shade is %.3g.</p>\n<div class=\"wide\">",
               s->title, s->text, largest);
    html_svg_begin(html, width, height, "%s", s->title);
    html_add(html, "<g fill=\"var(--blue)\">\n");
    names(html, s);
    for (int n = 1; n <= SHADES; n++)
        cells(html, s, n, largest);
    html_print(html,
               "<text x=\"%d\" y=\"%lld\">step %.10g</text>\n<text x=\"%d\" y=\"%lld\" "
               "text-anchor=\"end\">%.10g</text>\n</g></svg></div>\n",
               LEFT, (long long)(height - FOOT / 2), s->steps[0], width - 40,
               (long long)(height - FOOT / 2), s->steps[s->columns - 1]);
    data(html, s);
}
