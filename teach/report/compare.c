#include "teach/report/compare.h"
#include "teach/report/chart.h"
#include "teach/report/details.h"
#include "teach/report/overview.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/* The steps of both logs in order, and of each run what it has there; NaN where it has nothing. */
struct joined {
    int64_t points;
    double *step, *loss[2], *held_out[2];
};

static bool joined_make(struct joined *j, const struct compared runs[2])
{
    const int64_t room = runs[0].log->count + runs[1].log->count;
    double *all = memory_new((size_t)(5 * room + 1) * sizeof *all);
    *j = (struct joined){.step = all};
    if (!all)
        return sb_fail("out of memory for the logs");
    int64_t at[2] = {0, 0};
    for (int r = 0; r < 2; r++) {
        j->loss[r] = all + (1 + r) * room;
        j->held_out[r] = all + (3 + r) * room;
    }
    while (at[0] < runs[0].log->count || at[1] < runs[1].log->count) {
        double step = INFINITY;
        for (int r = 0; r < 2; r++)
            if (at[r] < runs[r].log->count)
                step = fmin(step, runs[r].log->line[at[r]].step);
        j->step[j->points] = step;
        for (int r = 0; r < 2; r++) {
            const bool has = at[r] < runs[r].log->count && runs[r].log->line[at[r]].step == step;
            const struct run_line *line = has ? &runs[r].log->line[at[r]++] : NULL;
            j->loss[r][j->points] = line ? line->loss : (double)NAN;
            j->held_out[r][j->points] = line ? line->held_out_loss : (double)NAN;
        }
        j->points++;
    }
    return true;
}

static void add_charts(struct html *html, const struct compared runs[2], const struct joined *j)
{
    struct chart chart = {
        .title = "Training loss",
        .unit = "nats a symbol",
        .points = j->points,
        .x = j->step,
        .curves = 2,
        .curve = {{runs[0].name, j->loss[0], false}, {runs[1].name, j->loss[1], true}},
        .logarithmic = true,
        .level = NAN};
    chart_add(html, &chart);
    chart.title = "Held-out loss";
    chart.curve[0].y = j->held_out[0];
    chart.curve[1].y = j->held_out[1];
    chart_add(html, &chart);
}

static void head(struct html *html, const struct compared runs[2])
{
    html_add(html, "<div class=\"wide\"><table>\n<tr><td></td>");
    for (int r = 0; r < 2; r++) {
        html_add(html, "<th scope=\"col\">");
        html_text(html, runs[r].name);
        html_add(html, "</th>");
    }
    html_add(html, "</tr>\n");
}

static void row(struct html *html, const char *name, int digits, double a, double b)
{
    html_print(html, "<tr><th scope=\"row\">%s</th>", name);
    html_print(html, isnan(a) ? "<td></td>" : "<td>%.*g</td>", digits, a);
    html_print(html, isnan(b) ? "<td></td>" : "<td>%.*g</td>", digits, b);
    html_add(html, "</tr>\n");
}

static void add_results(struct html *html, const struct compared runs[2])
{
    const struct run_end a = run_end(runs[0].log, 1), b = run_end(runs[1].log, 1);
    head(html, runs);
    row(html, "held-out texts exactly right, per cent", 4, 100 * a.exact, 100 * b.exact);
    row(html, "best held-out loss", 4, a.held_out_loss, b.held_out_loss);
    row(html, "training loss at the end", 4, a.last_loss, b.last_loss);
    row(html, "steps", 12, a.steps, b.steps);
    row(html, "weights", 12, (double)sb_parameters_size(runs[0].checkpoint->weights),
        (double)sb_parameters_size(runs[1].checkpoint->weights));
    html_add(html, "</table></div>\n");
}

static bool add_differences(struct html *html, const struct compared runs[2])
{
    sb_description *a = sb_model_describe(&runs[0].checkpoint->subject);
    sb_description *b = a ? sb_model_describe(&runs[1].checkpoint->subject) : NULL;
    html_add(html, "<h2>Settings that differ</h2>\n");
    head(html, runs);
    for (int i = 0; b && setting_name(i); i++) {
        struct setting_text room[2];
        const char *first = details_setting(runs[0].checkpoint, a, i, &room[0]);
        const char *second = details_setting(runs[1].checkpoint, b, i, &room[1]);
        if (strcmp(first, second) == 0)
            continue;
        html_print(html, "<tr><th scope=\"row\">%s</th><td>", setting_name(i));
        html_text(html, first);
        html_add(html, "</td><td>");
        html_text(html, second);
        html_add(html, "</td></tr>\n");
    }
    html_add(html, "</table></div>\n");
    sb_description_free(a);
    sb_description_free(b);
    return b != NULL;
}

char *compare_page(const struct compared runs[2])
{
    struct html html = {0};
    struct joined joined;
    if (!joined_make(&joined, runs))
        return NULL;
    html_begin(&html, "Two runs", "");
    add_results(&html, runs);
    add_charts(&html, runs, &joined);
    const bool ok = add_differences(&html, runs);
    memory_free(joined.step);
    char *page = html_end(&html);
    if (ok)
        return page;
    memory_free(page);
    return NULL;
}
