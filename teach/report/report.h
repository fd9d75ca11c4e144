/*
 * The report on a model: one file of HTML, which a browser shows without scripts and without any
 * other file. Curves of its training, if there is a log; its attention on one text; the tape of
 * that text's loss.
 */
#ifndef SOFTBACK_TEACH_REPORT_REPORT_H
#define SOFTBACK_TEACH_REPORT_REPORT_H

#include "models/text/pairs.h"
#include "teach/explain/subject.h"
#include "teach/report/run_log.h"

/* What a page is made of besides the model. */
struct report_sources {
    const struct run_log *log;
    const sb_pairs *pairs; /* held out, to show what the model gets wrong; NULL: none */
    uint64_t data_hash;    /* of the training data; 0: unknown */
};

/* The page as a text for memory_free; NULL, with a message, when it cannot be made. */
char *report_page(const struct subject *subject, const char *title, const char *text,
                  const struct report_sources *sources);

#endif
