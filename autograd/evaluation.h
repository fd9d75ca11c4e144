/* Evaluates the function under the gradient check: forward, backward, and derivatives by
   differences or by dual numbers. */
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
    double *up, *down;        /* y of two runs; free both with memory_free(up) */
    bool dual;                /* whether all operations of the last run compute dual numbers */
    bool exact;               /* whether evaluation_difference uses dual numbers */
};

struct difference {
    double value;
    double rounding;    /* bound of its error from the rounding of f */
    double first, last; /* parts from the first and the last output that depend on x */
};

/* The weight of element i of y in the scalar that is differentiated. */
double evaluation_weight(int64_t i);

/* The gradient of that scalar with respect to y, in f64. The caller owns it. */
sb_tensor *evaluation_dy(const sb_tensor *y);

/* Runs f on the open tape, with the stream rewound, and reads y into *values. */
void evaluation_rewind(struct evaluation *e, sb_tape *tape);
sb_tensor *evaluation_run(struct evaluation *e, double *const *values);

/* Runs f and backward of the weighted sum of y, and reads y into *values: e->up or e->down. */
bool evaluation_backward(struct evaluation *e, double *const *values);

/* Differentiates f with respect to element i of x: exactly, or with the fraction `part` of the
   step. */
bool evaluation_difference(struct evaluation *e, sb_tensor *x, int64_t i, double part,
                           struct difference *d);

/* The step h for an element x. */
double evaluation_step(const struct evaluation *e, double x);

#endif
