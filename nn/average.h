/* The exponential moving average (EMA) of parameters, which often gives better results in decoding
   than the parameters themselves (Polyak and Juditsky 1992). */
#ifndef SOFTBACK_NN_AVERAGE_H
#define SOFTBACK_NN_AVERAGE_H

#include "parameters.h"

typedef struct sb_average sb_average;

/* `decay` is in (0, 1). The average starts with the present parameters, except for frozen ones, and
   ends when parameters are added, frozen or thawed. The set must outlive it. */
SB_API sb_average *sb_average_new(sb_parameters *set, double decay);
SB_API void sb_average_free(sb_average *average);

/* average = d average + (1 - d) parameters, with d = min(decay, (1 + t) / (10 + t)) in update t, so
   that the initial values lose their weight quickly. */
SB_API bool sb_average_update(sb_average *average);
/* Swaps the parameters with their average; a second call swaps them back. */
SB_API bool sb_average_swap(sb_average *average);

/* For checkpoints: the values, as long as the gradients, and the number of updates. */
SB_API sb_tensor *sb_average_values(const sb_average *average);
SB_API int64_t sb_average_updates(const sb_average *average);
SB_API void sb_average_restore(sb_average *average, int64_t updates);

#endif
