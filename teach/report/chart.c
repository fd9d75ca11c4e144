#include "teach/report/chart.h"
#include <math.h>
#include <string.h>

static const char script[] = {
#include "axes.js.inc"
#include "zoom.js.inc"
    0};

/* A picture alone: its size, and the room around the frame of the curves. */
enum { WIDTH = 760, HEIGHT = 250, LEFT = 64, RIGHT = 20, TOP = 56, BOTTOM = 42 };
enum { MOST_POINTS = 2000, MOST_TICKS = 32, COLOURS = 4 };
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

/* NaN: not at all. */
static double drawn(const struct chart *c, double y)
{
    y = c->logarithmic ? log10(y) : y;
    return isfinite(y) ? y : (double)NAN;
}

static double point(const struct curve *curve, int64_t i)
{
    return curve->log->line[i].of[curve->value];
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
    for (const struct curve *curve = c->curve; curve < c->curve + c->curves; curve++)
        for (int64_t i = 0; i < curve->log->count; i++)
            take(&s, curve->log->line[i].of[RUN_STEP], drawn(c, point(curve, i)));
    if (c->level != 0 && s.x[0] < s.x[1])
        take(&s, s.x[0], drawn(c, c->level));
    if (!c->logarithmic)
        s.y[0] = fmin(s.y[0], 0);
    if (strcmp(c->unit, "per cent") == 0)
        s.y[1] = 100;
    if (s.y[0] == s.y[1])
        s.y[1] += 1;
    return s;
}

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten, so that about n of them fill the range. */
static double round_step(double range, int n)
{
    const double power = pow(10, floor(log10(range / n))), rest = range / n / power;
    return power * (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10);
}

/* The multiples of a step in a range. */
static int even_ticks(const double range[2], double step, double tick[])
{
    int n = 0;
    for (double k = ceil(range[0] / step - 1e-9); n < MOST_TICKS && k <= range[1] / step + 1e-9;
         k++)
        tick[n++] = k * step + 0.0; /* no -0 */
    return n;
}

/* Ticks of logarithms: powers of ten; over less than two of them 1, 2 and 5 times these; and where
   that makes less than three, even steps of the values themselves. */
static int logarithmic_ticks(const double range[2], double tick[])
{
    static const double between[] = {0, 0.30103, 0.69897};
    const double size = range[1] - range[0];
    int n = 0;
    if (size > 2)
        return even_ticks(range, ceil(size / 6), tick);
    for (double power = floor(range[0]); power <= range[1]; power++)
        for (int i = 0; i < 3; i++)
            if (power + between[i] >= range[0] && power + between[i] <= range[1])
                tick[n++] = power + between[i];
    if (n >= 3)
        return n;
    const double values[2] = {pow(10, range[0]), pow(10, range[1])};
    n = even_ticks(values, round_step(values[1] - values[0], 4), tick);
    for (int i = 0; i < n; i++)
        tick[i] = log10(tick[i]);
    return n;
}

/* Where a value is in a range, in per cent. */
static double place(const double range[2], double x)
{
    return 100 * (x - range[0]) / (range[1] - range[0]);
}

static void axes(struct html *html, const struct chart *c, const struct span *s)
{
    double tick[MOST_TICKS];
    int n = even_ticks(s->x, round_step(s->x[1] - s->x[0], 6), tick);
    html_add(html, "<g class=\"axes\">\n");
    for (int i = 0; i < n; i++)
        html_say(html,
                 "<text class=\"step\" x=\"%.2f%%\" y=\"100%%\" dy=\"20\" text-anchor=\"middle\">"
                 "%.10g</text>\n",
                 place(s->x, tick[i]), tick[i]);
    n = c->logarithmic ? logarithmic_ticks(s->y, tick)
                       : even_ticks(s->y, round_step(s->y[1] - s->y[0], 4), tick);
    for (int i = 0; i < n; i++) {
        const double y = 100 - place(s->y, tick[i]);
        html_say(html,
                 "<line x2=\"100%%\" y1=\"%.2f%%\" y2=\"%.2f%%\" stroke=\"var(--line)\"/><text "
                 "x=\"-8\" y=\"%.2f%%\" dy=\"4\" text-anchor=\"end\">%.3g</text>\n",
                 y, y, y, c->logarithmic ? pow(10, tick[i]) : tick[i]);
    }
    html_add(html, "</g>\n");
}

/* ---- curves ---- */

/* What is drawn of a curve. */
struct trace {
    int count;
    double x[MOST_POINTS + 2], y[MOST_POINTS + 2];
};

static int64_t points_of(const struct chart *c, const struct curve *curve)
{
    int64_t count = 0;
    for (int64_t i = 0; i < curve->log->count; i++)
        count += !isnan(drawn(c, point(curve, i)));
    return count;
}

