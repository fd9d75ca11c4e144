/*
 * A small encoder-decoder that learns to reverse eight symbols, with its own softmax, whose
 * backward is given: yours in lesson 4, right and wrong ones in softback explain wrong-gradient.
 */
#ifndef SOFTBACK_TEACH_REVERSE_H
#define SOFTBACK_TEACH_REVERSE_H

#include <stdbool.h>
#include <stdint.h>

enum { REVERSE_LENGTH = 8, REVERSE_SYMBOLS = 16 };

/* Writes ds, the gradient of the scores, for the weights a and their gradient g; n of each. */
typedef void reverse_gradient(int64_t n, const float *a, const float *g, float *ds);

struct reverse_result {
    double first;       /* the loss of the first step */
    double early, last; /* after 100 steps, if there are as many, and at the end: means of 20 */
    double accuracy;    /* share of symbols right, of 256 sequences never trained on */
    double shift;       /* of these, the mean size of the mean of a row's scores */
};

/* False, with a message in sb_error(), when it cannot be run. */
bool reverse_train(reverse_gradient *gradient, uint64_t seed, int steps,
                   struct reverse_result *result);

#endif
