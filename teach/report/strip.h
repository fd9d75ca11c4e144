/* Values over the steps of a run, a row for each of many things: a shaded table. */
#ifndef SOFTBACK_TEACH_REPORT_STRIP_H
#define SOFTBACK_TEACH_REPORT_STRIP_H

#include "nn/parameters.h"
#include "teach/report/html.h"

struct strip {
    const char *title, *text; /* text: what the shades mean */
    int64_t rows, columns;
    const double *steps; /* of each column; NULL where columns have names */
    const char *const *columns_named;
    const double *const *values; /* of each column, those of its rows */
    /* Names a row, in a text that lives until the next call. */
    const char *(*name)(const void *context, int64_t row);
    const void *context;
    bool logarithmic; /* shades are of the logarithm, over four powers of ten below the largest */
};

/* Nothing where there are no columns. */
void strip_add(struct html *html, const struct strip *strip);
/* A row for each part of a model, and, folded, one for each parameter, which are the strip's rows.
   Logarithmic values are norms, others are shares of a parameter's elements. False, with a message,
   without memory. */
bool strip_add_parts(struct html *html, const struct strip *strip, const sb_parameters *weights);

#endif
