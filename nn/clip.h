/* Clipping of the gradient by its global norm (Pascanu, Mikolov and Bengio 2013). */
#ifndef SOFTBACK_NN_CLIP_H
#define SOFTBACK_NN_CLIP_H

#include "nn/parameters.h"

/*
 * The norm of all gradients together, times `factor`; and the scale, `factor` times what brings
 * that norm down to `limit`: min(1, limit / (norm + 1e-6)) as in PyTorch, so that training there
 * and here stay together (1 where limit is 0). Fails when there is no gradient, and when the norm
 * is not finite: the message names the first parameter concerned. Where ranks hold parts of
 * parameters, all of them call it, and get the same.
 */
bool clip_scale(sb_parameters *set, double limit, double factor, double *norm, double *scale);

#endif
