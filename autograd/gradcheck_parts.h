/* The parts of the gradient check: derivatives of the function under it, comparisons, and the
   probable mistake. */
#ifndef SOFTBACK_AUTOGRAD_GRADCHECK_PARTS_H
#define SOFTBACK_AUTOGRAD_GRADCHECK_PARTS_H

#include "autograd/dual_tape.h"
#include "autograd/gradcheck.h"
#include "autograd/watch.h"

/* ---- the function under the check: forward, backward, and derivatives by differences or dual
   numbers (gradcheck_function.c) ---- */

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

/* A derivative of the weighted sum of y. */
struct difference {
    double value;
    double rounding;    /* bound of its error from the rounding of f */
    double first, last; /* parts from the first and the last output that depend on x */
    /* Of one by dual numbers, the largest sum over the outputs of one operation of
       |gradient tangent|. Without the bars each such sum is the value, so this is how large the
       numbers are that round on the way. */
    double largest;
};

/* The weight of element i of y in the scalar that is differentiated. */
double evaluation_weight(int64_t i);

/* Runs backward of that scalar on the open tape; nothing where y requires no gradient. */
bool evaluation_back(sb_tensor *y, const struct listener *listener);

/* Opens a dual tape, along v as for exact_along, runs f and returns the twin of y; NULL on failure.
   dual_tape_end must follow in any case. */
sb_tensor *evaluation_dual(struct evaluation *e, struct dual_tape *dual, sb_mode mode,
                           sb_tensor *const x[], sb_tensor *const v[], int n);

/* Runs f and backward of the weighted sum of y, and reads y into *values: e->up or e->down. */
bool evaluation_backward(struct evaluation *e, double *const *values);

/* Differentiates along v: v[j] is the direction of the f64 tensor x[j], of n, NULL for zeros; other
   inputs of f stay constant. `largest` is found by a backward, if wanted, and otherwise 0. */
bool exact_along(struct evaluation *e, sb_tensor *const x[], sb_tensor *const v[], int n,
                 bool wants_largest, struct difference *d);

/* Differentiates f with respect to element i of x: exactly, or with the fraction `part` of the
   step. */
bool evaluation_difference(struct evaluation *e, sb_tensor *x, int64_t i, double part,
                           struct difference *d);

/* The step h for an element x. */
double evaluation_step(const struct evaluation *e, double x);

/* ---- the measurements for one input x; each array has one number for each element ---- */

struct gradient {
    sb_tensor *x;
    int64_t n;            /* elements of x; 0: its gradient is not checked */
    bool missing;         /* backward produced none */
    double *backward;     /* gradient from backward */
    double *before;       /* gradient before the second backward, */
    double *again;        /* and what the second backward added */
    double *difference;   /* numerical derivative */
    double *rounding;     /* bound of its error from the rounding of f */
    double size;          /* the sum of |backward|; for an exact check, as is noise */
    double noise;         /* how much the gradient changes when the inputs change by 8 ulp */
    uint64_t written;     /* the count of writes to x before that change */
    double *first, *last; /* its parts from the first and the last output that depend on x */
    double *parts;        /* the memory of all arrays */
};

/* Whether the tensor of input number `input` is an earlier input too. */
static inline bool gradient_is_repeated(const struct gradient *gradients, int input)
{
    for (int j = 0; j < input; j++)
        if (gradients[j].x == gradients[input].x)
            return true;
    return false;
}

/* ---- common mistakes in a backward, recognised from the wrong gradient (mistake.c) ---- */

enum { MISTAKE_SIZE = sizeof(((sb_gradcheck_result *)0)->mistake) };

/* Writes the probable mistake in the gradient of input number `input`, of n inputs, to `text`; ""
   if unknown. */
void mistake_name(struct evaluation *e, const struct gradient *gradients, int n, int input,
                  double tolerance, char text[MISTAKE_SIZE]);

/* ---- the exact check along random directions, of first and second order (directions.c) ---- */

struct directions {
    struct evaluation *evaluation;
    sb_tensor *const *x;       /* the n inputs, */
    struct gradient *gradient; /* and what was measured of each */
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

/* Compares products with the Hessian H of the weighted sum of y. Stores symmetry and curvature in
 * the result. False when f fails. */
bool second_order_compare(struct evaluation *e, const struct gradient *gradients, int n,
                          sb_gradcheck_result *result);

#endif
