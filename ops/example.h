/*
 * Examples of an operation: shapes on which the tests, the gradient check and the program run it.
 *
 * Each ops/<op>.c ends with one OPERATION(op, ...) that lists them. Shapes are written as text,
 * one tensor after the other:
 *     "3x5 5"       a (3, 5) and a (5), values in (-2, 2), gradients wanted
 *     "."           a scalar
 *     "+3x5"        positive values, in (0.5, 2.5)
 *     "=3x5"        requires no gradient
 *     "i7:2x3"      ids in 0..6 (i32)
 *     "b:4x4"       booleans, about three in four true
 *     "c3:2x5"      all values equal to 3, such as a row without variance
 */
#ifndef SOFTBACK_OPS_EXAMPLE_H
#define SOFTBACK_OPS_EXAMPLE_H

#include "ops/kernel.h"

enum { EXAMPLE_INPUTS = 8, EXAMPLE_SHAPES = 24 };

struct example {
    const char *name; /* the public operation, without sb_ */
    sb_tensor *(*run)(void *unused, sb_tensor *const x[]);
    const char *shapes[EXAMPLE_SHAPES];
};

/* A function for an example: EXAMPLE(example_split, sb_split(...)) computes it from x[0], x[1], ...
 */
#define EXAMPLE(name, ...)                                                                         \
    static sb_tensor *name(void *unused, sb_tensor *const x[])                                     \
    {                                                                                              \
        (void)unused;                                                                              \
        return __VA_ARGS__;                                                                        \
    }

struct operation {
    const char *name;               /* the file: "softmax" for ops/softmax.c */
    const struct kernel_rows *rows; /* NULL for an operation without kernels of its own */
    const struct example *examples;
    int count;
};

#define OPERATION_(op, rows_pointer, ...)                                                          \
    static const struct example examples[] = {__VA_ARGS__};                                        \
    const struct operation op##_operation = {#op, rows_pointer, examples,                          \
                                             (int)(sizeof examples / sizeof examples[0])}
#define OPERATION(op, ...) OPERATION_(op, &op##_rows, __VA_ARGS__)
#define OPERATION_WITHOUT_KERNELS(op, ...) OPERATION_(op, NULL, __VA_ARGS__)

/* All operations, in the order of ops/meson.build's list; NULL when i is past the end. */
const struct operation *operation_at(int i);
/* The examples of all operations, in the same order; NULL when i is past the end. */
const struct example *example_at(int i);

/*
 * Makes the inputs that `shapes` describes, the real ones in `dtype`, with values that the seed
 * determines. The caller releases them. Returns their number, or -1 on failure, when there is
 * nothing to release.
 */
int example_inputs(const char *shapes, sb_dtype dtype, uint64_t seed, sb_tensor *x[EXAMPLE_INPUTS]);

#endif
