/*
 * The library's own elementary functions of a double, without libm, so that a portable build
 * computes the same bits with every compiler.
 *
 * The inline functions in this header have no branches, so that compilers vectorise loops over them
 * (ops/cpu/mathematics.h). They are correct for signed zeros, subnormal numbers, infinities and
 * NaN. The coefficients of all polynomials are minimax (Remez algorithm in 60 digits, rounded to
 * double). Largest errors seen, in units in the last place, without fused multiply-add: exp 1.0,
 * expm1 1.5, log 0.9, log1p 0.9, sigmoid 2.5, tanh 2.5, erf 1.6, sin and cos 0.8, pow 1.1.
 */
#ifndef SOFTBACK_TENSOR_MATHEMATICS_H
#define SOFTBACK_TENSOR_MATHEMATICS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* sin and cos of x radians, accurate to the last place for every finite x. */
double math_sin(double x);
double math_cos(double x);

/* x to the power y, with the special cases of C's pow. */
double math_pow(double x, double y);

#define MATH_LN2_HIGH 0x1.62e42fefa38p-1 /* 41 bits: times an exponent, it is exact */
#define MATH_LN2_LOW 0x1.ef35793c7673p-45
#define MATH_PER_LN2 0x1.71547652b82fep+0

static inline uint64_t math_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double math_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(r) - 1 - r for |r| <= ln(2) / 2 */
static inline double math_exp_tail(double r)
{
    double q = 0x1.af5e751c3da85p-26 + r * 0x1.1ee88a10b59d3p-29;
    q = 0x1.71ddf87eacb8ep-19 + r * (0x1.27e5362ab0538p-22 + r * q);
    q = 0x1.a01a01afd3e6bp-13 + r * (0x1.a01a017bc728ep-16 + r * q);
    q = 0x1.111111110f6dap-7 + r * (0x1.6c16c16c1f076p-10 + r * q);
    q = 0x1.5555555555559p-3 + r * (0x1.555555555553fp-5 + r * q);
    return r * r * (0.5 + r * q);
}

/*
 * exp(x) = 2^n exp(r), n = round(x / ln 2), r = x - n ln 2. Adding 1.5 2^52 rounds to an integer
 * and leaves it in the low bits, here with twice the exponent's bias. 2^n is applied in two
 * halves, so that the result may be subnormal, and is rounded once.
 */
static inline double math_exp(double x)
{
    const double magic = 0x1.8p52 + 2046;
    x = x > 710 ? 710 : x;
    x = x < -746 ? -746 : x;
    double shifted = x * MATH_PER_LN2 + magic, n = shifted - magic;
    double r = x - n * MATH_LN2_HIGH - n * MATH_LN2_LOW;
    uint64_t both = math_bits(shifted), half = both >> 1;
    double y = 1 + (r + math_exp_tail(r));
    return y * math_from_bits(half << 52) * math_from_bits((both - half) << 52);
}

/* exp(x) - 1 = 2 (2^(n-1) exp(r) - 1/2), summed without cancellation around 0, where n is 0. */
static inline double math_expm1(double x)
{
    const double magic = 0x1.8p52 + 1022;
    double y = x > 710 ? 710 : x;
    y = y < -40 ? -40 : y;
    double shifted = y * MATH_PER_LN2 + magic, n = shifted - magic;
    double r = y - n * MATH_LN2_HIGH - n * MATH_LN2_LOW;
    double half_power = math_from_bits(math_bits(shifted) << 52);
    y = 2 * (half_power * math_exp_tail(r) + (half_power * r + (half_power - 0.5)));
    return fabs(x) < 0x1p-54 ? x : y; /* keeps the sign of zero, and subnormal bits */
}

/*
 * log(2^k u) + correction, for a normal u > 0, where the correction is small: u = 2^j (1 + f) with
 * 1 + f in [sqrt(1/2), sqrt(2)), and log(1 + f) = 2 atanh(s) with s = f / (2 + f), arranged so
 * that the leading f, which is exact, is added last.
 */
