/*
 * The report on a model that reads one text, a language model or a classifier, as report.h: curves
 * of its training, perplexity or a confusion table, and its attention on the text.
 */
#ifndef SOFTBACK_TEACH_REPORT_TEXT_REPORT_H
#define SOFTBACK_TEACH_REPORT_TEXT_REPORT_H

#include "models/confusion.h"
#include "teach/explain/text_subject.h"
#include "teach/report/run_log.h"

/* The page as a text for memory_free; NULL, with a message, when it cannot be made. `confusion` is
   a classifier's on some data, or NULL; `data_hash` 0 if it is unknown. */
char *text_report_page(const struct text_subject *subject, const char *title, const char *text,
                       const struct confusion *confusion, const struct run_log *log,
                       uint64_t data_hash);

#endif
