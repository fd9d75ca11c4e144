/* The curves of a training log over its steps. */
#ifndef SOFTBACK_TEACH_REPORT_CURVES_H
#define SOFTBACK_TEACH_REPORT_CURVES_H

#include "teach/report/html.h"
#include "teach/report/run_log.h"

/* All of them; `symbols`, the size of the target vocabulary, gives the loss of guessing. */
void curves_add(struct html *html, const struct run_log *log, int64_t symbols);
/* The picture of the loss, without its end tag; fails where the log has fewer than two points. */
bool curves_loss(struct html *html, const struct run_log *log, int64_t symbols);

#endif
