/* A training log (program/run/log.h), as read for a report. */
#ifndef SOFTBACK_TEACH_REPORT_RUN_LOG_H
#define SOFTBACK_TEACH_REPORT_RUN_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* The first line of a log; later versions read this format. */
#define SIGNATURE_LOG SIGNATURE_LOG_START "2}\n"
#define SIGNATURE_LOG_START "{\"softback\":\"log\",\"format\":"
enum { LOG_FORMAT = 2 };

/* What a line may have; the last ones are of evaluations. */
enum run_value {
    RUN_STEP,
    RUN_LOSS,
    RUN_RATE,
    RUN_NORM,
    RUN_HELD_OUT_LOSS,
    RUN_PERPLEXITY,
    RUN_EXACT, /* per cent of the held-out texts that it writes exactly right */
    RUN_TEXTS, /* how many those are */
    RUN_GUESS, /* per cent of them that have the commonest label */
    RUN_GUESS_LOSS,
    RUN_BEST, /* 1: the best evaluation so far, whose model was saved */
    RUN_VALUES
};

/* NaN where a line has no value. */
struct run_line {
    double of[RUN_VALUES];
};

/* A line with a diagnosis (models/training/diagnosis.h): a number of each parameter, two of each
   head, and DIAGNOSIS_BINS of each parameter. */
enum run_numbers { RUN_GRADIENTS, RUN_SATURATED, RUN_EVENNESS, RUN_HISTOGRAMS, RUN_NUMBERS };
struct run_diagnosis {
    double step, *of[RUN_NUMBERS];
};

struct run_log {
    int64_t count, room, diagnoses, diagnoses_room;
    struct run_line *line;
    struct run_diagnosis *diagnosis;
    double seconds;            /* that training took; NaN where no line has them */
    int64_t parameters, heads; /* of a diagnosis; lines with other numbers are a failure */
};

/* The format that the first line of a log names; -1: it names none. */
long long run_log_format(const char *line);

/* A line that is not of a log is a failure; an incomplete last line is ignored. A missing file is
   an empty log, and a pipe a failure. */
bool run_log_read(struct run_log *log, const char *path);
void run_log_free(struct run_log *log);

/* What of a run counts in the end; NaN where the log does not have it. */
struct run_end {
    double steps, first_loss, last_loss; /* of training; last: the mean of a tenth of its lines */
    double least_loss;                   /* the least mean of a tenth of its lines */
    double best_step, held_out_loss;     /* of the evaluation whose model was saved */
    double exact, texts;                 /* of it: per cent of how many texts */
    double guess, guess_loss;            /* of labels: what their frequencies alone would reach */
    double least_held_out, least_step, last_held_out; /* of all evaluations */
    bool falls; /* the last third of training lowered the held-out loss by 3 % */
};
struct run_end run_end(const struct run_log *run);

#endif