/* At most MOST_POINTS of a curve, evenly taken; its last one always. */
static void trace_of(struct trace *t, const struct chart *c, const struct curve *curve)
{
    const int64_t count = points_of(c, curve), stride = count / MOST_POINTS + 1;
    t->count = 0;
    for (int64_t i = 0, seen = 0; seen < count; i++) {
        const double y = drawn(c, point(curve, i));
        if (isnan(y))
            continue;
        if (seen % stride == 0 || seen == count - 1) {
            t->x[t->count] = curve->log->line[i].of[RUN_STEP];
            t->y[t->count++] = y;
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

/* A line through points, or with `dots` a dot at each: zero long, with round ends. */
static void path(struct html *html, const struct trace *t, const char *kind, const char *style,
                 int half, bool dots)
{
    html_print(html, "<path vector-effect=\"non-scaling-stroke\"%s class=\"%s\" d=\"", style, kind);
    for (int i = 0; i < t->count; i++)
        html_print(html, "%c%.10g %.6g%s", i == 0 || dots ? 'M' : 'L', t->x[i],
                   0 - mean_near(t, i, half), dots ? "h0" : "");
    html_add(html, "\"/>\n");
}

/* Few points, those of evaluations, have dots; many have a mean over those near, except a learning
   rate, which has no noise. */
static void curve(struct html *html, const struct trace *t, const struct curve *curve, int n)
{
    const bool few = curve->value >= RUN_HELD_OUT_LOSS, noisy = !few && curve->value != RUN_RATE;
    html_print(html, "<g class=\"curve\" stroke=\"%s\" stroke-dasharray=\"%s\" data-name=\"",
               colours[n % COLOURS], dashes[n]);
    html_text(html, curve->name);
    html_add(html, "\">\n");
    path(html, t, "points", noisy ? " stroke-width=\"1\" opacity=\".4\"" : "", 0, false);
    if (noisy)
        path(html, t, "mean", "", (int)(SMOOTHING * t->count / 2), false);
    if (few)
        path(html, t, "dots",
             " stroke-width=\"6\" stroke-linecap=\"round\" stroke-dasharray=\"none\"", 0, true);
    html_add(html, "</g>\n");
}

/* The curves in units of what they show, downward: a part of them is another viewBox. */
static void curves(struct html *html, const struct chart *c, const struct span *s)
{
    html_print(html,
               "<svg class=\"curves\" aria-hidden=\"true\" viewBox=\"%.17g %.17g %.17g %.17g\" "
               "preserveAspectRatio=\"none\" "
               "style=\"overflow:visible;fill:none;stroke-width:1.8\">\n",
               s->x[0], 0 - s->y[1], s->x[1] - s->x[0], s->y[1] - s->y[0]);
    if (c->level != 0)
        html_print(html,
                   "<path vector-effect=\"non-scaling-stroke\" stroke=\"var(--quiet)\" "
                   "stroke-dasharray=\"2 4\" d=\"M%.10g %.6gH%.10g\"/>\n",
                   s->x[0], 0 - drawn(c, c->level), s->x[1]);
    for (int n = 0; n < c->curves; n++) {
        struct trace t;
        trace_of(&t, c, &c->curve[n]);
        if (t.count > 0)
            curve(html, &t, &c->curve[n], n);
    }
    html_add(html, "</svg>\n");
}

/* A name with its line, as a picture that is x from the left or, in a page, a word of a line; the x
   of the next. */
static int key(struct html *html, int x, const char *name, const char *colour, const char *dash)
{
    const int width = 42 + 7 * (int)strlen(name);
    html_print(html,
               "<svg class=\"key\" x=\"%d\" y=\"8\" width=\"%d\" height=\"20\"><path "
               "d=\"M0 10h24\" stroke=\"%s\" stroke-width=\"1.8\" stroke-dasharray=\"%s\"/>"
               "<text x=\"30\" y=\"14\">",
               x, width, colour, dash);
    html_text(html, name);
    html_add(html, "</text></svg>\n");
    return x + width;
}

static void keys(struct html *html, const struct chart *c)
{
    int x = LEFT;
    for (int n = 0; n < c->curves; n++)
        if (points_of(c, &c->curve[n]) > 0)
            x = key(html, x, c->curve[n].name, colours[n % COLOURS], dashes[n]);
    if (c->level != 0)
        key(html, x, c->level_name, "var(--quiet)", "2 4");
}

/* ---- the chart ---- */

/* The step of a curve's next point; infinity after the last one. */
static double next_step(const struct curve *curve, int64_t *i)
{
    while (*i < curve->log->count && !isfinite(point(curve, *i)))
        ++*i;
    return *i < curve->log->count ? curve->log->line[*i].of[RUN_STEP] : INFINITY;
}

/* A row for each step, or for some sixty and those of evaluations. */
static void numbers(struct html *html, const struct chart *c, double last)
{
    int64_t at[CHART_CURVES] = {0}, longest = 0, row = 0;
    html_add(html, "<details><summary>The numbers</summary>\n");
    html_table(html, "", "step");
    for (int n = 0; n < c->curves; n++) {
        html_head(html, "col", c->curve[n].name);
        longest = longest > c->curve[n].log->count ? longest : c->curve[n].log->count;
    }
    for (double step = 0; isfinite(step); row++) {
        double cell[CHART_CURVES];
        bool shown = row % (longest / 60 + 1) == 0;
        step = INFINITY;
        for (int n = 0; n < c->curves; n++)
            step = fmin(step, next_step(&c->curve[n], &at[n]));
        for (int n = 0; n < c->curves; n++) {
            const struct curve *curve = &c->curve[n];
            const bool has = isfinite(step) && next_step(curve, &at[n]) == step;
            cell[n] = has ? point(curve, at[n]) : (double)NAN;
            shown |= has && (curve->value >= RUN_HELD_OUT_LOSS || step == last);
            at[n] += has;
        }
        if (!shown || !isfinite(step))
            continue;
        html_row(html, NULL);
        for (int n = -1; n < c->curves; n++)
            html_cell_number(html, n < 0 ? step : cell[n]);
    }
    html_table_end(html);
    html_add(html, "</details>\n");
}

static void begin(struct html *html, const struct chart *c, const struct span *s)
{
    html_svg_begin(html, html->alone ? WIDTH : 0, HEIGHT, "%s over %.10g steps%s%s", c->title,
                   s->x[1], c->unit[0] ? ", in " : "", c->unit);
}

/* Axes and curves, over each other, in a frame of any width: x and y are per cents of it. tidy
   knows no picture in a picture, so in a page they are two. */
static void frame(struct html *html, const struct chart *c, const struct span *s)
{
    html_print(html,
               "<text y=\"-10\">%s%s%s</text>\n<text x=\"50%%\" y=\"100%%\" dy=\"38\" "
               "text-anchor=\"middle\">step</text>\n",
               c->unit, c->logarithmic && c->unit[0] ? ", " : "",
               c->logarithmic ? "log scale" : "");
    axes(html, c, s);
    html_add(html, html->alone ? "" : "</svg>\n");
    curves(html, c, s);
    html_add(html, html->alone ? "</svg>\n" : "</div>\n");
}

void chart_add(struct html *html, const struct chart *c)
{
    const struct span s = span_of(c);
    if (!(s.x[0] < s.x[1]))
        return;
    html_print(html, "<h2>%s</h2>\n<div class=\"chart\"%s>\n<p class=\"keys\">\n", c->title,
               c->logarithmic ? " data-logarithmic=\"\"" : "");
    keys(html, c);
    html_add(html, "</p>\n<div class=\"frame\">\n");
    begin(html, c, &s);
    frame(html, c, &s);
    html_add(html, "</div>\n");
    if (c->note)
        html_print(html, "<p>%s</p>\n", c->note);
    numbers(html, c, s.x[1]);
}

void chart_controls(struct html *html)
{
    html_print(
        html,
        "<p id=\"zoom\" hidden><label>Steps <input type=\"number\" id=\"from\"></label> <label>to "
        "<input type=\"number\" id=\"to\"></label> <button id=\"all\">all</button> <label>Mean "
        "over <input type=\"range\" id=\"smoothing\" min=\"0\" max=\"30\" value=\"%.0f\"></label> "
        "<output id=\"smoothed\" for=\"smoothing\"></output> <span class=\"mouse\">or drag over a "
        "chart</span></p>\n",
        100 * SMOOTHING);
}

void chart_note(struct html *html)
{
    html_print(
        html,
        "<p>Where a curve has %.0f points or more, the thick line is a moving mean over %.0f "
        "%% of the points; the thin line is the points.</p>\n",
        2 / SMOOTHING, 100 * SMOOTHING);
    html_script(html, script);
}

/* ---- the curves of a training log ---- */

static struct chart loss_of(const struct run_log *run, int64_t symbols, const char *note)
{
    const double guess = run_end(run).guess_loss;
    return (struct chart){
        .title = "Loss",
        .unit = "nats",
        .curves = 2,
        .curve = {{"training", run, RUN_LOSS}, {"held out", run, RUN_HELD_OUT_LOSS}},
        .logarithmic = true,
        .level = isnan(guess) ? log((double)symbols) : guess,
        .level_name = "guessing by frequency",
        .note = note};
}

void curves_add(struct html *html, const struct run_log *run, int64_t symbols,
                const char *loss_note)
{
    const struct chart charts[] = {
        loss_of(run, symbols, loss_note),
        {.title = "Held-out texts that are exactly right",
         .unit = "per cent",
         .curves = 1,
         .curve = {{"exact", run, RUN_EXACT}}},
        {.title = "Learning rate", .unit = "", .curves = 1, .curve = {{"rate", run, RUN_RATE}}},
        {.title = "Norm of the gradient",
         .unit = "",
         .curves = 1,
         .curve = {{"before clipping", run, RUN_NORM}},
         .logarithmic = true}};
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++)
        chart_add(html, &charts[i]);
}

bool curves_loss(struct html *html, const struct run_log *run, int64_t symbols)
{
    const struct chart chart = loss_of(run, symbols, NULL);
    const struct span s = span_of(&chart);
    if (!(s.x[0] < s.x[1]))
        return sb_fail("the log has no two steps to draw the loss between");
    begin(html, &chart, &s);
    keys(html, &chart);
    html_print(html,
               "<svg class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
               "overflow=\"visible\">\n",
               LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    frame(html, &chart, &s);
    return true;
}
