/* The report on a model, written to a file: teach/report. */
#ifndef SOFTBACK_PROGRAM_REPORT_H
#define SOFTBACK_PROGRAM_REPORT_H

#include "teach/report/figure.h"

struct report_request {
    const char *model, *text, *target; /* target NULL: what the model writes */
    const char *log;                   /* NULL: beside the model, if it is there */
    const char *out;                   /* NULL: beside the model, ending in .html */
    enum figure figure;                /* instead of the page; `out` NULL: standard output */
};

/* The path of the report; NULL without memory. For memory_free. */
char *report_path(const struct report_request *request);

/* Writes the report, where nothing is yet or what an earlier one wrote. That is replaced at once or
   not at all. */
bool report_write(const struct report_request *request);

#endif
