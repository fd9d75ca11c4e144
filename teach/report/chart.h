/* Curves over the steps of a run, as SVG. */
#ifndef SOFTBACK_TEACH_REPORT_CHART_H
#define SOFTBACK_TEACH_REPORT_CHART_H

#include "teach/report/html.h"

enum { CHART_CURVES = 8 };

/* Points whose y is NaN are left out. */
struct curve {
    const char *name;
    const double *y;
    bool dots;  /* a few points, each of them marked; otherwise many, with a mean over those near */
    bool exact; /* without that mean: there is no noise */
};

struct chart {
    const char *title, *unit;
    int64_t points;
    const double *x; /* steps, ascending */
    int curves;
    struct curve curve[CHART_CURVES];
    bool logarithmic; /* y, which must be positive there */
    double level;     /* a line across, with a name; NaN: none */
    const char *level_name;
};

/* Adds a heading, the chart and a table of its values; nothing for fewer than two points. zoom.js
   reads what it draws, and draws parts of it. */
void chart_add(struct html *html, const struct chart *chart);
/* Adds the chart without its end tag; false, and adds nothing, for fewer than two points. */
bool chart_picture(struct html *html, const struct chart *chart);

/* What curves mean, and the controls: above the charts of a page; and their script, below. */
void chart_controls(struct html *html);
void chart_script(struct html *html);

#endif
