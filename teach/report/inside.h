/* What is inside a model over time: the gradients of its parameters, and its attention heads. */
#ifndef SOFTBACK_TEACH_REPORT_INSIDE_H
#define SOFTBACK_TEACH_REPORT_INSIDE_H

#include "models/example.h"
#include "nn/parameters.h"
#include "teach/report/html.h"
#include "teach/report/run_log.h"

/* ---- values in rows and columns: a shaded table ---- */

struct strip {
    const char *title, *text; /* text: what the shades mean */
    double (*value)(const struct run_log *run, int64_t row, int64_t column);
    enum run_numbers of; /* without a function: these of the run's diagnoses */
    const struct run_log *run;
    int64_t columns;
    const char *const *column_names; /* NULL: the columns are the run's diagnoses */
    int64_t rows;
    const char *(*name)(const void *names, int64_t row); /* lives until the next call */
    const void *names;
    const sb_parameters *weights; /* or, if given, the rows are parameters */
    bool logarithmic; /* shades are of the logarithm, over four powers of ten below the largest */
};

/* Parameters have a row for each part of a model, and, folded, one for each of them; logarithmic
   values are norms, others are shares of a parameter's elements. */
void strip_add(struct html *html, const struct strip *strip);

/* ---- the strips of a run ---- */

/* Strips of the diagnoses in a log; nothing where there are none. Fails where they are those of
   another model than the weights and the example are of. In a run that failed, saturated rows are
   called a fault. */
bool inside_add(struct html *html, const struct run_log *run, const sb_parameters *weights,
                const sb_example *example, bool failed);

#endif
