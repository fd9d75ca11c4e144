/* Derivatives of the function under the gradient check by dual numbers. */
#ifndef SOFTBACK_AUTOGRAD_EXACT_H
#define SOFTBACK_AUTOGRAD_EXACT_H

#include "autograd/evaluation.h"

/* The derivative of the weighted sum of y along a direction. */
struct directional {
    double value;
    double first, last; /* its parts from the first and the last output that depend on x */
    /* The largest sum over the outputs of one operation of |gradient tangent|. Without the bars
       each such sum is the value, so this is how large the numbers are that round on the way. */
    double largest;
};

/* Differentiates along v: v[j] is the direction of the f64 tensor x[j], of n; other inputs of f
   stay constant. `largest` is found by a backward, if wanted, and otherwise 0. */
bool exact_along(struct evaluation *e, sb_tensor *const x[], sb_tensor *const v[], int n,
                 bool wants_largest, struct directional *d);

/* The derivative with respect to element i of x. */
bool exact_difference(struct evaluation *e, sb_tensor *x, int64_t i, struct difference *d);

#endif
