#include "teach/report/chart.h"
#include <math.h>

enum {
    WIDTH = 760,
    HEIGHT = 240,
    LEFT = 64,
    RIGHT = 150,
    TOP = 16,
    BOTTOM = 40,
    MOST_POINTS = 400
};

static const char *const colours[CHART_CURVES] = {"var(--blue)", "var(--orange)", "#888"};

/* What the axes span; y as it is drawn, its logarithm where the chart is logarithmic. */
struct span {
    double x[2], y[2];
};

static double drawn(const struct chart *c, double y)
{
    return c->logarithmic ? (y > 0 ? log10(y) : NAN) : y;
}

static void take(struct span *s, double x, double y)
{
    if (isnan(y))
        return;
    s->x[0] = fmin(s->x[0], x);
    s->x[1] = fmax(s->x[1], x);
    s->y[0] = fmin(s->y[0], y);
    s->y[1] = fmax(s->y[1], y);
}

static struct span span_of(const struct chart *c)
{
    struct span s = {{0, 0}, {INFINITY, -INFINITY}};
    for (int n = 0; n < c->curves; n++)
        for (int64_t i = 0; i < c->points; i++)
            take(&s, c->x[i], drawn(c, c->curve[n].y[i]));
    if (!isnan(c->level) && s.x[0] < s.x[1])
        take(&s, s.x[0], drawn(c, c->level));
    if (!c->logarithmic)
        s.y[0] = fmin(s.y[0], 0);
    if (s.y[0] == s.y[1])
        s.y[1] += 1;
    return s;
}

static double x_at(const struct span *s, double x)
{
    return LEFT + (x - s->x[0]) / (s->x[1] - s->x[0]) * (WIDTH - LEFT - RIGHT);
}

static double y_at(const struct span *s, double y)
{
    return HEIGHT - BOTTOM - (y - s->y[0]) / (s->y[1] - s->y[0]) * (HEIGHT - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten, so that about n of them fill the range. */
static double round_step(double range, int n)
{
    const double power = pow(10, floor(log10(range / n))), rest = range / n / power;
    return power * (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10);
}

static void axes(struct html *html, const struct chart *c, const struct span *s)
{
    const double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    const double step = round_step(s->x[1] - s->x[0], 6);
    for (double x = ceil(s->x[0] / step) * step; x <= s->x[1]; x += step)
        html_print(html, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.10g</text>\n",
                   x_at(s, x), bottom + 18, x);
    const double range = s->y[1] - s->y[0];
    const double rise = c->logarithmic ? fmax(1, ceil(range / 6)) : round_step(range, 4);
    for (double y = ceil(s->y[0] / rise) * rise; y <= s->y[1] + 1e-9 * range; y += rise)
        html_print(html,
                   "<path d=\"M%d %.1fH%.1f\" stroke=\"var(--line)\"/><text x=\"%d\" y=\"%.1f\" "
                   "text-anchor=\"end\">%.4g</text>\n",
                   LEFT, y_at(s, y), right, LEFT - 8, y_at(s, y) + 4,
                   c->logarithmic            ? pow(10, y)
                   : fabs(y) < 1e-12 * range ? 0
                                             : y);
    html_print(html, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">step</text>\n",
               (LEFT + right) / 2, HEIGHT - 6);
}

/* At most MOST_POINTS of a curve, evenly taken; its last one always. */
static void curve(struct html *html, const struct chart *c, const struct span *s, int n)
{
    const struct curve *curve = &c->curve[n];
    int64_t count = 0, seen = 0;
    double last = NAN;
    for (int64_t i = 0; i < c->points; i++)
        count += !isnan(drawn(c, curve->y[i]));
    const int64_t stride = count / MOST_POINTS + 1;
    html_print(html, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"%s d=\"", colours[n],
               curve->dots ? " stroke-dasharray=\"5 3\"" : "");
    for (int64_t i = 0; i < c->points; i++) {
        const double y = drawn(c, curve->y[i]);
        if (isnan(y))
            continue;
        if (seen % stride == 0 || seen == count - 1)
            html_print(html, "%c%.1f %.1f", seen == 0 ? 'M' : 'L', x_at(s, c->x[i]), y_at(s, y));
        seen++;
        last = y;
    }
    html_add(html, "\"/>\n");
    for (int64_t i = 0; curve->dots && i < c->points; i++)
        if (!isnan(drawn(c, curve->y[i])))
            html_print(html, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                       x_at(s, c->x[i]), y_at(s, drawn(c, curve->y[i])), colours[n]);
    if (count > 0)
        html_print(html, "<text x=\"%d\" y=\"%.1f\" style=\"fill:%s\">%s %s</text>\n",
                   WIDTH - RIGHT + 8,
                   fmin(HEIGHT - BOTTOM, fmax(TOP + 10, y_at(s, last) + 4 + 14 * (n - 0.5))),
                   colours[n], curve->dots ? "- -" : "—", curve->name);
}

static void data(struct html *html, const struct chart *c)
{
    const char *names[1 + CHART_CURVES] = {"step"};
    for (int n = 0; n < c->curves; n++)
        names[1 + n] = c->curve[n].name;
    html_data_begin(html, 1 + c->curves, names);
    const int64_t stride = c->points / 60 + 1;
    for (int64_t i = 0; i < c->points; i++) {
        double cells[1 + CHART_CURVES] = {c->x[i]};
        bool dots = false;
        for (int n = 0; n < c->curves; n++) {
            cells[1 + n] = c->curve[n].y[i];
            dots |= c->curve[n].dots && !isnan(cells[1 + n]);
        }
        if (dots || i % stride == 0 || i == c->points - 1)
            html_data_row(html, 1 + c->curves, cells);
    }
    html_data_end(html);
}

bool chart_picture(struct html *html, const struct chart *c)
{
    const struct span s = span_of(c);
    if (!(s.x[0] < s.x[1]))
        return false;
    html_svg_begin(html, WIDTH, HEIGHT, "%s over %.10g steps%s%s", c->title, s.x[1],
                   c->unit[0] ? ", in " : "", c->unit);
    axes(html, c, &s);
    if (!isnan(c->level))
        html_print(html,
                   "<path d=\"M%d %.1fH%d\" stroke=\"#888\" stroke-dasharray=\"2 4\"/>"
                   "<text x=\"%d\" y=\"%.1f\">%s</text>\n",
                   LEFT, y_at(&s, drawn(c, c->level)), WIDTH - RIGHT, WIDTH - RIGHT + 8,
                   y_at(&s, drawn(c, c->level)) + 4, c->level_name);
    for (int n = 0; n < c->curves; n++)
        curve(html, c, &s, n);
    return true;
}

void chart_add(struct html *html, const struct chart *c)
{
    const struct span s = span_of(c);
    if (!(s.x[0] < s.x[1]))
        return;
    html_print(html, "<h2>%s</h2>\n", c->title);
    chart_picture(html, c);
    html_add(html, "</svg>\n");
    data(html, c);
}
