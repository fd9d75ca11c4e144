/* Optimisers: SGD with momentum, Adam and AdamW. A step is one pass over the parameters of a set
   that are not frozen, or one for each run of neighbours that have the same rate and decay
   (nn/groups.h). */
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
                             decoupled. Groups may have others (nn/groups.h) */
    bool decay_all;       /* AdamW: also decay biases and norms, the parameters of rank below 2 */
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
 * One step. It consumes the gradients, so there is no zero_grad. A parameter without a gradient is
 * neither moved nor decayed, and its moments stay, as in PyTorch.
 *
 * When the gradient norm is not finite, the step is skipped, the gradients are cleared, and the
 * message names the first such parameter. The same happens when Adam would square a norm that
 * f32 cannot hold, above 1.8e19 after clipping. Fails also when no parameter has a gradient.
 */
SB_API bool sb_optimiser_step(sb_optimiser *optimiser);
/* A step with all gradients multiplied by a factor > 0. For gradient accumulation: after several
   backward passes of summed losses, the factor 1 / (number of targets) gives the gradient of the
   mean. */
SB_API bool sb_optimiser_step_scaled(sb_optimiser *optimiser, double factor);

SB_API int64_t sb_optimiser_steps(const sb_optimiser *optimiser); /* the number of steps */
SB_API double sb_optimiser_rate(const sb_optimiser *optimiser); /* learning rate of the last step */
SB_API double sb_optimiser_norm(
    const sb_optimiser *optimiser); /* gradient norm of the last step, before clipping */
/* Sets the learning rate of all later steps, in place of the schedule. Fails when it is not a
   number
   >= 0. */
SB_API bool sb_optimiser_set_rate(sb_optimiser *optimiser, double rate);
/* Reports the loss of an evaluation to a plateau schedule; NaN is worse than any number. */
SB_API void sb_optimiser_observe(sb_optimiser *optimiser, double loss);

/* The state that a checkpoint stores: up to two tensors, each as long as the parameters together
   that are not frozen (NULL past the last), and counters. */
SB_API sb_tensor *sb_optimiser_moment(const sb_optimiser *optimiser, int i);
SB_API sb_plateau sb_optimiser_plateau(const sb_optimiser *optimiser);
SB_API void sb_optimiser_restore(sb_optimiser *optimiser, int64_t steps, sb_plateau plateau);

#endif
