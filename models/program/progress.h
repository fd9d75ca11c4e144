/* The live line of long work: on a terminal it is redrawn in place, in a pipe nothing is shown. */
#ifndef SOFTBACK_MODELS_PROGRAM_PROGRESS_H
#define SOFTBACK_MODELS_PROGRAM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress_line {
    bool shown;       /* whether there is a terminal to show it on */
    double began;     /* seconds, of the clock that only goes forward */
    double drawn;     /* when it was last drawn */
    int64_t at_start; /* the step at which this run began */
    double symbols;   /* since then */
    double waited;    /* seconds spent on other ranks, and on nothing else */
    int64_t sent;     /* bytes, to other ranks */
};

struct progress_line progress_begin(int64_t step);

/* Draws "step 120/2000  loss 0.412  9,812 symbols/s  1:07 left", at most some times a second. */
void progress_step(struct progress_line *line, int64_t step, int64_t steps, double loss,
                   int64_t symbols);

/* Takes the line away, so that other text can be printed. */
void progress_clear(struct progress_line *line);

/* Seconds since it began, and symbols for each of them. */
double progress_seconds(const struct progress_line *line);
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
