/* Recognises common mistakes in a backward from the wrong gradient. */
#ifndef SOFTBACK_AUTOGRAD_MISTAKE_H
#define SOFTBACK_AUTOGRAD_MISTAKE_H

#include "autograd/evaluation.h"

/* The measurements of the gradient check for one input x; each array has one number for each
   element. */
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

enum { MISTAKE_SIZE = sizeof(((sb_gradcheck_result *)0)->mistake) };

/* Writes the probable mistake in the gradient of input number `input`, of n inputs, to `text`; ""
   if unknown. */
void mistake_name(struct evaluation *e, const struct gradient *gradients, int n, int input,
                  double tolerance, char text[MISTAKE_SIZE]);

#endif
