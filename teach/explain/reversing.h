/* A small encoder-decoder that learns to reverse, with a softmax whose gradient may be wrong. */
#ifndef SOFTBACK_TEACH_EXPLAIN_REVERSING_H
#define SOFTBACK_TEACH_EXPLAIN_REVERSING_H

#include "teach/explain/wrong_softmax.h"

enum { REVERSING_LENGTH = 10, REVERSING_SYMBOLS = 16 };

struct reversed {
    double loss_first, loss_100, loss_last; /* loss_100 is the last one's, if there are fewer */
    double right;                           /* the share of right symbols in fresh pairs */
};

/* Trains from the seed, in float64, so that the losses are nearly the same on every machine. */
bool reversing_train(enum wrong wrong, uint64_t seed, int64_t steps, struct reversed *result);

#endif
