/* The kernels of the elementwise functions. */
#ifndef SOFTBACK_OPS_ELEMENTWISE_H
#define SOFTBACK_OPS_ELEMENTWISE_H

#include "ops/kernel.h"

enum elementwise {
    ELEMENTWISE_NEGATE,
    ELEMENTWISE_SCALE,
    ELEMENTWISE_SQRT,
    ELEMENTWISE_EXP,
    ELEMENTWISE_LOG,
    ELEMENTWISE_TANH,
    ELEMENTWISE_SIGMOID,
    ELEMENTWISE_RELU,
    ELEMENTWISE_GELU,
    ELEMENTWISE_GELU_TANH,
    ELEMENTWISE_SILU,
    ELEMENTWISE_KINDS,
};

struct elementwise_kernels {
    /* The factor is scale's. */
    bool (*forward)(enum elementwise kind, double factor, int64_t n, const void *x, void *y);
    /* Writes to a fresh dx, else adds. */
    bool (*backward)(enum elementwise kind, double factor, bool fresh, int64_t n, const void *x,
                     const void *y, const void *dy, void *dx);
};

extern struct kernel_rows elementwise_rows;

#endif
