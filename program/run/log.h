/*
 * The log of a training run: one JSON object a line,
 *
 *     {"softback":"log","format":2}    first
 *     {"step": 10, "loss": 2.31, "rate": 0.00005, "norm": 1.7, "symbols": 812}
 *     {"step": 10, ..., "symbols": 812, "sent": 97152}   on several ranks: bytes that rank 0 sent
 *     {"step": 500, "gradients": [0.1, ...], "histograms": [[0, 4, ...], ...],
 *      "saturated": [0, 0.1, ...], "evenness": [0.8, ...]}
 *         with --report (models/training/diagnosis.h)
 *     {"step": 500, "held_out_loss": 0.21, "held_out_error": 0.04, "held_out_texts": 420,
 *      "guess_error": 0.89, "guess_loss": 2.41, "best": true}
 *     {"step": 500, ..., "held_out_unit_error": 0.02, "held_out_bleu": 61.3, "best": true}   of
 *         texts
 *     {"step": 500, "seconds": 12.3}   that training took since the last such line; its sum is the
 *         time of the run. All other lines are the same in each run with the same settings.
 */
#ifndef SOFTBACK_PROGRAM_RUN_LOG_H
#define SOFTBACK_PROGRAM_RUN_LOG_H

#include "models/training/diagnosis.h"
#include "models/training/trainer.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { LOG_HEAD = 1 << 16 }; /* bytes, enough to recognise a log */

/* Whether the first bytes of a file, at most LOG_HEAD and a NUL, are those of a log, whose first
   line may be incomplete, or of an empty file. */
bool log_begins(const char *head);

/* Opens a log that paths_check has accepted, to continue after `step`: removes later lines and an
   incomplete last line; 0 starts a new log. The log is locked until it is closed. NULL, with a
   message, when the file cannot be written or another run writes it. */
FILE *log_open(const char *path, int64_t step);
/* Each writes one line; none when `log` is NULL. */
bool log_step(FILE *log, int64_t step, const sb_trained *trained);
bool log_diagnosis(FILE *log, int64_t step, const struct diagnosis *diagnosis);
bool log_seconds(FILE *log, int64_t step, double seconds);
/* What the frequencies of the held-out targets alone reach; NaN where they are not known. */
struct guess {
    double error; /* of always choosing the commonest */
    double loss;  /* in nats a target, of knowing how often each came before */
};

/* Reads all held-out batches. */
bool guess_make(struct guess *guess, const sb_source *held);

bool log_evaluation(FILE *log, int64_t step, const sb_evaluation *scores, const struct guess *guess,
                    bool best);

/* A number for JSON, which has no NaN and no infinity: null then. */
json_t *log_number(double x);
/* A table as an array of rows. */
json_t *log_table(int64_t rows, int64_t columns, const int64_t *counts);

#endif
