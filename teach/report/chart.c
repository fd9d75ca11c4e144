#include "teach/report/chart.h"
#include "tensor/utf8.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char script[] = {
#include "zoom.inc"
    0};

enum {
    WIDTH = 760,
    HEIGHT = 240,
    LEFT = 64,
    RIGHT = 150,
    TOP = 16,
    BOTTOM = 40,
    LABEL = 14, /* the height of a curve's name */
    MOST_LETTERS = 17,
    MOST_POINTS = 2000,
    COLOURS = 4
};
static const double SMOOTHING = 0.05; /* the share of a curve's points that its mean is over */

/* A curve has the n-th colour, and also the n-th dashes: colour alone tells nothing apart. */
static const char *const colours[COLOURS] = {"var(--blue)", "var(--orange)", "var(--green)",
                                             "var(--violet)"};
static const char *const dashes[CHART_CURVES] = {"none", "6 3",      "2 3", "8 3 2 3",
                                                 "1 2",  "12 3 3 3", "4 6", "10 5"};

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

/* ---- axes ---- */

enum { MOST_TICKS = 32 };

/* The multiples of a step in a range. */
static int even_ticks(const double range[2], double step, double tick[])
{
    int n = 0;
    for (double k = ceil(range[0] / step - 1e-9); n < MOST_TICKS && k <= range[1] / step + 1e-9;
         k++)
        tick[n++] = k * step + 0.0; /* no -0 */
    return n;
}

/* Of logarithms: powers of ten; over less than two of them 1, 2 and 5 times these; and over less
   than one even steps of the values themselves. */
static int logarithmic_ticks(const double range[2], double tick[])
{
    static const double between[] = {0, 0.30103, 0.69897};
    const double size = range[1] - range[0];
    int n = 0;
    if (size > 2)
        return even_ticks(range, ceil(size / 6), tick);
    if (size < 1) {
        const double values[2] = {pow(10, range[0]), pow(10, range[1])};
        n = even_ticks(values, round_step(values[1] - values[0], 4), tick);
        for (int i = 0; i < n; i++)
            tick[i] = log10(tick[i]);
        return n;
    }
    for (double power = floor(range[0]); power <= range[1]; power++)
        for (int i = 0; i < 3; i++)
            if (power + between[i] >= range[0] && power + between[i] <= range[1])
                tick[n++] = power + between[i];
    return n;
}

static void axes(struct html *html, const struct chart *c, const struct span *s)
{
    const double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    double tick[MOST_TICKS];
    int n = even_ticks(s->x, round_step(s->x[1] - s->x[0], 6), tick);
    for (int i = 0; i < n; i++)
        html_say(html, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.10g</text>\n",
                 x_at(s, tick[i]), bottom + 18, tick[i]);
    n = c->logarithmic ? logarithmic_ticks(s->y, tick)
                       : even_ticks(s->y, round_step(s->y[1] - s->y[0], 4), tick);
    for (int i = 0; i < n; i++)
        html_say(html,
                 "<path d=\"M%d %.1fH%.1f\" stroke=\"var(--line)\"/><text x=\"%d\" y=\"%.1f\" "
                 "text-anchor=\"end\">%.3g</text>\n",
                 LEFT, y_at(s, tick[i]), right, LEFT - 8, y_at(s, tick[i]) + 4,
                 c->logarithmic ? pow(10, tick[i]) : tick[i]);
    html_print(html, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">step</text>\n",
               (LEFT + right) / 2, HEIGHT - 6);
}

/* ---- curves ---- */

/* What is drawn of a curve. */
struct trace {
    int count;
    double x[MOST_POINTS + 2], y[MOST_POINTS + 2]; /* of the picture */
};

/* At most MOST_POINTS of a curve, evenly taken; its last one always. */
static void trace_of(struct trace *t, const struct chart *c, const struct span *s,
                     const struct curve *curve)
{
    int64_t count = 0, seen = 0;
    t->count = 0;
    for (int64_t i = 0; i < c->points; i++)
        count += !isnan(drawn(c, curve->y[i]));
    const int64_t stride = count / MOST_POINTS + 1;
    for (int64_t i = 0; i < c->points; i++) {
        const double y = drawn(c, curve->y[i]);
        if (isnan(y))
            continue;
        if (seen % stride == 0 || seen == count - 1) {
            t->x[t->count] = x_at(s, c->x[i]);
            t->y[t->count++] = y_at(s, y);
        }
        seen++;
    }
}

/* The mean of y over the points near point i, as many on both sides; fewer at the ends. */
static double mean_near(const struct trace *t, int i, int half)
{
    const int from = i > half ? i - half : 0, to = i + half < t->count ? i + half : t->count - 1;
    double sum = 0;
    for (int k = from; k <= to; k++)
        sum += t->y[k];
    return sum / (to - from + 1);
}

static void path(struct html *html, const struct trace *t, const char *kind, int half)
{
    html_print(html, "<path class=\"%s\" d=\"", kind);
    for (int i = 0; i < t->count; i++)
        html_print(html, "%c%.2f %.2f", i == 0 ? 'M' : 'L', t->x[i], mean_near(t, i, half));
    html_add(html, "\"/>\n");
}

/* The points themselves, thin where there is a mean over those near. */
static void curve(struct html *html, const struct trace *t, const struct curve *curve, int n)
{
    const bool smooth = !curve->dots && !curve->exact;
    const int half = !smooth ? 0 : (int)(SMOOTHING * t->count / 2);
    html_print(html,
               "<g class=\"curve\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" "
               "stroke-dasharray=\"%s\"%s data-name=\"",
               colours[n % COLOURS], dashes[n], curve->exact ? " data-exact=\"true\"" : "");
    html_text(html, curve->name);
    html_add(html, half > 0 ? "\">\n<g stroke-width=\"1\" opacity=\".4\">" : "\">\n<g>");
    path(html, t, "points", 0);
    html_add(html, "</g>");
    if (half > 0)
        path(html, t, "mean", half);
    for (int i = 0; curve->dots && i < t->count; i++)
        html_print(html, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"%s\" stroke=\"none\"/>\n",
                   t->x[i], t->y[i], colours[n % COLOURS]);
    html_add(html, "</g>\n");
}

