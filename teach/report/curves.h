/* What a log of training says over its steps, as curves. */
#ifndef SOFTBACK_TEACH_REPORT_CURVES_H
#define SOFTBACK_TEACH_REPORT_CURVES_H

#include "teach/report/html.h"
#include "teach/report/run_log.h"

/* All of them; `symbols` of the target tell how high the loss of guessing is. */
bool curves_add(struct html *html, const struct run_log *log, int64_t symbols);
/* The picture of the loss, up to its end; fails where the log has no two points. */
bool curves_loss(struct html *html, const struct run_log *log, int64_t symbols);

#endif
