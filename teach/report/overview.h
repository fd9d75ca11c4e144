/* The first screen of a report: whether the run is good, at a glance. */
#ifndef SOFTBACK_TEACH_REPORT_OVERVIEW_H
#define SOFTBACK_TEACH_REPORT_OVERVIEW_H

#include "models/training/checkpoint.h"
#include "teach/explain/model.h"
#include "teach/report/html.h"
#include "teach/report/run_log.h"

/* A verdict with its numbers, the model's task, if it has one, and the text with what the model
   writes for it. */
void overview_add(struct html *html, const struct subject *subject, const char *text,
                  const struct checkpoint *checkpoint, const struct run_log *run);

/* What of a run counts in the end; NaN where the log does not have it. */
struct run_end {
    double steps, first_loss,
        last_loss; /* of training; the last is a mean of a tenth of the lines */
    double best_step, held_out_loss, exact; /* of the evaluation whose model was saved; per cent */
};
struct run_end run_end(const struct run_log *run);

#endif
