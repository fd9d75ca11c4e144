#include "teach/report/curves.h"
#include "teach/report/chart.h"
#include <math.h>

static struct chart loss_of(const struct run_log *run, int64_t symbols)
{
    return (struct chart){
        .title = "Loss",
        .unit = "nats a symbol",
        .curves = 2,
        .curve = {{"training", run, RUN_LOSS}, {"held out", run, RUN_HELD_OUT_LOSS}},
        .logarithmic = true,
        .level = log((double)symbols),
        .level_name = "guessing"};
}

void curves_add(struct html *html, const struct run_log *run, int64_t symbols)
{
    const struct chart charts[] = {
        loss_of(run, symbols),
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
    const struct chart chart = loss_of(run, symbols);
    return chart_picture(html, &chart) ||
           sb_fail("the log has no two steps to draw the loss between");
}
