/* Curves over the steps of runs, as SVG. */
#ifndef SOFTBACK_TEACH_REPORT_CHART_H
#define SOFTBACK_TEACH_REPORT_CHART_H

#include "teach/report/html.h"
#include "teach/report/run_log.h"

enum { CHART_CURVES = 8 };

/* A value of each line of a log; lines without it are left out. */
struct curve {
    const char *name;
    const struct run_log *log;
    enum run_value value;
};

struct chart {
    const char *title, *unit;
    int curves;
    struct curve curve[CHART_CURVES];
    bool logarithmic; /* y, which must be positive there */
    double level;     /* a line across, with a name; 0: none */
    const char *level_name;
    const char *note; /* a line below, as HTML; NULL: none */
};

/* Adds a heading, the chart and a table of its values; nothing for fewer than two points. zoom.js
   reads what it draws, and shows parts of it. */
void chart_add(struct html *html, const struct chart *chart);

/* The controls, above the charts of a page; and, below them, what curves mean, and the script. */
void chart_controls(struct html *html);
void chart_note(struct html *html);

/* All curves of a training log; guessing one of `symbols`, the target vocabulary, is one more.
   `loss_note`, or NULL, is below the loss. */
void curves_add(struct html *html, const struct run_log *log, int64_t symbols,
                const char *loss_note);
/* The picture of the loss, without its end tag; fails where the log has fewer than two points. */
bool curves_loss(struct html *html, const struct run_log *log, int64_t symbols);

#endif
