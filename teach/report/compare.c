#include "teach/report/chart.h"
#include "teach/report/report.h"
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
        struct field_text room;
        run->setting[i] = memory_text(report_setting(c, d, i, &room));
        ok = run->setting[i] || sb_fail("report: out of memory");
    }
    sb_description_free(d);
    return ok;
}

/* "task copy", or the hash of data from files. */
static bool take_data(struct compared *run, int what, const struct checkpoint *c, uint64_t hash)
{
    run->trained_on[what] = c->task[0] ? memory_format("task %s", c->task)
                            : hash     ? memory_format("%016llx", (unsigned long long)hash)
                                       : memory_text("");
    return run->trained_on[what] || sb_fail("report: out of memory");
}

bool compared_open(struct compared *run, const char *name, const char *model, const char *log,
                   uint64_t data_hash, uint64_t held_hash)
{
    *run = (struct compared){.name = memory_text(name)};
    if (!run->name)
        return sb_fail("report: out of memory");
    struct checkpoint *c = run_log_read(&run->log, log) ? checkpoint_open(model, NULL) : NULL;
    bool ok = c && take_settings(run, c);
    if (ok) {
        run->trained_on[TRAINED_KIND] = memory_text(c->subject.kind->name);
        ok = (run->trained_on[TRAINED_KIND] || sb_fail("report: out of memory")) &&
             take_data(run, TRAINED_DATA, c, data_hash) &&
             take_data(run, TRAINED_HELD, c, held_hash);
        run->end = run_end(&run->log);
        run->weights = sb_parameters_size(c->weights);
    }
    checkpoint_free(c);
    return ok;
}

