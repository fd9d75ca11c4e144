/*
 * A softmax with one right and three wrong backwards, as an operation defined outside the library,
 * which itself has no wrong gradient.
 */
#ifndef SOFTBACK_TEACH_EXPLAIN_WRONG_SOFTMAX_H
#define SOFTBACK_TEACH_EXPLAIN_WRONG_SOFTMAX_H

#include "tensor/tensor.h"

enum wrong {
    WRONG_NONE,     /* ds = a (g - avg) */
    WRONG_DIAGONAL, /* ds = a (1 - a) g: by the diagonal of the Jacobian alone */
    WRONG_CENTRED,  /* the same, less its mean over the row */
    WRONG_ZERO,     /* ds = 0: queries and keys learn nothing */
    WRONGS,
};

/* "a(g - avg)" */
const char *wrong_name(enum wrong wrong);

/* Softmax over the last axis, in float64; a score of -inf is blocked and gets no gradient. */
sb_tensor *wrong_softmax(sb_tensor *x, enum wrong wrong);

#endif
