/*
 * What every page of ops/plain begins with. A page is an operation as loops to
 * be read: its formula, forward and backward, as ops/ops.h states it, element
 * by element and in order. It is the reference that the fast kernels of
 * ops/cpu are tested against, and SOFTBACK_KERNELS=plain computes with it.
 *
 * Each page is compiled once with REAL=float and once with REAL=double. It
 * uses of a real only the operators + - * / and what this header names, so
 * that it can be compiled for dual numbers, which are complex ones: it compares
 * values, and reads no bits.
 */
#ifndef SOFTBACK_OPS_PLAIN_REAL_H
#define SOFTBACK_OPS_PLAIN_REAL_H

#include "tensor/mathematics.h"
#include <stdbool.h>

typedef REAL real;

#define PLAIN_PASTE_(name, row) name##_##row
#define PLAIN_PASTE(name, row) PLAIN_PASTE_(name, row)
/* The row of this dtype: KERNELS(softmax) = {softmax_forward, ...}; */
#define KERNELS(op) const struct op##_kernels PLAIN_PASTE(op, ROW)

/* What is compared: of a dual number, its value. */
static inline double real_value(real x)
{
    return (double)x;
}

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

/* Elementary functions, of the value in float64. */
static inline real real_sqrt(real x)
{
    return (real)sqrt((double)x);
}

static inline real real_exp(real x)
{
    return (real)math_exp((double)x);
}

static inline real real_log(real x)
{
    return (real)math_log((double)x);
}

static inline real real_tanh(real x)
{
    return (real)math_tanh((double)x);
}

/* 1 / (1 + e^-x) */
static inline real real_sigmoid(real x)
{
    return (real)math_sigmoid((double)x);
}

static inline real real_erf(real x)
{
    return (real)math_erf((double)x);
}

/* A gradient that holds nothing yet is 0 before parts are added to it. */
static inline void zero_if_fresh(bool fresh, int64_t n, real *dx)
{
    for (int64_t i = 0; fresh && i < n; i++)
        dx[i] = 0;
}

#endif
