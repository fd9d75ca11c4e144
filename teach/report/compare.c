#include "teach/report/compare.h"
#include "teach/report/chart.h"
#include "teach/report/details.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a run ---- */

static bool take_settings(struct compared *run, const struct checkpoint *c)
{
    sb_description *d = sb_model_describe(&c->subject);
    bool ok = d != NULL;
    for (int i = 0; ok && setting_name(i); i++) {
        struct setting_text room;
        run->setting[i] = memory_text(details_setting(c, d, i, &room));
        ok = run->setting[i] || sb_fail("report: out of memory");
    }
    sb_description_free(d);
    return ok;
}

bool compared_open(struct compared *run, const char *name, const char *model, const char *log)
{
    *run = (struct compared){.name = memory_text(name)};
    if (!run->name)
        return sb_fail("report: out of memory");
    struct checkpoint *c = run_log_read(&run->log, log) ? checkpoint_open(model, NULL) : NULL;
    const bool ok = c && take_settings(run, c);
    if (ok) {
        run->end = run_end(&run->log, 1);
        run->weights = sb_parameters_size(c->weights);
    }
    checkpoint_free(c);
    return ok;
}

void compared_close(struct compared *run)
{
    run_log_free(&run->log);
    memory_free(run->name);
    for (int i = 0; i < MOST_SETTINGS; i++)
        memory_free(run->setting[i]);
    *run = (struct compared){0};
}

/* Numbers before NaN. */
static int ascending(double a, double b)
{
    return isnan(a) || isnan(b) ? !!isnan(a) - !!isnan(b) : (a > b) - (a < b);
}

static int better(const void *a_, const void *b_)
{
    const struct run_end *a = &((const struct compared *)a_)->end;
    const struct run_end *b = &((const struct compared *)b_)->end;
    int order = ascending(-a->exact, -b->exact);
    order = order ? order : ascending(a->held_out_loss, b->held_out_loss);
    return order ? order : ascending(a->last_loss, b->last_loss);
}

void compare_sort(int64_t n, struct compared runs[])
{
    qsort(runs, (size_t)n, sizeof *runs, better);
}

/* ---- curves ---- */

enum joined_value { TRAINING_LOSS, HELD_OUT_LOSS, EXACT, JOINED_VALUES };

/* The steps of all logs in order, and of each run what it has there; NaN where it has nothing. */
struct joined {
    int64_t points;
    int runs;
    double *step, *value[JOINED_VALUES][CHART_CURVES];
};

static void joined_take(struct joined *j, int run, const struct run_line *line)
{
    const double values[JOINED_VALUES] = {line ? line->loss : (double)NAN,
                                          line ? line->held_out_loss : (double)NAN,
                                          line ? 100 * (1 - line->held_out_error) : (double)NAN};
    for (int v = 0; v < JOINED_VALUES; v++)
        j->value[v][run][j->points] = values[v];
}

/* The least step of the next lines; infinity after the last ones. */
static double joined_next(const struct joined *j, const struct compared runs[], const int64_t at[])
{
    double step = INFINITY;
    for (int r = 0; r < j->runs; r++)
        if (at[r] < runs[r].log.count)
            step = fmin(step, runs[r].log.line[at[r]].step);
    return step;
}

static void joined_merge(struct joined *j, const struct compared runs[])
{
    int64_t at[CHART_CURVES] = {0};
    for (double step; isfinite(step = joined_next(j, runs, at)); j->points++) {
        j->step[j->points] = step;
        for (int r = 0; r < j->runs; r++) {
            const struct run_line *line = runs[r].log.line + at[r];
            const bool has = at[r] < runs[r].log.count && line->step == step;
            joined_take(j, r, has ? line : NULL);
            at[r] += has;
        }
    }
}

static bool joined_make(struct joined *j, int runs, const struct compared run[])
{
    int64_t room = 1;
    for (int r = 0; r < runs; r++)
        room += run[r].log.count;
    double *all = memory_new((size_t)((1 + JOINED_VALUES * runs) * room) * sizeof *all);
    *j = (struct joined){.step = all, .runs = runs};
    if (!all)
        return sb_fail("out of memory for the logs");
    for (int v = 0; v < JOINED_VALUES; v++)
        for (int r = 0; r < runs; r++)
            j->value[v][r] = all + (1 + v * runs + r) * room;
    joined_merge(j, run);
    return true;
}

