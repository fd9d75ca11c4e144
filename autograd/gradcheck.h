/*
 * The gradient check: backward against central differences, in float64.
 *
 * f's output y is reduced to one number, sum_i w_i y_i with fixed weights w in (0.25, 1.25), so
 * that every element counts and no two cancel by symmetry. For each element of each input that
 * requires a gradient the difference (f(x + h) - f(x - h)) / 2h is compared with what backward
 * gives. The error of an input is
 *
 *     max |backward - difference| / max(max |difference|, max |backward|)
 *
 * after what the rounding of f explains is taken off: 4 ulp of every element of y that differs
 * between the two evaluations, and of the largest, over 2h. This floor shrinks with y, so that
 * a function of tiny values is checked like any other. Where the two differ by more than the
 * tolerance allows, the difference is first refined by Richardson's extrapolation,
 * (4 D(h/2) - D(h)) / 3, so that a strong curvature does not pass for a mistake.
 *
 * A NaN anywhere fails; a missing gradient counts as zero. Backward also runs with gradients
 * already present, which it must add to and not overwrite. Whatever gradients the inputs had are
 * set aside before and put back after, the values are restored to the bit, and the random stream is
 * rewound for each evaluation, and at the end. Leaves that f reaches but that are not among the
 * inputs get gradients as from any backward.
 */
#ifndef SOFTBACK_AUTOGRAD_GRADCHECK_H
#define SOFTBACK_AUTOGRAD_GRADCHECK_H

#include "tape.h"

typedef struct {
    double step;       /* h, relative to max(1, |x|); 0: 1e-5 */
    double tolerance;  /* the largest error that passes; 0: 1e-6 */
    sb_random *random; /* the stream for f's dropout; NULL: the open tape's, if any */
} sb_gradcheck_options;

typedef struct {
    bool ok;
    double error;      /* the worst of all inputs; NaN if a gradient is, or if f cannot be run */
    int input;         /* where the worst is: the input (-1 if f cannot be run), */
    int64_t index;     /*     and its row-major index */
    double backward;   /* what backward gave there */
    double difference; /* what the difference gave */
    double step;       /* the h used there */
    char mistake[160]; /* what the mistake looks like, such as "exactly 2.000 times too large
                          everywhere: a factor is lost"; "" when it looks like none known */
} sb_gradcheck_result;

/*
 * Checks f at the n inputs, which are leaves. Those that require a gradient must be of f64; the
 * others, such as ids and masks, are held fixed. True when it passes. False when it does not (the
 * message says where and by how much), and when f cannot be run; *result (which may be NULL)
 * tells. The number of evaluations is twice the number of elements, up to four times where
 * something is wrong.
 */
SB_API bool sb_gradcheck(sb_function f, void *context, sb_tensor *const inputs[], int n,
                         const sb_gradcheck_options *options, sb_gradcheck_result *result);

#endif
