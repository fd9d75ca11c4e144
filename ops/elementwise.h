/* The kernels of the elementwise functions. */
#ifndef SOFTBACK_OPS_ELEMENTWISE_H
#define SOFTBACK_OPS_ELEMENTWISE_H

#include "ops/kernel.h"

/*
 * One line for each function: y = f(x), and dx in terms of dy and x or y, whichever is shorter.
 * `factor` is that of scale, the exponent of pow, and the bound of clamp_low and clamp_high, of
 * which clamp is made. Operations, kernels and the formulas of `softback explain` are generated
 * from this table; declarations and documentation are in ops.h.
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
    F(SILU,      silu,      real_silu(x),      dy * real_silu_slope(x))              \
    F(ABS,       abs,       real_abs(x),       dy * real_sign(x))                    \
    F(SIN,       sin,       real_sin(x),       dy * real_cos(x))                     \
    F(COS,       cos,       real_cos(x),       -dy * real_sin(x))                    \
    F(EXPM1,     expm1,     real_expm1(x),     dy * (y + 1))                         \
    F(LOG1P,     log1p,     real_log1p(x),     dy / (1 + x))                         \
    F(ERF,       erf,       real_erf(x),       dy * real_erf_slope(x))               \
    F(POW,       pow,       real_pow(x, factor),   dy * real_pow_slope(x, factor))   \
    F(CLAMP_LOW,  clamp_low,  real_below(x, factor) ? factor : x,                    \
      real_below(x, factor) ? 0 : dy)                                                \
    F(CLAMP_HIGH, clamp_high, real_below(factor, x) ? factor : x,                    \
      real_below(factor, x) ? 0 : dy)
/* clang-format on */

enum elementwise {
#define ENUMERATOR(NAME, name, y, dx) ELEMENTWISE_##NAME,
    ELEMENTWISE_TABLE(ENUMERATOR) ELEMENTWISE_KINDS
#undef ENUMERATOR
};

struct elementwise_kernels {
    bool (*forward)(enum elementwise kind, double factor, int64_t n, const void *x, void *y);
    /* Writes a fresh dx, else adds to it. */
    bool (*backward)(enum elementwise kind, double factor, bool fresh, int64_t n, const void *x,
                     const void *y, const void *dy, void *dx);
};

extern struct kernel_rows elementwise_rows;

#endif
