/* Clipping of the gradient by its global norm (Pascanu, Mikolov and Bengio 2013). */
#ifndef SOFTBACK_NN_CLIP_H
#define SOFTBACK_NN_CLIP_H

#include "nn/parameters.h"

/* Who clips, and what follows when it cannot, for messages. */
struct clip_caller {
    const char *who, *then;
};

/*
 * *norm = `factor` times the global norm of all gradients; *scale = `factor` times
 * min(1, limit / (*norm + 1e-6)), as in PyTorch's clip_grad_norm_ (limit 0: no clipping). Fails
 * when there is no gradient, and when the norm is not finite: the message names the first such
 * parameter. With tensor parallelism all ranks call it and get the same result.
 */
bool clip_scale(const struct clip_caller *caller, sb_parameters *set, double limit, double factor,
                double *norm, double *scale);

/* The name of the first parameter with a value that is not finite, or NULL. */
const char *clip_bad_parameter(const sb_parameters *set);

#endif
