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
    SB_SCHEDULE_PLATEAU,  /* multiplied by `factor` when the evaluation loss has not improved for
                             `patience` evaluations */
    SB_SCHEDULE_LINEAR,   /* linear decay from rate to `lowest` at `steps` */
    SB_SCHEDULE_RESTARTS, /* cosine decay from rate to `lowest`, again and again: the first cycle
                             after warm-up has `cycle` steps, each later one `growth` times as many
                             as the one before (SGDR, Loshchilov and Hutter 2016) */
    SB_SCHEDULE_CUSTOM,   /* rate times custom(step, custom_context) after warm-up */
} sb_schedule_kind;

typedef struct {
    sb_schedule_kind kind;
    double rate;    /* the peak learning rate, at the end of warm-up; positive, or SB_ZERO */
    int64_t warmup; /* steps of linear warm-up, from rate / warmup */
    int64_t steps;  /* COSINE and LINEAR: the step at which the decay ends */
    double lowest;  /* COSINE, LINEAR, RESTARTS and PLATEAU: the minimum rate */
    double factor;  /* PLATEAU; 0: 0.5, SB_ZERO: 0 */
    int patience;   /* PLATEAU; 0: 2 */
    int64_t cycle;  /* RESTARTS; at least 1 */
    double growth;  /* RESTARTS: at least 1; 0: 1 */
    /* CUSTOM: a factor >= 0, for steps counted from 1. Equal arguments must give equal results, so
       that a resumed run goes on as it would have. */
    double (*custom)(int64_t step, void *context);
    void *custom_context;
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
/* Reports the loss of an evaluation to a plateau schedule; NaN is worse than any number. */
SB_API void sb_plateau_observe(sb_plateau *plateau, const sb_schedule *schedule, double loss);

#endif
