/* The moments of an optimiser, in flat tensors with the layout of the gradients, and the number of
   steps that each parameter has taken. */
#ifndef SOFTBACK_NN_MOMENTS_H
#define SOFTBACK_NN_MOMENTS_H

#include "nn/flat.h"

enum { MOST_MOMENTS = 2 };

/* What belongs to a parameter. */
struct moments_place {
    int64_t slot;  /* its first element in the flat tensors; -1 while it is frozen */
    int64_t steps; /* with a gradient, on which the corrections of Adam depend */
};

struct moments {
    int tensors; /* Adam: m and v; SGD: u */
    sb_tensor *flat[MOST_MOMENTS];
    int64_t layout; /* of the gradients; 0: none yet */
    int64_t count;  /* of the parameters then */
    struct moments_place *place;
};

/* Flattens the parameters and makes moments of the layout that they have now. Parameters that were
   added or thawed begin with moments of 0. On failure nothing changes. */
bool moments_fit(struct moments *moments, sb_parameters *set);
void moments_free(struct moments *moments);

#endif
