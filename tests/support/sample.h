/* Operations for the tests of the tape, so that these need none of the library's operations. */
#ifndef SOFTBACK_TESTS_SUPPORT_SAMPLE_H
#define SOFTBACK_TESTS_SUPPORT_SAMPLE_H

#include "autograd/node.h"
#include "tests/support/test.h"

/* y = a b, elementwise */
sb_tensor *times(sb_tensor *a, sb_tensor *b);

/* y = the sum of x, a scalar */
sb_tensor *total(sb_tensor *x);

/* y = x, with a backward that fails in one of these ways once it has added to dx. */
enum fault { NO_FAULT, RETURNS_FALSE, EXPLAINS, FAILS_SILENTLY, LEAVES_A_TAPE_OPEN };
sb_tensor *pass(sb_tensor *x, enum fault fault);

/* The bytes in use whenever a backward of `total` or `pass` runs, and how many have run. */
extern _Thread_local int64_t live_at[16];
extern _Thread_local int backwards;

/* A leaf (2) of f64 with both elements equal to the value, which requires a gradient. */
sb_tensor *leaf(double value);

/* Whether t is there and all its elements are equal to the value. */
bool every(const sb_tensor *t, double value);

#endif
