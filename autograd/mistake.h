/* What a wrong gradient looks like: the mistakes that are made when a backward is written. */
#ifndef SOFTBACK_AUTOGRAD_MISTAKE_H
#define SOFTBACK_AUTOGRAD_MISTAKE_H

#include "autograd/evaluation.h"

/* What the gradient check learns of one input x; each array has one number for each element. */
struct gradient {
    sb_tensor *x;
    int64_t n;            /* elements of x; 0: its gradient is not checked */
    bool missing;         /* backward left none */
    double *backward;     /* what backward gave */
    double *before;       /* what the gradient held before backward ran again, */
    double *again;        /*     and what that added */
    double *difference;   /* what the differences give */
    double *rounding;     /* how far f's rounding may put that off */
    double *first, *last; /* the part of it that comes from the first and the last of the outputs
                             that x reaches */
    double *parts;        /* where the arrays lie */
};

enum { MISTAKE_SIZE = sizeof(((sb_gradcheck_result *)0)->mistake) };

/* Puts into `text` what the mistake in the gradient of gradients[input], one of n, looks like; ""
   when it looks like none known. */
void mistake_name(struct evaluation *e, const struct gradient *gradients, int n, int input,
                  double tolerance, char text[MISTAKE_SIZE]);

#endif
