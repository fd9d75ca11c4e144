/*
 * The activations as formulas, for elementwise and for linear's fused activation: the value at z
 * and the slope, its derivative at z.
 */
#ifndef SOFTBACK_OPS_CPU_ACTIVATION_H
#define SOFTBACK_OPS_CPU_ACTIVATION_H

#include "ops/cpu/mathematics.h"
#include "ops/cpu/real.h"

/* max(z, 0); NaN stays NaN. */
static inline real real_relu(real z)
{
    return z <= 0 ? 0 : z;
}

static inline bool real_positive(real x)
{
    return x > 0;
}

/* -1, 0 or 1 */
static inline real real_sign(real x)
{
    return (real)((x > 0) - (x < 0));
}

static inline bool real_below(real a, real b)
{
    return a < b;
}

static inline real real_sin(real x)
{
    return (real)math_sin((double)x);
}

static inline real real_cos(real x)
{
    return (real)math_cos((double)x);
}

/* d erf / dz = 2 / sqrt(pi) e^(-z^2) */
static inline real real_erf_slope(real z)
{
    return (real)1.12837916709551257390 * real_exp(-z * z);
}

static inline real real_pow(real x, real p)
{
    return (real)math_pow((double)x, (double)p);
}

/* d z^p / dz = p z^(p - 1), and 0 for p = 0 */
static inline real real_pow_slope(real z, real p)
{
    return p == 0 ? 0 : p * (real)math_pow((double)z, (double)p - 1);
}

/* Phi(z) = (1 + erf(z / sqrt 2)) / 2, the normal distribution function. */
static inline real real_normal(real z)
{
    const real root_half = (real)0.70710678118654752440; /* sqrt(1/2) */
    return (real)0.5 * (1 + real_erf(z * root_half));
}

/* gelu = z Phi(z) */
static inline real real_gelu(real z)
{
    return z * real_normal(z);
}

/* d gelu / dz = Phi(z) + z phi(z), phi(z) = e^(-z^2 / 2) / sqrt(2 pi) */
static inline real real_gelu_slope(real z)
{
    const real peak = (real)0.39894228040143267794; /* 1 / sqrt(2 pi) */
    return real_normal(z) + z * peak * real_exp((real)-0.5 * z * z);
}

/* gelu_tanh = z/2 (1 + tanh u), u = sqrt(2/pi) (z + 0.044715 z^3) */
static inline real real_gelu_tanh(real z)
{
    const real a = (real)0.79788456080286535588, b = (real)0.044715; /* a = sqrt(2/pi) */
    return (real)0.5 * z * (1 + real_tanh(a * (z + b * z * z * z)));
}

/* d gelu_tanh / dz = (1 + t)/2 + z/2 (1 - t^2) u', t = tanh u, u' = sqrt(2/pi) (1 + 3 b z^2) */
static inline real real_gelu_tanh_slope(real z)
{
    const real a = (real)0.79788456080286535588, b = (real)0.044715;
    real t = real_tanh(a * (z + b * z * z * z));
    return (real)0.5 * ((1 + t) + z * (1 - t * t) * a * (1 + 3 * b * z * z));
}

/* silu = z s(z) */
static inline real real_silu(real z)
{
    return z * real_sigmoid(z);
}

/* d silu / dz = s (1 + z (1 - s)) */
static inline real real_silu_slope(real z)
{
    real s = real_sigmoid(z);
    return s * (1 + z * (1 - s));
}

#endif
