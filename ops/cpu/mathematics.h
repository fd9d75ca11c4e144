/*
 * Elementary functions for the loops of kernels: without branches, so that a plain loop over
 * elements becomes vector code. double uses the definitions of tensor/mathematics.h; this header
 * adds those of float, by the same methods.
 *
 * Zeros (with their sign), infinities, NaN and overflow are right. Largest errors over all floats,
 * in units in the last place: exp 1.2, expm1 1.4, log 0.9, log1p 0.9, sigmoid 2.5, tanh 2.7,
 * erf 1.6.
 *
 * In float, exp gives 0 for x < -86.9, a little before its result (2e-38) would become subnormal,
 * and so does sigmoid: arithmetic on subnormal numbers is slow on many processors, and the sum of a
 * softmax, which contains a 1, cannot see them. Double results become subnormal gradually.
 */
#ifndef SOFTBACK_OPS_CPU_MATHEMATICS_H
#define SOFTBACK_OPS_CPU_MATHEMATICS_H

#include "ops/cpu/real.h"
#include "tensor/mathematics.h"

#if REAL_IS_FLOAT

#define FLOAT_LN2_HIGH 0x1.62e4p-1f /* 14 bits: times an exponent, it is exact */
#define FLOAT_LN2_LOW 0x1.7f7d1cp-20f
#define FLOAT_PER_LN2 0x1.715476p+0f

static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(r) - 1 - r for |r| <= ln(2) / 2 */
static inline float float_exp_tail(float r)
{
    float q = 0x1.122776p-7f + r * 0x1.6bec06p-10f;
    q = 0x1.5554bp-3f + r * (0x1.555674p-5f + r * q);
    return r * r * (0x1.fffffep-2f + r * q);
}

/* exp(x) = 2 (2^(n-1) exp(r)), where n - 1 rather than n keeps the power of two finite; adding
   1.5 2^23 rounds to an integer and leaves it in the low bits, here with the exponent's bias. */
static inline real real_exp(real x)
{
    const float magic = 0x1.8p23f + 126;
    float y = x > 89 ? 89 : x;
    float shifted = y * FLOAT_PER_LN2 + magic, n = shifted - magic;
    float r = y - n * FLOAT_LN2_HIGH - n * FLOAT_LN2_LOW;
    float half_power = float_from_bits(float_bits(shifted) << 23);
    y = 2 * (half_power + half_power * (r + float_exp_tail(r)));
    return x < -86.9f ? 0 : y;
}

/* exp(x) - 1 = 2 (2^(n-1) exp(r) - 1/2), summed so that nothing is lost around 0, where n is 0. */
static inline real real_expm1(real x)
{
    const float magic = 0x1.8p23f + 126;
    float y = x > 89 ? 89 : x;
    y = y < -18 ? -18 : y;
    float shifted = y * FLOAT_PER_LN2 + magic, n = shifted - magic;
    float r = y - n * FLOAT_LN2_HIGH - n * FLOAT_LN2_LOW;
    float half_power = float_from_bits(float_bits(shifted) << 23);
    y = 2 * (half_power * float_exp_tail(r) + (half_power * r + (half_power - 0.5f)));
    return real_abs(x) < 0x1p-25f ? x : y;
}

/*
 * log(2^k u) + correction, for a normal u > 0, where the correction is small: u = 2^j (1 + f) with
 * 1 + f in [sqrt(1/2), sqrt(2)), and log(1 + f) = f - f^2 / 2 + f^3 P(f).
 */
static inline float float_log_reduced(float u, float k, float correction)
{
    const uint32_t root_half = 0x3f3504f3, one = 0x3f800000;
    uint32_t bits = float_bits(u) + (one - root_half);
    float j = (float)((int32_t)(bits >> 23) - 127) + k;
    float f = float_from_bits((bits & 0x007fffff) + root_half) - 1, h = 0.5f * f * f;
    float p = 0x1.e70714p-4f + f * (-0x1.de660cp-4f + f * 0x1.14573cp-4f);
    p = -0x1.555c5cp-3f + f * (0x1.2335bp-3f + f * (-0x1.fc1d46p-4f + f * p));
    p = 0x1.555548p-2f + f * (-0x1.000006p-2f + f * (0x1.99a4cap-3f + f * p));
    float low = j * FLOAT_LN2_LOW + correction + f * f * f * p;
    return j * FLOAT_LN2_HIGH + (f - (h - low));
}

static inline real real_log(real x)
{
    float u = x < 0x1p-126f ? x * 0x1p24f : x;
    float y = float_log_reduced(u, x < 0x1p-126f ? -24 : 0, 0);
    y = x < INFINITY ? y : x;
    y = x == 0 ? -INFINITY : y;
    return x < 0 ? NAN : y;
}

/* log(1 + x): u is 1 + x rounded, and what rounding took away comes back as a correction. */
static inline real real_log1p(real x)
{
    float u = 1 + x;
    float y = float_log_reduced(u, 0, (x - (u - 1)) / u);
    y = x < INFINITY ? y : x;
    y = real_abs(x) < 0x1p-25f ? x : y;
    y = x == -1 ? -INFINITY : y;
    return x < -1 ? NAN : y;
}

/* x + x P(x^2) below 1; 1 - exp(P(x)) above, where exp(P(x)) = erfc(x); 1 from 4 on. */
static inline real real_erf(real x)
{
    float a = real_abs(x), z = a * a;
    float p = 0x1.5419cep-8f + z * (-0x1.a484b8p-11f + z * 0x1.4ae14ep-14f);
    p = -0x1.81273ep-2f + z * (0x1.ce2d2p-4f + z * (-0x1.b7fbbp-6f + z * p));
    float near = a + a * (0x1.06eba8p-3f + z * p);
    float t = a > 4 ? 4 : a;
    p = 0x1.65cb7ap-6f + t * (-0x1.825afep-9f + t * 0x1.86dd8ep-13f);
    p = -0x1.2088eap+0f + t * (-0x1.46baecp-1f + t * (-0x1.a65344p-4f + t * p));
    float far = 1 - real_exp(-0x1.661cf4p-12f + t * p);
    return copysignf(a < 1 ? near : far, x);
}

#else

#define real_exp math_exp
#define real_expm1 math_expm1
#define real_log math_log
#define real_log1p math_log1p
#define real_erf math_erf

#endif

/* 1 / (1 + exp(-x)), which is exp(x) / (1 + exp(x)): the exponential never overflows. */
static inline real real_sigmoid(real x)
{
    real e = real_exp(-real_abs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* tanh|x| = e / (e + 2) with e = exp(2|x|) - 1; it is 1 from |x| = 9.1 on, in double from 19.1. */
static inline real real_tanh(real x)
{
    real a = real_abs(x), limit = REAL_IS_FLOAT ? 10 : 20;
    real e = real_expm1(2 * (a > limit ? limit : a)), y = e / (e + 2);
    return x < 0 ? -y : y;
}

#endif
