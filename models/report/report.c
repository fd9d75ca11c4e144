#include "models/report/report.h"
#include "models/explain/model.h"
#include "models/report/chart.h"
#include "models/report/maps.h"
#include "tensor/device.h"
#include "tensor/memory.h"
#include <math.h>

enum { STEP, LOSS, HELD_OUT_LOSS, RATE, NORM, EXACT, COLUMNS };

/* The columns of a log, one after the other; NULL without memory. */
static double *columns_of(const struct run_log *log)
{
    const int64_t n = log->count;
    double *column = memory_new((size_t)(n * COLUMNS + 1) * sizeof *column);
    for (int64_t i = 0; column && i < n; i++) {
        const struct run_line *line = &log->line[i];
        column[STEP * n + i] = line->step;
        column[LOSS * n + i] = line->loss;
        column[HELD_OUT_LOSS * n + i] = line->held_out_loss;
        column[RATE * n + i] = line->rate;
        column[NORM * n + i] = line->norm;
        column[EXACT * n + i] = 100 * (1 - line->held_out_error);
    }
    return column;
}

static void add_curves(struct html *html, const struct run_log *run, const double *column,
                       int64_t symbols)
{
    const int64_t n = run->count;
    const struct chart charts[] = {{.title = "Loss",
                                    .unit = "nats a symbol",
                                    .curves = 2,
                                    .curve = {{"training", column + LOSS * n, false},
                                              {"held out", column + HELD_OUT_LOSS * n, true}},
                                    .logarithmic = true,
                                    .level = log((double)symbols),
                                    .level_name = "guessing"},
                                   {.title = "Held-out texts that are exactly right",
                                    .unit = "per cent",
                                    .curves = 1,
                                    .curve = {{"exact", column + EXACT * n, true}},
                                    .level = NAN},
                                   {.title = "Learning rate",
                                    .unit = "",
                                    .curves = 1,
                                    .curve = {{"rate", column + RATE * n, false}},
                                    .level = NAN},
                                   {.title = "Length of the gradient",
                                    .unit = "",
                                    .curves = 1,
                                    .curve = {{"before clipping", column + NORM * n, false}},
                                    .logarithmic = true,
                                    .level = NAN}};
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
        struct chart chart = charts[i];
        chart.points = n;
        chart.x = column + STEP * n;
        chart_add(html, &chart);
    }
}

static bool add_tape(struct html *html, const struct subject *subject)
{
    char *svg = model_tape(subject, SB_DRAW_SVG);
    if (!svg)
        return false;
    html_add(html,
             "<h2>The tape</h2>\n<p>What backward walks through, for the loss of this text: "
             "each operation with the length of the gradient that arrived at its result. Wide "
             "lines carry long gradients; the pointer shows formulas.</p>\n"
             "<details><summary>The drawing</summary>\n<div class=\"wide\">\n");
    html_add(html, svg);
    html_add(html, "</div></details>\n");
    sb_free(svg);
    return true;
}

static void add_facts(struct html *html, const struct subject *s, const char *text)
{
    const sb_transformer_options *o = &sb_seq2seq_options_of(s->checkpoint->model)->transformer;
    html_print(
        html,
        "<p>%lld weights: width %lld, %lld heads, feed-forward %lld, %d encoder and %d decoder "
        "layers.</p>\n<p>The text: <code>",
        (long long)sb_parameters_size(s->checkpoint->weights), (long long)o->width,
        (long long)o->heads, (long long)o->feed_forward, o->encoder_layers, o->decoder_layers);
    html_text(html, text);
    html_add(html, "</code>. The model writes <code>");
    html_text(html, s->target);
    html_add(html, "</code>.</p>\n");
}

char *report_page(const struct subject *subject, const char *title, const char *text,
                  const struct run_log *log)
{
    struct html html = {0};
    double *column = columns_of(log);
    bool ok = column || sb_fail("out of memory for the log");
    if (ok) {
        html_begin(&html, title);
        add_facts(&html, subject, text);
        add_curves(&html, log, column,
                   sb_vocabulary_size(sb_seq2seq_target(subject->checkpoint->model)));
        ok = maps_add(&html, subject) && add_tape(&html, subject);
    }
    memory_free(column);
    char *page = html_end(&html);
    if (ok)
        return page;
    memory_free(page);
    return NULL;
}
