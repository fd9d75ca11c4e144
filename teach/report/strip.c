#include "teach/report/strip.h"
#include <math.h>

enum { FEW = 12 }; /* columns whose heads have room */

static double largest_of(const struct strip *s)
{
    double largest = 0;
    for (int64_t c = 0; c < s->columns; c++)
        for (int64_t r = 0; r < s->rows; r++)
            largest = fmax(largest, s->values[c][r]);
    return largest;
}

static double shade(const struct strip *s, double value, double largest)
{
    if (!(value > 0) || !(largest > 0))
        return 0;
    return fmax(0, s->logarithmic ? 1 + log10(value / largest) / 4 : value / largest);
}

static void head(struct html *html, const struct strip *s)
{
    html_add(html,
             s->columns_named ? "<tr><th scope=\"col\"></th>" : "<tr><th scope=\"col\">step</th>");
    for (int64_t c = 0; c < s->columns; c++) {
        html_add(html, "<th scope=\"col\">");
        if (s->columns_named)
            html_text(html, s->columns_named[c]);
        else
            html_print(html, "%.10g", s->steps[c]);
        html_add(html, "</th>");
    }
    html_add(html, "</tr>\n");
}

void strip_add(struct html *html, const struct strip *s)
{
    if (s->columns == 0 || s->rows == 0)
        return;
    const double largest = largest_of(s);
    html_print(html,
               "<h2>%s</h2>\n<p>%s The strongest shade is %.3g. Click for the numbers.</p>\n"
               "<div class=\"wide shades\" tabindex=\"0\" style=\"--columns:%lld\">\n"
               "<table class=\"strip%s\">\n",
               s->title, s->text, largest, (long long)s->columns, s->columns > FEW ? " many" : "");
    head(html, s);
    for (int64_t r = 0; r < s->rows; r++) {
        html_add(html, "<tr><th scope=\"row\">");
        html_text(html, s->name(s->context, r));
        html_add(html, "</th>");
        for (int64_t c = 0; c < s->columns; c++)
            html_shade(html, shade(s, s->values[c][r], largest), s->values[c][r]);
        html_add(html, "</tr>\n");
    }
    html_add(html, "</table></div>\n");
}
