/* What is inside a model over time: the gradients of its parameters, and its attention heads. */
#ifndef SOFTBACK_TEACH_REPORT_INSIDE_H
#define SOFTBACK_TEACH_REPORT_INSIDE_H

#include "nn/parameters.h"
#include "teach/report/html.h"
#include "teach/report/run_log.h"

/* Strips of the diagnoses in a log; nothing where there are none. Fails where they are those of
   another model. `head_name` names a head in a text that lives until the next call. */
bool inside_add(struct html *html, const struct run_log *run, const sb_parameters *weights,
                int64_t heads, const char *(*head_name)(const void *context, int64_t row),
                const void *context);

#endif
