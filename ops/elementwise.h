/* The kernels of the elementwise functions. */
#ifndef SOFTBACK_OPS_ELEMENTWISE_H
#define SOFTBACK_OPS_ELEMENTWISE_H

#include "ops/kernel.h"

/*
 * One line for each function: y = f(x), and dx in terms of dy and x or y, whichever is shorter.
 * `factor` is that of scale. Operations, kernels and the formulas of `softback explain` are
 * generated from this table; declarations and documentation are in ops.h.
 */
/* clang-format off */
#define ELEMENTWISE_TABLE(F)                                                         \
    F(NEGATE,    negate,    -x,                -dy)                                  \
    F(SCALE,     scale,     factor * x,        factor * dy)                          \
    F(SQRT,      sqrt,      real_sqrt(x),      dy / (2 * y))                         \
    F(EXP,       exp,       real_exp(x),       dy * y)                               \
    F(LOG,       log,       real_log(x),       dy / x)                               \
    F(TANH,      tanh,      real_tanh(x),      dy * (1 - y * y))                     \
    F(SIGMOID,   sigmoid,   real_sigmoid(x),   dy * y * (1 - y))                     \
    F(RELU,      relu,      real_relu(x),      real_positive(x) ? dy : 0)            \
    F(GELU,      gelu,      real_gelu(x),      dy * real_gelu_slope(x))              \
    F(GELU_TANH, gelu_tanh, real_gelu_tanh(x), dy * real_gelu_tanh_slope(x))         \
    F(SILU,      silu,      real_silu(x),      dy * real_silu_slope(x))
/* clang-format on */

enum elementwise {
#define ENUMERATOR(NAME, name, y, dx) ELEMENTWISE_##NAME,
    ELEMENTWISE_TABLE(ENUMERATOR) ELEMENTWISE_KINDS
#undef ENUMERATOR
};

struct elementwise_kernels {
    /* `factor` is used by scale only. */
    bool (*forward)(enum elementwise kind, double factor, int64_t n, const void *x, void *y);
    /* Writes a fresh dx, else adds to it. */
    bool (*backward)(enum elementwise kind, double factor, bool fresh, int64_t n, const void *x,
                     const void *y, const void *dy, void *dx);
};

extern struct kernel_rows elementwise_rows;

#endif
