/* The report on a model, written to a file: teach/report. */
#ifndef SOFTBACK_PROGRAM_RUN_REPORT_H
#define SOFTBACK_PROGRAM_RUN_REPORT_H

#include "program/run/paths.h"
#include "teach/report/report.h"

struct report_request {
    struct report page; /* its text, expected, pairs, trained_on and valid, where they are known */
    const char *model;  /* or a folder of runs, to compare all of them */
    const char *target; /* NULL: the model's output */
    const char *other;  /* a second model, to compare with; NULL: none */
    const char *data;   /* held-out texts with targets or labels; NULL: those of a task */
    const char *log;    /* NULL: the model's path with .jsonl, if it exists */
    const char *out;    /* NULL: the model's path with .html; report.html in a folder */
    enum figure figure; /* instead of the page; `out` NULL: standard output */
};

/* The path of the report. */
struct path_text report_path(const struct report_request *request);

bool report_is_folder(const char *path);
/* Writes the page that compares two models, of any kind, with the logs beside them, or all runs of
   a folder, the best first. */
bool report_compare(const struct report_request *request);

/* Writes the report to a new file, or atomically replaces an earlier report. */
bool report_write(const struct report_request *request);

#endif