static void add_charts(struct html *html, const struct compared runs[], const struct joined *j)
{
    static const struct chart charts[JOINED_VALUES] = {
        {.title = "Training loss", .unit = "nats a symbol", .logarithmic = true},
        {.title = "Held-out loss", .unit = "nats a symbol", .logarithmic = true},
        {.title = "Held-out texts that are exactly right", .unit = "per cent"}};
    for (int v = 0; v < JOINED_VALUES; v++) {
        struct chart chart = charts[v];
        chart.points = j->points;
        chart.x = j->step;
        chart.curves = j->runs;
        chart.level = NAN;
        for (int r = 0; r < j->runs; r++)
            chart.curve[r] = (struct curve){
                .name = runs[r].name, .y = j->value[v][r], .dots = v != TRAINING_LOSS};
        chart_add(html, &chart);
    }
}

/* ---- tables ---- */

enum result {
    RESULT_EXACT,
    RESULT_HELD_OUT,
    RESULT_LOSS,
    RESULT_STEPS,
    RESULT_TIME,
    RESULT_WEIGHTS,
    RESULTS
};

static double result_of(const struct compared *run, int result)
{
    const double values[RESULTS] = {100 * run->end.exact, run->end.held_out_loss,
                                    run->end.last_loss,   run->end.steps,
                                    run->log.seconds,     (double)run->weights};
    return values[result];
}

static void result_cell(struct html *html, const struct compared *run, int result)
{
    const double x = result_of(run, result);
    if (isnan(x))
        html_add(html, "<td></td>");
    else if (result == RESULT_TIME)
        html_print(html, "<td>%s</td>", details_time(x).text);
    else
        html_say(html, "<td>%.*g</td>", result < RESULT_STEPS ? 4 : 12, x);
}

/* A row for each run; a column that no run has is left out. */
static void add_results(struct html *html, int64_t n, const struct compared runs[])
{
    static const char *const names[RESULTS] = {"held-out texts exactly right, per cent",
                                               "best held-out loss",
                                               "training loss at the end",
                                               "steps",
                                               "training took",
                                               "weights"};
    bool any[RESULTS] = {false};
    html_add(html, "<div class=\"wide\"><table>\n<tr><td></td>");
    for (int result = 0; result < RESULTS; result++) {
        for (int64_t r = 0; r < n; r++)
            any[result] |= !isnan(result_of(&runs[r], result));
        if (any[result])
            html_head(html, "col", names[result]);
    }
    html_add(html, "</tr>\n");
    for (int64_t r = 0; r < n; r++) {
        html_add(html, "<tr>");
        html_head(html, "row", runs[r].name);
        for (int result = 0; result < RESULTS; result++)
            if (any[result])
                result_cell(html, &runs[r], result);
        html_add(html, "</tr>\n");
    }
    html_add(html, "</table></div>\n");
}

static bool differs(int setting, int64_t n, const struct compared runs[])
{
    for (int64_t r = 1; r < n; r++)
        if (strcmp(runs[0].setting[setting], runs[r].setting[setting]) != 0)
            return true;
    return false;
}

static void add_differences(struct html *html, int64_t n, const struct compared runs[])
{
    html_add(html,
             "<h2>Settings that differ</h2>\n<div class=\"wide\"><table>\n<tr><td>setting</td>");
    for (int64_t r = 0; r < n; r++)
        html_head(html, "col", runs[r].name);
    html_add(html, "</tr>\n");
    for (int i = 0; setting_name(i); i++) {
        if (!differs(i, n, runs))
            continue;
        html_print(html, "<tr><th scope=\"row\">%s</th>", setting_name(i));
        for (int64_t r = 0; r < n; r++) {
            html_add(html, "<td>");
            html_text(html, runs[r].setting[i]);
            html_add(html, "</td>");
        }
        html_add(html, "</tr>\n");
    }
    html_add(html, "</table></div>\n");
}

char *compare_page(const char *title, int64_t n, const struct compared runs[])
{
    struct html html = {0};
    struct joined joined;
    const int drawn = n < CHART_CURVES ? (int)n : CHART_CURVES;
    if (!joined_make(&joined, drawn, runs))
        return NULL;
    html_begin(&html, title, "");
    add_results(&html, n, runs);
    add_differences(&html, n, runs);
    html_add(&html, "<h2>Curves</h2>\n");
    if (drawn < n)
        html_print(&html, "<p>They are those of the first %d runs.</p>\n", drawn);
    chart_controls(&html);
    add_charts(&html, runs, &joined);
    chart_script(&html);
    memory_free(joined.step);
    return html_end(&html);
}
