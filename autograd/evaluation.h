/* Runs the function that is under the gradient check, forwards and backwards, and differentiates it
   numerically. */
#ifndef SOFTBACK_AUTOGRAD_EVALUATION_H
#define SOFTBACK_AUTOGRAD_EVALUATION_H

#include "autograd/gradcheck.h"
#include "tensor/storage.h"

struct evaluation {
    sb_function f;
    void *context;
    sb_tensor *const *x;
    double step;              /* h, relative to max(1, |x|) */
    sb_random *random, start; /* the stream, rewound to `start` for each run; or NULL */
    int64_t outputs;          /* elements of y; -1 until f has run */
    double *up, *down;        /* the y of one run and of another; to be freed by memory_free(up) */
};

struct difference {
    double value;
    double rounding;    /* how far the rounding of f may put it off */
    double first, last; /* what the first and the last output that x reaches add to it */
};

/* The weight of element i of y in the one number that is differentiated. */
double evaluation_weight(int64_t i);

/* Runs f and backward, each y weighed, and reads y into *values: e->up or e->down. */
bool evaluation_backward(struct evaluation *e, double *const *values);

/* Differentiates f with respect to element i of x; `part` of the step is used. */
bool evaluation_difference(struct evaluation *e, sb_tensor *x, int64_t i, double part,
                           struct difference *d);

/* The h that belongs to element i of x. */
double evaluation_step(const struct evaluation *e, const sb_tensor *x, int64_t i);

#endif
