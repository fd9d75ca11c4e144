/* The progress of a training run, on standard error. A terminal has a live line, which is redrawn
   in place, and a line for each evaluation; a file or a pipe gets only the latter, as plain text
   that is flushed immediately. */
#ifndef SOFTBACK_PROGRAM_SCREEN_PROGRESS_H
#define SOFTBACK_PROGRAM_SCREEN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* The last losses of a run. */
enum { SPARK_POINTS = 64 };

struct sparkline {
    int count;    /* of the points below */
    int each, in; /* how many losses a point is the mean of; how many the last one has so far */
    double point[SPARK_POINTS];
};

struct progress_line {
    bool shown;       /* only the first of several ranks shows it */
    bool terminal;    /* whether standard error is a terminal */
    double began;     /* seconds of a monotonic clock */
    double lap;       /* when progress_lap was last called, or it began */
    double drawn;     /* when it was last drawn */
    int64_t at_start; /* the step at which this run began */
    double symbols;   /* since then */
    double loss;      /* of the last step */
    struct sparkline losses;
    double waited; /* seconds spent only on summing gradients over ranks */
    int64_t sent;  /* bytes to other ranks */
};

struct progress_line progress_begin(int64_t step);

/* On a terminal draws "step 120/2000  loss 0.412 ▇▅▃▂▂▁  9,812 symbols/s  1:07 left", a few times a
 * second. */
void progress_step(struct progress_line *line, int64_t step, int64_t steps, double loss,
                   int64_t symbols);

/* Prints the line of an evaluation: on a terminal
 *
 *     step 500  held-out loss 0.3811  exact 12.5 %  best so far
 *
 * and elsewhere
 *
 *     step 500/1,600  loss 0.4120  held-out loss 0.3811  exact 12.5 %  9,812 symbols/s  1:07 left
 *
 * with "best so far" at its end. What stands between loss and rate is `measure`, as the kind of
 * model has it.
 */
void progress_evaluation(struct progress_line *line, int64_t step, int64_t steps, double loss,
                         const char *measure, bool best);

/* Clears the live line, so that other text can be printed. */
void progress_clear(struct progress_line *line);

/* Seconds since it began, and symbols a second. */
double progress_seconds(const struct progress_line *line);
/* Seconds since the last call, or since it began. */
double progress_lap(struct progress_line *line);
double progress_rate(const struct progress_line *line);

/* 83.2 -> "1:23". */
struct duration_text {
    char text[32];
};
struct duration_text duration_text(double seconds);

/* 108349 -> "108,349". */
struct count_text {
    char text[32];
};
struct count_text count_text(int64_t count);

#endif
