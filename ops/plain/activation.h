/* The table of ops/elementwise.h as functions of one element, for elementwise
   and for linear's activation. */
#ifndef SOFTBACK_OPS_PLAIN_ACTIVATION_H
#define SOFTBACK_OPS_PLAIN_ACTIVATION_H

#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/plain/real.h"

/* The activation as one of the elementwise functions. */
static inline enum elementwise function_of(sb_activation activation)
{
    static const enum elementwise kinds[] = {
        [SB_ACTIVATION_IDENTITY] = ELEMENTWISE_KINDS,
        [SB_ACTIVATION_RELU] = ELEMENTWISE_RELU,
        [SB_ACTIVATION_GELU] = ELEMENTWISE_GELU,
        [SB_ACTIVATION_GELU_TANH] = ELEMENTWISE_GELU_TANH,
        [SB_ACTIVATION_SILU] = ELEMENTWISE_SILU,
        [SB_ACTIVATION_TANH] = ELEMENTWISE_TANH,
        [SB_ACTIVATION_SIGMOID] = ELEMENTWISE_SIGMOID};
    return kinds[activation];
}

/* max(x, 0), where a NaN stays a NaN */
static inline real real_relu(real x)
{
    return real_value(x) <= 0 ? 0 : x;
}

/* Phi(x) = (1 + erf(x / sqrt 2)) / 2, the normal distribution function */
static inline real real_normal(real x)
{
    return (1 + real_erf(x / real_sqrt(2))) / 2;
}

static inline real real_gelu(real x)
{
    return x * real_normal(x);
}

/* Phi(x) + x phi(x), phi(x) = e^(-x^2 / 2) / sqrt(2 pi) */
static inline real real_gelu_slope(real x)
{
    const real two_pi = (real)6.283185307179586477;
    return real_normal(x) + x * real_exp(-x * x / 2) / real_sqrt(two_pi);
}

/* x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3) */
static inline real real_gelu_tanh(real x)
{
    const real a = real_sqrt((real)0.63661977236758134308), b = (real)0.044715;
    return x / 2 * (1 + real_tanh(a * (x + b * x * x * x)));
}

/* (1 + t)/2 + x/2 (1 - t^2) u', t = tanh u, u' = sqrt(2/pi) (1 + 3 b x^2) */
static inline real real_gelu_tanh_slope(real x)
{
    const real a = real_sqrt((real)0.63661977236758134308), b = (real)0.044715;
    const real t = real_tanh(a * (x + b * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * a * (1 + 3 * b * x * x);
}

static inline real real_silu(real x)
{
    return x * real_sigmoid(x);
}

/* s (1 + x (1 - s)), s = sigmoid(x) */
static inline real real_silu_slope(real x)
{
    const real s = real_sigmoid(x);
    return s * (1 + x * (1 - s));
}

/* erf' x = 2 / sqrt(pi) e^(-x^2) */
static inline real real_erf_slope(real x)
{
    return (real)1.1283791670955125739 * real_exp(-x * x);
}

/* y of x */
static inline real elementwise_value(enum elementwise kind, real factor, real x)
{
#define VALUE(NAME, name, y, dx)                                               \
    case ELEMENTWISE_##NAME:                                                   \
        return y;
    switch (kind) {
        ELEMENTWISE_TABLE(VALUE)
    case ELEMENTWISE_KINDS:
        break;
    }
#undef VALUE
    return x;
}

/* dx of dy, by x or y, whichever is shorter */
static inline real elementwise_dx(enum elementwise kind, real factor, real x,
                                  real y, real dy)
{
#define SLOPE(NAME, name, value, dx)                                           \
    case ELEMENTWISE_##NAME:                                                   \
        return dx;
    switch (kind) {
        ELEMENTWISE_TABLE(SLOPE)
    case ELEMENTWISE_KINDS:
        break;
    }
#undef SLOPE
    return dy;
}

#endif
