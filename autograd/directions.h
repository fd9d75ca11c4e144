/* The exact gradient check along random directions. */
#ifndef SOFTBACK_AUTOGRAD_DIRECTIONS_H
#define SOFTBACK_AUTOGRAD_DIRECTIONS_H

#include "autograd/mistake.h"

struct directions {
    struct evaluation *evaluation;
    struct gradient *gradient; /* of each of n inputs */
    int n, count;              /* of directions for each group of inputs */
    double tolerance;
    bool *suspect; /* of each input: an error above the tolerance is in it or in its group */
    /* Results: the largest error, and <gradient, v> and J v there. */
    double error, backward, derivative;
};

/* Measures each gradient, and how much rounding of the inputs alone moves it. The inputs then have
   no gradient. False when f fails. */
bool directions_find_noise(struct directions *d);

/* Compares all gradients with tangents. False when f fails. */
bool directions_compare(struct directions *d);

/* Finds an element of the suspects that is wrong, by halves. False when f fails. */
bool directions_locate(struct directions *d, int *input, int64_t *index);

#endif