/* ---- names ---- */

struct label {
    double y;
    int curve; /* the number of curves for the level's */
};

/* Puts labels, in ascending order of y, below each other without overlap. */
static void labels_part(int n, struct label label[])
{
    for (int i = 1; i < n; i++)
        label[i].y = fmax(label[i].y, label[i - 1].y + LABEL);
    for (int i = n - 1; i >= 0; i--)
        label[i].y = fmin(label[i].y, HEIGHT - BOTTOM + 4 - LABEL * (n - 1 - i));
}

static int labels_insert(int n, struct label label[], struct label new)
{
    int at = n;
    for (; at > 0 && label[at - 1].y > new.y; at--)
        label[at] = label[at - 1];
    label[at] = new;
    return n + 1;
}

/* A long name is cut between two characters. */
static void short_name(struct html *html, const char *name)
{
    char text[4 * MOST_LETTERS + 1];
    int letters = 0;
    size_t size = 0;
    for (size_t n;
         letters < MOST_LETTERS && (n = utf8_length(name + size, strlen(name + size))) > 0;
         letters++)
        size += n;
    snprintf(text, sizeof text, "%.*s", (int)size, name);
    html_text(html, text);
    html_add(html, name[size] ? "&#8230;" : "");
}

static void add_label(struct html *html, const struct chart *c, const struct label *label)
{
    const int n = label->curve, x = WIDTH - RIGHT + 8;
    if (n == c->curves) {
        html_print(html, "<text x=\"%d\" y=\"%.1f\">", x, label->y);
        short_name(html, c->level_name);
    } else {
        html_print(html,
                   "<path d=\"M%d %.1fh18\" stroke=\"%s\" stroke-width=\"1.8\" "
                   "stroke-dasharray=\"%s\"/><text x=\"%d\" y=\"%.1f\" style=\"fill:%s\">",
                   x, label->y - 4, colours[n % COLOURS], dashes[n], x + 23, label->y,
                   colours[n % COLOURS]);
        short_name(html, c->curve[n].name);
    }
    html_add(html, "</text>\n");
}

/* The curves, with their names where they end. */
static void curves(struct html *html, const struct chart *c, const struct span *s)
{
    struct label label[CHART_CURVES + 1];
    int labels = 0;
    for (int n = 0; n < c->curves; n++) {
        struct trace t;
        trace_of(&t, c, s, &c->curve[n]);
        if (t.count == 0)
            continue;
        curve(html, &t, &c->curve[n], n);
        labels = labels_insert(labels, label, (struct label){t.y[t.count - 1] + 4, n});
    }
    if (!isnan(c->level))
        labels = labels_insert(labels, label,
                               (struct label){y_at(s, drawn(c, c->level)) + 4, c->curves});
    labels_part(labels, label);
    for (int i = 0; i < labels; i++)
        add_label(html, c, &label[i]);
}

/* ---- the chart ---- */

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
    html_add(html, "<g class=\"axes\">\n");
    axes(html, c, &s);
    html_add(html, "</g>\n");
    if (!isnan(c->level))
        html_print(html,
                   "<path class=\"level\" d=\"M%d %.1fH%d\" stroke=\"#888\" "
                   "stroke-dasharray=\"2 4\"/>\n",
                   LEFT, y_at(&s, drawn(c, c->level)), WIDTH - RIGHT);
    html_print(html,
               "<text x=\"14\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 14 "
               "%d)\">%s%s</text>\n",
               (TOP + HEIGHT - BOTTOM) / 2, (TOP + HEIGHT - BOTTOM) / 2, c->unit,
               !c->logarithmic ? ""
               : c->unit[0]    ? ", log scale"
                               : "log scale");
    curves(html, c, &s);
    return true;
}

void chart_add(struct html *html, const struct chart *c)
{
    const struct span s = span_of(c);
    if (!(s.x[0] < s.x[1]))
        return;
    html_print(html,
               "<h2>%s</h2>\n<div class=\"chart\" data-frame=\"%d %d %d %d\" data-x=\"%.17g "
               "%.17g\" data-y=\"%.17g %.17g\"%s>\n",
               c->title, LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, s.x[0], s.x[1],
               s.y[0], s.y[1], c->logarithmic ? " data-logarithmic=\"\"" : "");
    chart_picture(html, c);
    html_add(html, "</svg>\n</div>\n");
    data(html, c);
}

void chart_controls(struct html *html)
{
    html_print(html,
               "<p>Where a curve has %.0f points or more, its thick line is the mean over the %.0f "
               "%% of them around each, and its thin line the points themselves.</p>\n",
               2 / SMOOTHING, 100 * SMOOTHING);
    html_print(
        html,
        "<p id=\"zoom\" hidden><label>Steps <input type=\"number\" id=\"from\"></label> "
        "<label>to <input type=\"number\" id=\"to\"></label> "
        "<button id=\"all\">all</button> <label>Mean over <input type=\"range\" "
        "id=\"smoothing\" min=\"0\" max=\"30\" value=\"%.0f\"></label> <output id=\"smoothed\" "
        "for=\"smoothing\"></output> "
        "<span class=\"mouse\">or drag over a chart</span></p>\n",
        100 * SMOOTHING);
}

void chart_script(struct html *html)
{
    html_script(html, script);
}