void compared_close(struct compared *run)
{
    run_log_free(&run->log);
    memory_free(run->name);
    for (int what = 0; what < TRAINED_ON; what++)
        memory_free(run->trained_on[what]);
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

static void add_charts(struct html *html, int drawn, const struct compared runs[])
{
    static const struct chart charts[] = {
        {.title = "Training loss", .unit = "nats", .logarithmic = true},
        {.title = "Held-out loss", .unit = "nats", .logarithmic = true},
        {.title = "Held-out texts that are exactly right", .unit = "per cent"}};
    static const enum run_value values[] = {RUN_LOSS, RUN_HELD_OUT_LOSS, RUN_EXACT};
    for (int v = 0; v < 3; v++) {
        struct chart chart = charts[v];
        chart.curves = drawn;
        for (int r = 0; r < drawn; r++)
            chart.curve[r] = (struct curve){runs[r].name, &runs[r].log, values[v]};
        chart_add(html, &chart);
    }
}

/* ---- tables ---- */

enum { RESULTS = 6, TIME = 4 };
static const char *const result_names[RESULTS] = {"held-out texts exactly right, per cent",
                                                  "best held-out loss",
                                                  "training loss at the end",
                                                  "steps",
                                                  "training took",
                                                  "parameters"};

static double result_of(const struct compared *run, int result)
{
    const double values[RESULTS] = {run->end.exact, run->end.held_out_loss, run->end.last_loss,
                                    run->end.steps, run->log.seconds,       (double)run->weights};
    return values[result];
}

static bool is_reached(int result, int64_t n, const struct compared runs[])
{
    int64_t r = 0;
    while (r < n && isnan(result_of(&runs[r], result)))
        r++;
    return r < n;
}

/* A row for each run; a column that no run has is left out. */
static void add_results(struct html *html, int64_t n, const struct compared runs[])
{
    html_table(html, "", "run");
    for (int result = 0; result < RESULTS; result++)
        if (is_reached(result, n, runs))
            html_head(html, "col", result_names[result]);
    for (int64_t r = 0; r < n; r++) {
        html_row(html, runs[r].name);
        for (int result = 0; result < RESULTS; result++)
            if (result == TIME && !isnan(runs[r].log.seconds))
                html_cell_text(html, report_time(runs[r].log.seconds).text);
            else if (is_reached(result, n, runs))
                html_cell_number(html, result_of(&runs[r], result));
    }
    html_table_end(html);
}

static bool differs(int setting, int64_t n, const struct compared runs[])
{
    for (int64_t r = 1; r < n; r++)
        if (strcmp(runs[0].setting[setting], runs[r].setting[setting]) != 0)
            return true;
    return false;
}

/* Unknown data may be those of the other runs. */
static bool other_data(int what, int64_t n, const struct compared runs[])
{
    const char *first = "";
    bool other = false;
    for (int64_t r = 0; r < n; r++) {
        const char *data = runs[r].trained_on[what];
        other |= first[0] && data[0] && strcmp(first, data) != 0;
        first = first[0] ? first : data;
    }
    return other;
}

static void add_data(struct html *html, int what, int64_t n, const struct compared runs[])
{
    static const char *const names[TRAINED_ON] = {"kind of model", "data", "held-out data"};
    if (!other_data(what, n, runs))
        return;
    html_row(html, names[what]);
    for (int64_t r = 0; r < n; r++)
        html_cell_text(html, runs[r].trained_on[what][0] ? runs[r].trained_on[what] : "unknown");
}

static void add_differences(struct html *html, int64_t n, const struct compared runs[])
{
    html_add(html, "<h2>Settings that differ</h2>\n");
    html_table(html, "", "setting");
    for (int64_t r = 0; r < n; r++)
        html_head(html, "col", runs[r].name);
    for (int what = 0; what < TRAINED_ON; what++)
        add_data(html, what, n, runs);
    for (int i = 0; setting_name(i); i++) {
        if (!differs(i, n, runs))
            continue;
        html_row(html, setting_name(i));
        for (int64_t r = 0; r < n; r++)
            html_cell_text(html, runs[r].setting[i]);
    }
    html_table_end(html);
}

/* Whether the symbols differ of which losses are means. */
static bool other_symbols(int64_t n, const struct compared runs[])
{
    static const char *const of[] = {"units", "target-units", "vocabulary", "joint-vocabulary"};
    bool other = false;
    for (int i = 0; i < 4; i++)
        other |= differs(setting_find(of[i]), n, runs);
    return other;
}

/* Whether chance alone may give the difference of the shares: up to two standard errors and a text.
 */
static bool too_close(const struct run_end *a, const struct run_end *b)
{
    const double n = fmin(a->texts, b->texts), p = (a->exact + b->exact) / 200;
    return fabs(a->exact - b->exact) <= 200 * sqrt(2 * p * (1 - p) / n) + 100 / n;
}

/* The runs of a folder are sorted, two that were named are not. Shares that are close count for
   nothing beside the losses. */
static void add_best(struct html *html, int64_t n, const struct compared runs[])
{
    const bool close = too_close(&runs[0].end, &runs[1].end) && !other_symbols(n, runs),
               turned = close ? runs[0].end.held_out_loss > runs[1].end.held_out_loss
                              : better(&runs[0], &runs[1]) > 0;
    const struct compared *best = &runs[turned], *next = &runs[!turned];
    const struct run_end *a = &best->end, *b = &next->end;
    const bool exact = !close && a->exact != b->exact && !isnan(a->exact);
    html_add(html, "<p class=\"verdict\">");
    if (!exact && other_symbols(n, runs)) {
        html_add(html, "These runs have different symbols: means of losses over symbols cannot be "
                       "compared.");
        html_add(html, strcmp(runs[0].trained_on[TRAINED_KIND], "language_model") == 0
                           ? " <code>softback evaluate</code> prints bits a byte, which can.</p>\n"
                           : "</p>\n");
        return;
    }
    if (close && a->exact != b->exact)
        html_say(
            html,
            "%.3g&#160;%% and %.3g&#160;%% of %.10g held-out texts are too close to tell apart. "
            "By its loss ",
            a->exact, b->exact, a->texts);
    html_code(html, best->name);
    html_add(html, n > 2 ? " is the best; the next is " : " is better than ");
    html_code(html, next->name);
    if (exact && !isnan(b->exact)) {
        html_say(html, ": %.3g&#160;%% against %.3g&#160;%% of ", a->exact, b->exact);
        if (!isnan(a->texts))
            html_say(html, "%.10g ", a->texts);
        html_add(html, "held-out texts are exactly right");
    } else if (!isnan(a->held_out_loss) && !isnan(b->held_out_loss)) {
        html_say(html, ": a held-out loss of %.3g against %.3g", a->held_out_loss,
                 b->held_out_loss);
    }
    html_add(html, ".</p>\n");
}

char *compare_page(const char *title, int64_t n, const struct compared runs[])
{
    struct html html = {0};
    const int drawn = n < CHART_CURVES ? (int)n : CHART_CURVES;
    html_begin(&html, title, "");
    if (other_data(TRAINED_KIND, n, runs) || other_data(TRAINED_HELD, n, runs))
        html_add(&html,
                 "<p class=\"verdict\">These runs have different held-out data: their losses "
                 "and shares cannot be compared.</p>\n");
    else if (n > 1 && better(&runs[0], &runs[1]) != 0)
        add_best(&html, n, runs);
    add_results(&html, n, runs);
    add_differences(&html, n, runs);
    html_add(&html, "<h2>Curves</h2>\n");
    if (drawn < n)
        html_print(&html, "<p>They are those of the first %d runs.</p>\n", drawn);
    chart_controls(&html);
    add_charts(&html, drawn, runs);
    chart_note(&html);
    return html_end(&html);
}
