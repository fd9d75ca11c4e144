/* Runs the examples that each operation lists (ops/example.h), forward and backward. */
#ifndef SOFTBACK_TESTS_SUPPORT_EXAMPLES_H
#define SOFTBACK_TESTS_SUPPORT_EXAMPLES_H

#include "ops/example.h"
#include "tests/support/test.h"

typedef void example_check(const struct example *e, const char *shapes);

void for_each_example(example_check *check);
/* Only the first shapes of each example: for properties that do not depend on the shape. */
void for_each_example_once(example_check *check);
/* Operations on rows, with rows of this length; without attention above 1030. */
void for_each_long_example(int length, example_check *check);

struct inputs {
    int n;
    sb_tensor *x[EXAMPLE_INPUTS];
};

struct inputs inputs_new(const char *shapes, sb_dtype dtype, uint64_t seed);
struct inputs inputs_widened(const struct inputs *from); /* the same values in f64 */

/* The elements of the result, then of each input's gradient. */
struct results {
    bool ok, real;
    int parts;
    int64_t size[1 + EXAMPLE_INPUTS];
    double *value[1 + EXAMPLE_INPUTS];
};

/* The random stream of the operations; example_begin opens a tape and rewinds the stream. */
extern sb_random example_stream;
void example_begin(sb_tape *tape, sb_mode mode);

/* Runs an example forward, then backward from dy = 3/8, 4/8, ... 12/8, 3/8, ... */
struct results example_run(const struct example *e, const struct inputs *in, sb_mode mode);
struct results example_must_run(const struct example *e, const char *shapes,
                                const struct inputs *in);

/* Expects gradients that agree with exact derivatives and with differences, in float64: those of
   these inputs, or an example_check. */
void example_expect_gradients(const struct example *e, const char *shapes, const struct inputs *in);
void example_gradients_agree(const struct example *e, const char *shapes);

bool results_same_bits(const struct results *a, const struct results *b);
/*
 * The worst max|a - b| / max|b| of the parts. A gradient that is small compared with dy is a sum of
 * terms that cancel, with their rounding errors: so max|b| counts as at least 1, the size of dy.
 */
double results_relative(const struct results *a, const struct results *b);

#endif
