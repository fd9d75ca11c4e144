/*
 * Dual numbers: a value and a tangent, its derivative along one direction. They are complex numbers
 * value + i step tangent with a step so small that its square vanishes. So C's own operators + - *
 * / compute the value as float64 does, and the tangent by the rules of differentiation, without any
 * difference that could cancel: the complex step (Squire and Trapp 1998; Martins, Sturdza and
 * Alonso 2003).
 *
 * A loop over sb_dual must not use C's complex functions, absolute values or conjugates. It
 * compares values, and applies a function f(x) as sb_dual_apply(x, f(value), f'(value)). Tangents
 * are exact up to about 2^60; the tangent of an infinite value may be NaN.
 */
#ifndef SOFTBACK_TENSOR_DUAL_H
#define SOFTBACK_TENSOR_DUAL_H

#ifndef __cplusplus

typedef double _Complex sb_dual;

#define SB_DUAL_STEP 0x1p-600

static inline double sb_dual_value(sb_dual x)
{
    return ((const double *)&x)[0];
}

static inline double sb_dual_tangent(sb_dual x)
{
    return ((const double *)&x)[1] / SB_DUAL_STEP;
}

static inline sb_dual sb_dual_make(double value, double tangent)
{
    const union {
        double part[2];
        sb_dual number;
    } x = {{value, tangent * SB_DUAL_STEP}};
    return x.number;
}

/* f(x), from f and f' at x's value. A constant x gives a constant, also where f' is infinite. */
static inline sb_dual sb_dual_apply(sb_dual x, double f, double slope)
{
    const double tangent = sb_dual_tangent(x);
    return sb_dual_make(f, tangent == 0 ? 0 : tangent * slope);
}

#endif
#endif
