/*
 * What every page of ops/plain begins with. A page is an operation as loops to
 * be read: its formula, forward and backward, as ops/ops.h states it, element
 * by element and in order. It is the reference that the fast kernels of
 * ops/cpu are tested against, and SOFTBACK_KERNELS=plain computes with it.
 *
 * Each page is compiled for REAL=float, for REAL=double, and for dual numbers:
 * a value and a derivative, stored as a complex number (tensor/dual.h). So a
 * page uses only the operators + - * / and the functions below for reals: it
 * compares values, and reads no bits.
 */
#ifndef SOFTBACK_OPS_PLAIN_REAL_H
#define SOFTBACK_OPS_PLAIN_REAL_H

#include "tensor/dual.h"
#include "tensor/mathematics.h"
#include <stdbool.h>

typedef REAL real;

#define PLAIN_PASTE_(name, row) name##_##row
#define PLAIN_PASTE(name, row) PLAIN_PASTE_(name, row)
/* KERNELS(softmax) = {softmax_forward, ...}; defines the table of functions for
   this dtype, whose suffix is ROW. */
#define KERNELS(op) const struct op##_kernels PLAIN_PASTE(op, ROW)

/* What is compared: of a dual number, its value. */
static inline double real_value(real x)
{
#ifdef REAL_IS_DUAL
    return sb_dual_value(x);
#else
    return (double)x;
#endif
}

/* f(x) of an elementary function: f and its slope f' at the value of x, in
   float64. Only dual numbers need the slope. */
#ifdef REAL_IS_DUAL
#define REAL_APPLY(x, f, slope) sb_dual_apply(x, f, slope)
#else
#define REAL_APPLY(x, f, slope) (real)(f)
#endif

/* The larger one; a, where b is NaN. */
static inline real real_max(real a, real b)
{
    return real_value(b) > real_value(a) ? b : a;
}

static inline bool real_positive(real x)
{
    return real_value(x) > 0;
}

static inline real real_abs(real x)
{
    return real_value(x) < 0 ? -x : x;
}

static inline real real_sqrt(real x)
{
    const double y = sqrt(real_value(x));
    return REAL_APPLY(x, y, 1 / (2 * y));
}

static inline real real_exp(real x)
{
    const double y = math_exp(real_value(x));
    return REAL_APPLY(x, y, y);
}

static inline real real_log(real x)
{
    return REAL_APPLY(x, math_log(real_value(x)), 1 / real_value(x));
}

/* tanh' x = 1 / cosh^2 x = 4 e^-2|x| / (1 + e^-2|x|)^2, without cancellation */
static inline real real_tanh(real x)
{
    const double value = real_value(x), e = math_exp(-2 * fabs(value));
    (void)e;
    return REAL_APPLY(x, math_tanh(value), 4 * e / ((1 + e) * (1 + e)));
}

/* 1 / (1 + e^-x), whose slope is sigmoid(x) sigmoid(-x) */
static inline real real_sigmoid(real x)
{
    const double y = math_sigmoid(real_value(x));
    return REAL_APPLY(x, y, y * math_sigmoid(-real_value(x)));
}

/* erf' x = 2 / sqrt(pi) e^(-x^2) */
static inline real real_erf(real x)
{
    const double value = real_value(x), two_over_root_pi = 1.1283791670955126;
    (void)two_over_root_pi;
    return REAL_APPLY(x, math_erf(value),
                      two_over_root_pi * math_exp(-value * value));
}

/* -1, 0 or 1 */
static inline real real_sign(real x)
{
    return (real)((real_value(x) > 0) - (real_value(x) < 0));
}

static inline bool real_below(real a, real b)
{
    return real_value(a) < real_value(b);
}

static inline bool real_is_nan(real x)
{
    return real_value(x) != real_value(x);
}

static inline real real_sin(real x)
{
    return REAL_APPLY(x, math_sin(real_value(x)), math_cos(real_value(x)));
}

static inline real real_cos(real x)
{
    return REAL_APPLY(x, math_cos(real_value(x)), -math_sin(real_value(x)));
}

static inline real real_expm1(real x)
{
    return REAL_APPLY(x, math_expm1(real_value(x)), math_exp(real_value(x)));
}

static inline real real_log1p(real x)
{
    return REAL_APPLY(x, math_log1p(real_value(x)), 1 / (1 + real_value(x)));
}

/* x^p for a constant p; (x^p)' = p x^(p - 1), and 0 for p = 0 */
static inline double power_slope(double x, double p)
{
    return p == 0 ? 0 : p * math_pow(x, p - 1);
}

static inline real real_pow(real x, real p)
{
    const double value = real_value(x), exponent = real_value(p);
    return REAL_APPLY(x, math_pow(value, exponent),
                      power_slope(value, exponent));
}

static inline real real_pow_slope(real x, real p)
{
    const double value = real_value(x), q = real_value(p) - 1;
    (void)q;
    return REAL_APPLY(x, power_slope(value, q + 1),
                      (q + 1) * power_slope(value, q));
}

/* Every backward adds to its gradients. A fresh one has undefined contents, so
   it becomes 0 first. */
static inline void zero_if_fresh(bool fresh, int64_t n, real *dx)
{
    for (int64_t i = 0; fresh && i < n; i++)
        dx[i] = 0;
}

#endif
