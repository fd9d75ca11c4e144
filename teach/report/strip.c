#include "teach/report/strip.h"
#include <math.h>
#include <string.h>

enum {
    LEFT = 330,
    WIDEST = 24,
    WIDEST_NAMED = 40,
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
    return fmin(s->columns_named ? WIDEST_NAMED : WIDEST, (double)ROOM / (double)s->columns);
}

static void column_name(struct html *html, const struct strip *s, int64_t c)
{
    if (s->columns_named)
        html_text(html, s->columns_named[c]);
    else
        html_print(html, "%.10g", s->steps[c]);
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

static void axis_text(struct html *html, const struct strip *s, double x, const char *anchor,
                      int64_t c)
{
    html_print(html, "<text x=\"%.1f\" y=\"%lld\" text-anchor=\"%s\">", x,
               (long long)(TOP + s->rows * ROW + FOOT / 2), anchor);
    html_add(html, !s->columns_named && c == 0 ? "step " : "");
    column_name(html, s, c);
    html_add(html, "</text>\n");
}

/* All names of columns, or the first step and the last. */
static void axis(struct html *html, const struct strip *s)
{
    const double width = cell_width(s);
    for (int64_t c = 0; s->columns_named && c < s->columns; c++)
        axis_text(html, s, LEFT + ((double)c + 0.5) * width, "middle", c);
    if (s->columns_named)
        return;
    axis_text(html, s, LEFT, "start", 0);
    if (s->columns > 1)
        axis_text(html, s, fmax(LEFT + (double)s->columns * width, LEFT + 100), "end",
                  s->columns - 1);
}

static void data(struct html *html, const struct strip *s)
{
    html_add(html, "<details><summary>The numbers</summary>\n<div class=\"wide\"><table>\n"
                   "<tr><th scope=\"col\">");
    html_add(html, s->columns_named ? "</th>" : "step</th>");
    for (int64_t c = 0; c < s->columns; c++) {
        html_add(html, "<th scope=\"col\">");
        column_name(html, s, c);
        html_add(html, "</th>");
    }
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
    const int width = LEFT + (int)fmax(cell_width(s) * (double)s->columns, 100) + 40;
    html_print(html, "<h2>%s</h2>\n<p>%s The strongest shade is %.3g.</p>\n<div class=\"wide\">",
               s->title, s->text, largest);
    html_svg_begin(html, width, height, "%s", s->title);
    html_add(html, "<g fill=\"var(--blue)\">\n");
    names(html, s);
    for (int n = 1; n <= SHADES; n++)
        cells(html, s, n, largest);
    axis(html, s);
    html_add(html, "</g></svg></div>\n");
    data(html, s);
}
