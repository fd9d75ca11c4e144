/* How large the elements of gradients are: over the steps of a run, and in each parameter. */
#ifndef SOFTBACK_TEACH_REPORT_HISTOGRAMS_H
#define SOFTBACK_TEACH_REPORT_HISTOGRAMS_H

#include "nn/parameters.h"
#include "teach/report/html.h"
#include "teach/report/run_log.h"

/* Strips of the histograms in a log, whose parameters are those of `weights`; nothing where there
   are none. */
bool histograms_add(struct html *html, const struct run_log *run, const sb_parameters *weights);

#endif
