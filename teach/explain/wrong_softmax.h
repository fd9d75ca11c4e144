/*
 * A softmax with one right and three wrong backwards, as an operation defined outside the library,
 * which itself has no wrong gradient.
 */
#ifndef SOFTBACK_TEACH_EXPLAIN_WRONG_SOFTMAX_H
#define SOFTBACK_TEACH_EXPLAIN_WRONG_SOFTMAX_H

#include "teach/lessons/reverse.h"
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

/* Softmax over the last axis, in float64. */
sb_tensor *wrong_softmax(sb_tensor *x, enum wrong wrong);

/* The same gradients in float, for the model of lesson 4. */
extern reverse_gradient *const wrong_gradients[WRONGS];

#endif
