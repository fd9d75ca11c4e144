/*
 * The report on a model: one file of HTML, which a browser shows without scripts and without any
 * other file. Curves of its training, if there is a log; its attention on one text; the tape of
 * that text's loss.
 */
#ifndef SOFTBACK_TEACH_REPORT_REPORT_H
#define SOFTBACK_TEACH_REPORT_REPORT_H

#include "teach/explain/subject.h"
#include "teach/report/run_log.h"

/* The page as a text for memory_free; NULL, with a message, when it cannot be made. `data_hash` is
   that of the training data, 0 if it is unknown. */
char *report_page(const struct subject *subject, const char *title, const char *text,
                  const struct run_log *log, uint64_t data_hash);

#endif
