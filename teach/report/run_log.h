/* What a log of training holds (program/log.h), for a report. */
#ifndef SOFTBACK_TEACH_REPORT_RUN_LOG_H
#define SOFTBACK_TEACH_REPORT_RUN_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* NaN where a line says nothing. */
struct run_line {
    double step, loss, rate, norm, held_out_loss, held_out_error;
};

/* A line with a diagnosis (models/training/diagnosis.h). */
struct run_diagnosis {
    double step;
    double *gradients, *deaf, *evenness; /* `parameters` and `heads` of them */
};

struct run_log {
    int64_t count, room, diagnoses, diagnoses_room;
    struct run_line *line;
    struct run_diagnosis *diagnosis;
    int64_t parameters, heads; /* of a diagnosis; lines with other numbers are a failure */
};

/* Lines that are not of a log are a failure; a last line that is cut off is not. A log that is not
   there is empty. */
bool run_log_read(struct run_log *log, const char *path);
void run_log_free(struct run_log *log);

#endif
