/* Optimisers: SGD with momentum, Adam and AdamW, each one pass over all parameters of a set. */
#ifndef SOFTBACK_NN_OPTIMISER_H
#define SOFTBACK_NN_OPTIMISER_H

#include "parameters.h"
#include "schedule.h"

typedef struct sb_optimiser sb_optimiser;

/* Numbers whose default is not 0 are 0 with SB_ZERO (tensor/option.h). Adam with an epsilon of 0
   makes a parameter NaN whose gradients have all been 0. */
typedef struct {
    double learning_rate; /* without a schedule; 0: 0.001 (SGD: 0.1) */
    sb_schedule schedule; /* used instead if its rate is not 0 */
    double beta1, beta2;  /* Adam; 0: 0.9 and 0.98 (Vaswani et al. 2017) */
    double epsilon;       /* Adam; 0: 1e-9 */
    double momentum;      /* SGD; in [0, 1) */
    bool nesterov;        /* SGD */
    double weight_decay;  /* Adam and SGD: L2 penalty (decay w is added to the gradient); AdamW:
                             decoupled */
    double clip;          /* gradient clipping by global norm; 0: none */
} sb_optimiser_options;

/* An optimiser for all parameters of the set, including later ones. Fails when a number is out of
   range, when nesterov is set without a momentum, and when the parameters are of bf16, in which
   small steps would be lost. The set must outlive the optimiser. */
SB_API sb_optimiser *sb_sgd_new(sb_parameters *set, const sb_optimiser_options *options);
SB_API sb_optimiser *sb_adam_new(sb_parameters *set, const sb_optimiser_options *options);
SB_API sb_optimiser *sb_adamw_new(sb_parameters *set, const sb_optimiser_options *options);
SB_API void sb_optimiser_free(sb_optimiser *optimiser);

/*
 * One step. It consumes the gradients, so there is no zero_grad. A parameter without a gradient has
 * gradient 0.
 *
 * When the gradient norm is not finite, the step is skipped, the gradients are cleared, and the
 * message names the first such parameter. Fails also when no parameter has a gradient.
 */
SB_API bool sb_optimiser_step(sb_optimiser *optimiser);
/* The same with all gradients multiplied by a factor > 0. For gradient accumulation: after several
   backward passes of summed losses, the factor 1 / (number of targets) gives the gradient of the
   mean. */
SB_API bool sb_optimiser_step_scaled(sb_optimiser *optimiser, double factor);

SB_API int64_t sb_optimiser_steps(const sb_optimiser *optimiser); /* the number of steps */
SB_API double sb_optimiser_rate(const sb_optimiser *optimiser); /* learning rate of the last step */
SB_API double sb_optimiser_norm(
    const sb_optimiser *optimiser); /* gradient norm of the last step, before clipping */
/* Reports the loss of an evaluation to a plateau schedule. */
SB_API void sb_optimiser_observe(sb_optimiser *optimiser, double loss);

/* The state that a checkpoint stores: up to two tensors with the shape of the flat parameters (NULL
   past the last), and counters. */
SB_API sb_tensor *sb_optimiser_moment(const sb_optimiser *optimiser, int i);
SB_API sb_plateau sb_optimiser_plateau(const sb_optimiser *optimiser);
SB_API void sb_optimiser_restore(sb_optimiser *optimiser, int64_t steps, sb_plateau plateau);

#endif
