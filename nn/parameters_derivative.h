/*
 * Exact derivatives with respect to the parameters of a model: Jacobian- and Hessian-vector
 * products over a parameter set (autograd/derivative.h has the same over an array of tensors).
 *
 * A vector over a set is a parameter set too, of f64: its parameters have the names and shapes of
 * those of the set. One that is missing counts as zeros, so that a direction may name a few:
 *
 *     sb_parameters *v = sb_parameters_vector(weights, &random);       +-1, drawn
 *     sb_parameters *hv = sb_parameters_hvp(weights, loss, model, v);  H v, by name
 *
 * The set is of f64, on the CPU, and not distributed over ranks. f receives its tensors in the
 * order of the set; a function that owns a model may ignore them.
 */
#ifndef SOFTBACK_NN_PARAMETERS_DERIVATIVE_H
#define SOFTBACK_NN_PARAMETERS_DERIVATIVE_H

#include "../autograd/tape.h"
#include "parameters.h"

/* A new vector over a set: +-1 drawn from the stream, or zeros where it is NULL. To be freed with
   sb_parameters_free. */
SB_API sb_parameters *sb_parameters_vector(const sb_parameters *set, sb_random *random);

/* y = f and dy = J v, as sb_jvp. Fails also when v names a parameter that is not in the set. */
SB_API bool sb_parameters_jvp(const sb_parameters *set, sb_function f, void *context,
                              const sb_parameters *v, sb_tensor **y, sb_tensor **dy);

/* H v of an f of one element, as sb_hvp: a new vector, to be freed with sb_parameters_free; NULL on
   failure. Gradients of the set stay as they are. */
SB_API sb_parameters *sb_parameters_hvp(const sb_parameters *set, sb_function f, void *context,
                                        const sb_parameters *v);

#endif
