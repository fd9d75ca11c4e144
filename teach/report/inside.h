/* What is inside a model over time: the gradients of its parameters, and its attention heads. */
#ifndef SOFTBACK_TEACH_REPORT_INSIDE_H
#define SOFTBACK_TEACH_REPORT_INSIDE_H

#include "models/example.h"
#include "nn/parameters.h"
#include "teach/report/html.h"
#include "teach/report/run_log.h"

/* Strips of the diagnoses in a log; nothing where there are none. Fails where they are those of
   another model than the weights and the example are of. */
bool inside_add(struct html *html, const struct run_log *run, const sb_parameters *weights,
                const sb_example *example);

#endif
