/* Learning-rate schedules: the rate of each step, counted from 1. */
#ifndef SOFTBACK_NN_SCHEDULE_H
#define SOFTBACK_NN_SCHEDULE_H

#include "../tensor/error.h"
#include <stdint.h>

typedef enum {
    SB_SCHEDULE_CONSTANT,     /* rate */
    SB_SCHEDULE_INVERSE_ROOT, /* rate sqrt(warmup / step) after the warm-up; Vaswani et al. 2017
                                 (Noam) is rate = 1 / sqrt(C warmup) */
    SB_SCHEDULE_COSINE,       /* half a cosine from rate down to `lowest` at `steps`;
                                 Loshchilov and Hutter 2016 */
    SB_SCHEDULE_PLATEAU,      /* times `factor` whenever the measured loss has not fallen for
                                 `patience` evaluations */
} sb_schedule_kind;

typedef struct {
    sb_schedule_kind kind;
    double rate;    /* the highest learning rate, at the end of the warm-up */
    int64_t warmup; /* the rate rises linearly over so many steps, from rate / warmup */
    int64_t steps;  /* COSINE: the step at which it ends */
    double lowest;  /* COSINE and PLATEAU: never below */
    double factor;  /* PLATEAU; 0: 0.5 */
    int patience;   /* PLATEAU; 0: 2 */
} sb_schedule;

/* What a plateau schedule has seen; start from zero. Part of a checkpoint. */
typedef struct {
    double best;  /* the lowest loss; meaningful once seen > 0 */
    int64_t seen; /* evaluations so far */
    int waited;   /* evaluations since the best */
    int reduced;  /* how often the rate was reduced */
} sb_plateau;

/* False, with a message, when a number is out of its range. */
SB_API bool sb_schedule_check(const sb_schedule *schedule);
/* The learning rate of a step >= 1; `plateau` may be NULL. */
SB_API double sb_schedule_rate(const sb_schedule *schedule, int64_t step,
                               const sb_plateau *plateau);
/* Tells a plateau schedule the loss of an evaluation. */
SB_API void sb_plateau_observe(sb_plateau *plateau, const sb_schedule *schedule, double loss);

#endif
