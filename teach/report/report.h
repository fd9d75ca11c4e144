/*
 * The report on a model: one file of HTML, which a browser shows without scripts and without any
 * other file. Curves of its training, if there is a log; its attention on one text; the gradient
 * check and the tape of that text's loss; what it gets wrong.
 */
#ifndef SOFTBACK_TEACH_REPORT_REPORT_H
#define SOFTBACK_TEACH_REPORT_REPORT_H

#include "models/text/pairs.h"
#include "models/training/checkpoint.h"
#include "teach/explain/subject.h"
#include "teach/report/html.h"
#include "teach/report/run_log.h"

struct report {
    const struct checkpoint *checkpoint;
    const struct subject *subject; /* the checkpoint's model on a text */
    const char *title, *text;
    bool text_given, target_given; /* by the user: refused where they are too long to be drawn */
    const struct run_log *log;
    const sb_pairs *pairs; /* held out, to show what the model gets wrong; NULL: none */
    uint64_t data_hash;    /* of the training data; 0: unknown */
};

/* What only the report on one kind of model has; members may be NULL. */
struct report_kind {
    /* What the model does with `pairs`, for the two below; NULL, with a message, on failure. */
    void *(*open)(const struct report *report);
    void (*close)(void *found);
    bool (*begin)(struct html *html, const struct report *report, void *found);
    bool (*curves)(struct html *html, const struct report *report);
    bool (*errors)(struct html *html, const struct report *report, void *found);
};

extern const struct report_kind report_pairs, report_language, report_classifier;

/* The page as a text for memory_free; NULL, with a message, when it cannot be made. `kind` may be
   NULL. */
char *report_page(const struct report *report, const struct report_kind *kind);

#endif
