/* Learning-rate schedules: the rate of each step, counted from 1. */
#ifndef SOFTBACK_NN_SCHEDULE_H
#define SOFTBACK_NN_SCHEDULE_H

#include "../tensor/error.h"
#include "../tensor/option.h"
#include <stdint.h>

typedef enum {
    SB_SCHEDULE_CONSTANT,     /* rate */
    SB_SCHEDULE_INVERSE_ROOT, /* rate sqrt(warmup / step) after warm-up; the "Noam" schedule of
                                 Vaswani et al. 2017 has rate = 1 / sqrt(C warmup) */
    SB_SCHEDULE_COSINE, /* cosine decay from rate to `lowest` at `steps`; Loshchilov and Hutter 2016
                         */
    SB_SCHEDULE_PLATEAU, /* multiplied by `factor` when the evaluation loss has not improved for
                            `patience` evaluations */
} sb_schedule_kind;

typedef struct {
    sb_schedule_kind kind;
    double rate;    /* the peak learning rate, at the end of warm-up; positive, or SB_ZERO */
    int64_t warmup; /* steps of linear warm-up, from rate / warmup */
    int64_t steps;  /* COSINE: the step at which the decay ends */
    double lowest;  /* COSINE and PLATEAU: the minimum rate */
    double factor;  /* PLATEAU; 0: 0.5, SB_ZERO: 0 */
    int patience;   /* PLATEAU; 0: 2 */
} sb_schedule;

/* The state of a plateau schedule; initialise it to zero. Part of a checkpoint. */
typedef struct {
    double best;  /* the lowest loss; valid if seen > 0 */
    int64_t seen; /* number of evaluations */
    int waited;   /* evaluations since the best */
    int reduced;  /* number of reductions of the rate */
} sb_plateau;

/* Fails when a number is out of range. */
SB_API bool sb_schedule_check(const sb_schedule *schedule);
/* The learning rate of a step >= 1; `plateau` may be NULL. */
SB_API double sb_schedule_rate(const sb_schedule *schedule, int64_t step,
                               const sb_plateau *plateau);
/* Reports the loss of an evaluation to a plateau schedule. */
SB_API void sb_plateau_observe(sb_plateau *plateau, const sb_schedule *schedule, double loss);

#endif
