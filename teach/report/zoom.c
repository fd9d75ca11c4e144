#include "teach/report/zoom.h"
#include "teach/report/chart.h"

static const char script[] = {
#include "zoom.inc"
    0};

void zoom_add(struct html *html)
{
    html_print(html,
               "<p>Where a curve has %.0f points or more, its thick line is the mean over the %.0f "
               "%% of them around each, and its thin line the points themselves.</p>\n",
               2 / CHART_SMOOTHING, 100 * CHART_SMOOTHING);
    html_print(
        html,
        "<p id=\"zoom\" hidden><label>Steps <input type=\"number\" id=\"from\"></label> "
        "<label>to <input type=\"number\" id=\"to\"></label> "
        "<button id=\"all\">all</button> <label>Mean over <input type=\"range\" "
        "id=\"smoothing\" min=\"0\" max=\"30\" value=\"%.0f\"></label> <output id=\"smoothed\" "
        "for=\"smoothing\"></output> "
        "<span class=\"mouse\">or drag over a chart</span></p>\n",
        100 * CHART_SMOOTHING);
}

void zoom_script(struct html *html)
{
    html_script(html, script);
}
