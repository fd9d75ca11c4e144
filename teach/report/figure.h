/* Pictures alone: files of SVG, legible on light and dark pages. */
#ifndef SOFTBACK_TEACH_REPORT_FIGURE_H
#define SOFTBACK_TEACH_REPORT_FIGURE_H

#include "teach/explain/model.h"
#include "teach/explain/row.h"
#include "teach/report/run_log.h"

/* Pictures of a model's report. */
enum figure { NO_FIGURE, FIGURE_ATTENTION, FIGURE_ALIGNMENT, FIGURE_LOSS };

/* NO_FIGURE, with a message, when there is none of that name. */
enum figure figure_named(const char *name);

/* Texts for memory_free; NULL, with a message, when one cannot be made. */
char *figure_svg(enum figure figure, const struct subject *subject, const struct run_log *log);
/* The Jacobian of a row of softmax. */
char *jacobian_svg(const struct row *row);

#endif
