/* The parts of an optimiser, for files. */
#ifndef SOFTBACK_NN_OPTIMISER_PARTS_H
#define SOFTBACK_NN_OPTIMISER_PARTS_H

#include "nn/moments.h"
#include "nn/optimiser.h"

/* "sgd", "adam" or "adamw". */
const char *optimiser_name(const sb_optimiser *optimiser);
sb_parameters *optimiser_set(const sb_optimiser *optimiser);
struct moments *optimiser_moments(sb_optimiser *optimiser);

/* The rate from sb_optimiser_set_rate; NAN: none was set. */
double optimiser_own_rate(const sb_optimiser *optimiser);

/* Whether a parameter that is trained has taken fewer steps than the optimiser, for lack of a
   gradient; the steps of all parameters as a tensor (count) of f64 on the CPU, to be released; and
   back. */
bool optimiser_steps_differ(const sb_optimiser *optimiser);
sb_tensor *optimiser_steps_new(const sb_optimiser *optimiser);
bool optimiser_take_steps(sb_optimiser *optimiser, const sb_tensor *steps);

#endif
