/* Optimisers: SGD with momentum, Adam and AdamW, each one pass over all parameters of a set. */
#ifndef SOFTBACK_NN_OPTIMISER_H
#define SOFTBACK_NN_OPTIMISER_H

#include "parameters.h"
#include "schedule.h"

typedef struct sb_optimiser sb_optimiser;

typedef struct {
    double learning_rate; /* without a schedule; 0: 0.001 (SGD: 0.1) */
    sb_schedule schedule; /* instead, if its rate is not 0 */
    double beta1, beta2;  /* Adam; 0: 0.9 and 0.98 (Vaswani et al. 2017) */
    double epsilon;       /* Adam; 0: 1e-9 */
    double momentum;      /* SGD; in [0, 1) */
    bool nesterov;        /* SGD */
    double weight_decay;  /* Adam and SGD: added to the gradient, times w; AdamW: decoupled */
    double clip;          /* the largest global norm of the gradient; 0: no limit */
} sb_optimiser_options;

/* For all parameters of the set, also those added later. Fails on numbers out of range. The set
   must outlive the optimiser. */
SB_API sb_optimiser *sb_sgd_new(sb_parameters *set, const sb_optimiser_options *options);
SB_API sb_optimiser *sb_adam_new(sb_parameters *set, const sb_optimiser_options *options);
SB_API sb_optimiser *sb_adamw_new(sb_parameters *set, const sb_optimiser_options *options);
SB_API void sb_optimiser_free(sb_optimiser *optimiser);

/*
 * One step with the gradients that backward left, which it consumes: the next backward starts
 * afresh. A parameter without a gradient counts as having one of 0.
 *
 * When the norm of the gradient is not finite, the step is skipped, the gradients are dropped, and
 * the message names the first parameter concerned. Fails also when there is no gradient at all.
 */
SB_API bool sb_optimiser_step(sb_optimiser *optimiser);
/* The same with all gradients times a factor > 0: after several backwards of sums over targets, one
   over the number of all targets makes their mean. */
SB_API bool sb_optimiser_step_scaled(sb_optimiser *optimiser, double factor);

SB_API int64_t sb_optimiser_steps(const sb_optimiser *optimiser); /* how many steps it has taken */
SB_API double sb_optimiser_rate(const sb_optimiser *optimiser);   /* of the last step */
SB_API double sb_optimiser_norm(const sb_optimiser *optimiser);   /* gradient's, before clipping */
/* Tells a plateau schedule the loss of an evaluation. */
SB_API void sb_optimiser_observe(sb_optimiser *optimiser, double loss);

/* What a checkpoint must hold of an optimiser: up to two tensors, shaped as the flat parameters
   (NULL past the last), and its counters. */
SB_API sb_tensor *sb_optimiser_moment(const sb_optimiser *optimiser, int i);
SB_API sb_plateau sb_optimiser_plateau(const sb_optimiser *optimiser);
SB_API void sb_optimiser_restore(sb_optimiser *optimiser, int64_t steps, sb_plateau plateau);

#endif