static inline double math_log_reduced(double u, double k, double correction)
{
    const uint64_t root_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000;
    uint64_t bits = math_bits(u) + (one - root_half);
    double j = math_from_bits(bits >> 52 | 0x4330000000000000) - (0x1p52 + 1023) + k;
    double f = math_from_bits((bits & 0x000fffffffffffff) + root_half) - 1;
    double s = f / (2 + f), z = s * s, h = 0.5 * f * f;
    double p = 0x1.3b20b4ded7971p-3 + z * (0x1.0f5bf6030ca51p-3 + z * 0x1.0f6a9a5fc41c8p-3);
    p = 0x1.249249242aaf7p-2 + z * (0x1.c71c7259aa315p-3 + z * (0x1.745cddff66ed1p-3 + z * p));
    p = z * (0x1.5555555555555p-1 + z * (0x1.9999999999e06p-2 + z * p));
    return j * MATH_LN2_HIGH - ((h - (s * (h + p) + (j * MATH_LN2_LOW + correction))) - f);
}

static inline double math_log(double x)
{
    double u = x < 0x1p-1022 ? x * 0x1p54 : x;
    double y = math_log_reduced(u, x < 0x1p-1022 ? -54 : 0, 0);
    y = x < INFINITY ? y : x; /* infinity, NaN */
    y = x == 0 ? -INFINITY : y;
    return x < 0 ? NAN : y;
}

/* log(1 + x): u is 1 + x rounded, and the rounding error becomes a correction. */
static inline double math_log1p(double x)
{
    double u = 1 + x;
    double y = math_log_reduced(u, 0, (x - (u - 1)) / u);
    y = x < INFINITY ? y : x;
    y = fabs(x) < 0x1p-54 ? x : y;
    y = x == -1 ? -INFINITY : y;
    return x < -1 ? NAN : y;
}

/* 1 / (1 + exp(-x)), which is exp(x) / (1 + exp(x)): the exponential never overflows. */
static inline double math_sigmoid(double x)
{
    double e = math_exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* tanh|x| = e / (e + 2) with e = exp(2|x|) - 1; it is 1 from |x| = 19.1 on. */
static inline double math_tanh(double x)
{
    double a = fabs(x);
    double e = math_expm1(2 * (a > 20 ? 20 : a));
    return copysign(e / (e + 2), x);
}

/* x + x P(x^2) below 1; 1 - exp(P(x)) above, where exp(P(x)) = erfc(x); 1 from 6 on. */
static inline double math_erf(double x)
{
    double a = fabs(x), z = a * a;
    double p = 0x1.d782f3c8cb1cbp-27 + z * -0x1.acdb0d569ad20p-31;
    p = 0x1.b9827197487dep-20 + z * (-0x1.5c16a7e93f8b5p-23 + z * p);
    p = 0x1.f9a2bf646b3d0p-14 + z * (-0x1.f4ca93a67c775p-17 + z * p);
    p = 0x1.565bccfa96547p-8 + z * (-0x1.c02db07250c72p-11 + z * p);
    p = 0x1.ce2f21a041010p-4 + z * (-0x1.b82ce312060bcp-6 + z * p);
    p = 0x1.06eba8214db68p-3 + z * (-0x1.812746b0379c2p-2 + z * p);
    double near = a + a * p;
    double t = a > 6 ? 6 : a;
    p = -0x1.a5e225b8f8c83p-35 + t * 0x1.277542eeca28ep-40;
    p = -0x1.d4399e0205bffp-27 + t * (0x1.19f41535c150bp-30 + t * p);
    p = -0x1.c8a8a8f617bd9p-21 + t * (0x1.0df4df3cf1770p-23 + t * p);
    p = -0x1.15102d1b655a2p-16 + t * (0x1.22637de980ae3p-18 + t * p);
    p = -0x1.27260005f65a3p-14 + t * (0x1.79cf09cb9a67dp-15 + t * p);
    p = 0x1.5027e5d6aa5bep-11 + t * (-0x1.77f66fbfbf543p-15 + t * p);
    p = 0x1.261b3dcdd05b5p-12 + t * (-0x1.cfbb2041751b3p-10 + t * p);
    p = -0x1.a4da4e40f6160p-4 + t * (0x1.38939afb38272p-6 + t * p);
    p = -0x1.20dd562fb0c53p+0 + t * (-0x1.45f42b4e70848p-1 + t * p);
    double far = 1 - math_exp(-0x1.81aeea22b4b81p-23 + t * p);
    return copysign(a < 1 ? near : far, x);
}

#endif
