#include "teach/report/curves.h"
#include "teach/report/chart.h"
#include "tensor/memory.h"
#include <math.h>

enum { STEP, LOSS, HELD_OUT_LOSS, RATE, NORM, EXACT, COLUMNS };

/* The columns of a log, one after the other; NULL without memory. */
static double *columns_of(const struct run_log *log)
{
    const int64_t n = log->count;
    double *column = memory_new((size_t)(n * COLUMNS + 1) * sizeof *column);
    if (!column)
        return sb_fail("out of memory for the log");
    for (int64_t i = 0; i < n; i++) {
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

static struct chart loss_of(const struct run_log *run, const double *column, int64_t symbols)
{
    const int64_t n = run->count;
    return (struct chart){.title = "Loss",
                          .unit = "nats a symbol",
                          .points = n,
                          .x = column + STEP * n,
                          .curves = 2,
                          .curve = {{"training", column + LOSS * n, .dots = false},
                                    {"held out", column + HELD_OUT_LOSS * n, .dots = true}},
                          .logarithmic = true,
                          .level = log((double)symbols),
                          .level_name = "guessing"};
}

bool curves_add(struct html *html, const struct run_log *log, int64_t symbols)
{
    const int64_t n = log->count;
    double *column = columns_of(log);
    if (!column)
        return false;
    const struct chart charts[] = {
        loss_of(log, column, symbols),
        {.title = "Held-out texts that are exactly right",
         .unit = "per cent",
         .curves = 1,
         .curve = {{"exact", column + EXACT * n, .dots = true}},
         .level = NAN},
        {.title = "Learning rate",
         .unit = "",
         .curves = 1,
         .curve = {{"rate", column + RATE * n, .exact = true}},
         .level = NAN},
        {.title = "Norm of the gradient",
         .unit = "",
         .curves = 1,
         .curve = {{"before clipping", column + NORM * n, .dots = false}},
         .logarithmic = true,
         .level = NAN}};
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
        struct chart chart = charts[i];
        chart.points = n;
        chart.x = column + STEP * n;
        chart_add(html, &chart);
    }
    memory_free(column);
    return true;
}

bool curves_loss(struct html *html, const struct run_log *log, int64_t symbols)
{
    double *column = columns_of(log);
    if (!column)
        return false;
    const struct chart chart = loss_of(log, column, symbols);
    const bool drawn = chart_picture(html, &chart);
    memory_free(column);
    return drawn || sb_fail("the log has no two steps to draw the loss between");
}
