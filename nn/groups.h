/*
 * Groups of parameters: those whose names match a pattern can be frozen, or have a learning rate
 * and a weight decay of their own.
 *
 * A pattern is a name with "*" for any characters and "?" for one; commas separate several:
 * "encoder.*,*.bias". It applies to the parameters that the set has when the function is called.
 */
#ifndef SOFTBACK_NN_GROUPS_H
#define SOFTBACK_NN_GROUPS_H

#include "parameters.h"

/* What is 0 or false leaves the parameters as they were. */
typedef struct {
    double rate;  /* factor of the learning rate; at first 1; SB_ZERO: 0 */
    double decay; /* weight decay; at first the optimiser's; SB_ZERO: none */
    bool frozen;
} sb_group;

/* Fails, and changes nothing, when no parameter matches, or when a number is negative. */
SB_API bool sb_parameters_group(sb_parameters *set, const char *pattern, const sb_group *group);

/*
 * Freezes parameters, or thaws them again. A frozen parameter keeps its bits: backward computes no
 * gradient for it, and no step moves or decays it. It has no memory for a gradient, for moments
 * or for a moving average; once thawed, moments begin at 0. Fails when no parameter matches.
 */
SB_API bool sb_parameters_freeze(sb_parameters *set, const char *pattern, bool frozen);

/* The number of values on this rank that are not frozen. */
SB_API int64_t sb_parameters_trainable(const sb_parameters *set);

#endif
