/*
 * The gradient check: compares backward with exact derivatives, or with central differences, in
 * float64.
 *
 * The output y of f is reduced to a scalar, sum_i w_i y_i with fixed weights w in (0.25, 1.25), so
 * that every element counts and no two cancel by symmetry.
 *
 * Exact (SB_GRADCHECK_EXACT): dual numbers (derivative.h) give the derivative J v of that scalar
 * along a direction v without any difference that could cancel. For a few random directions the
 * product <gradient, v> must be J v: one run of f checks all elements together. The error is
 * |<gradient, v> - J v|, relative to the largest sum of |gradient tangent| over the outputs of one
 * operation, which says how large the numbers are that round on the way. Only when it exceeds the
 * tolerance, the elements are compared one by one, so as to name input, index and mistake. This is
 * the method wherever all operations compute dual numbers: all of the library do on the CPU, and a
 * user's own if its sb_operation says so.
 *
 * Differences (SB_GRADCHECK_DIFFERENCES): for each element of each input that requires a gradient,
 * the result of backward is compared with (f(x + h) - f(x - h)) / 2h. The error of an input is
 *
 *     max |backward - difference| / max(max |difference|, max |backward|)
 *
 * after subtracting a bound for the rounding of f: 4 ulp of every element of y that differs between
 * the two evaluations, and of the largest element, divided by 2h. This bound scales with y, so the
 * check works for tiny values too. If the error exceeds the tolerance, the difference is first
 * refined by Richardson extrapolation, (4 D(h/2) - D(h)) / 3, so that strong curvature is not
 * reported as a mistake.
 *
 * A NaN anywhere fails; a missing gradient counts as zero. Backward also runs with existing
 * gradients, to which it must add. The check restores the gradients and the values of the inputs to
 * the bit, and rewinds the random stream for each evaluation and at the end. Other leaves that f
 * reads get gradients as from any backward.
 */
#ifndef SOFTBACK_AUTOGRAD_GRADCHECK_H
#define SOFTBACK_AUTOGRAD_GRADCHECK_H

#include "tape.h"

typedef enum {
    SB_GRADCHECK_AUTOMATIC, /* exact where that is possible, else differences */
    SB_GRADCHECK_EXACT,     /* fails where an operation has no dual numbers */
    SB_GRADCHECK_DIFFERENCES,
} sb_gradcheck_method;

typedef struct {
    double step;       /* of differences: h, relative to max(1, |x|); 0: 1e-5 */
    double tolerance;  /* the largest error that passes; 0: 1e-12 exact, 1e-6 for differences */
    sb_random *random; /* stream of f's dropout; NULL: the open tape's, if any */
    sb_gradcheck_method method;
    int directions;    /* of the exact method, for each group of inputs; 0: 4 */
    bool second_order; /* also checks Hessian-vector products, which needs an exact method: */
                       /* <u, H v> = <v, H u> to 1e-11, H v = differences of gradients to 1e-6 */
} sb_gradcheck_options;

typedef struct {
    bool ok;
    sb_gradcheck_method method; /* the one used: exact or differences */
    double error;               /* the largest of all inputs; NaN if a gradient is NaN or f fails */
    int input;         /* where it is: the input (-1 if f fails, or if an exact check passes), */
    int64_t index;     /*     and its row-major index */
    double backward;   /* the gradient from backward there */
    double difference; /* the derivative there: exact, or a difference */
    double step;       /* of differences: the h used there */
    double symmetry;   /* of second order: |<u, H v> - <v, H u>|, relative */
    double curvature;  /* of second order: the error of H v against differences of gradients */
    char mistake[160]; /* the probable mistake, such as "exactly 2.000 times too large everywhere: a
                          factor is lost"; "" if unknown */
} sb_gradcheck_result;

/*
 * Checks f at the n inputs, which must be leaves. Inputs that require a gradient must be f64; the
 * others, such as ids and masks, stay constant. Returns true if the check passes. Returns false if
 * it does not, or if f fails: the message says where and by how much, and *result has the numbers
 * (result may be NULL). The exact method runs f about seven times for each group of inputs with
 * gradients of similar size; differences need two runs for each element, up to four in case of
 * mistakes.
 */
SB_API bool sb_gradcheck(sb_function f, void *context, sb_tensor *const inputs[], int n,
                         const sb_gradcheck_options *options, sb_gradcheck_result *result);

#endif
