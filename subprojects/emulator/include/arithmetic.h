/*
 * CUDA's arithmetic that C++'s <math.h> lacks. Functions are those of the host, with the largest
 * errors that a device's may have if this is asked for (rounding.cpp).
 */
#ifndef SOFTBACK_EMULATOR_ARITHMETIC_H
#define SOFTBACK_EMULATOR_ARITHMETIC_H

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

namespace emulator
{
/* The exact result of a function of x, or one that is off by up to so many ulps. */
float inexact(float exact, float x, int ulps);
double inexact(double exact, double x, int ulps);

/* A device's tanh and erf stay in -1..1. */
template <class Real> static inline Real bounded(Real y)
{
    return y > 1 ? 1 : y < -1 ? -1 : y;
}

#define EMULATED_FUNCTION(name, Real, function, ulps)                                              \
    static inline Real name(Real x)                                                                \
    {                                                                                              \
        return inexact(function(x), x, ulps);                                                      \
    }
EMULATED_FUNCTION(device_expf, float, expf, 1)
EMULATED_FUNCTION(device_exp, double, exp, 1)
EMULATED_FUNCTION(device_logf, float, logf, 1)
EMULATED_FUNCTION(device_log, double, log, 1)
EMULATED_FUNCTION(device_tanhf, float, tanhf, 2)
EMULATED_FUNCTION(device_tanh, double, tanh, 2)
EMULATED_FUNCTION(device_erff, float, erff, 2)
EMULATED_FUNCTION(device_erf, double, erf, 2)
} // namespace emulator

/* Macros, because glibc declares functions of these names. */
#define expf(x) emulator::device_expf(x)
#define logf(x) emulator::device_logf(x)
#define tanhf(x) emulator::bounded(emulator::device_tanhf(x))
#define erff(x) emulator::bounded(emulator::device_erff(x))
#define exp(x) emulator::device_exp(x)
#define log(x) emulator::device_log(x)
#define tanh(x) emulator::bounded(emulator::device_tanh(x))
#define erf(x) emulator::bounded(emulator::device_erf(x))
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __sincosf(x, s, c) sincosf(x, s, c)

static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1 / sqrt(x);
}
static inline float rsqrt(float x)
{
    return rsqrtf(x);
}
static inline float __fdividef(float x, float y)
{
    return x / y;
}
static inline float __fadd_rn(float x, float y)
{
    return x + y;
}
static inline float __fmul_rn(float x, float y)
{
    return x * y;
}
static inline float __fdiv_rn(float x, float y)
{
    return x / y;
}
static inline float __frcp_rn(float x)
{
    return 1 / x;
}
static inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}
static inline float __frsqrt_rn(float x)
{
    return rsqrtf(x);
}
static inline float __fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}
static inline double __fma_rn(double x, double y, double z)
{
    return fma(x, y, z);
}
static inline double __dadd_rn(double x, double y)
{
    return x + y;
}
static inline double __dmul_rn(double x, double y)
{
    return x * y;
}

/* min and max of two numbers, also of two types; a NaN operand is ignored, as in fmin. */
template <class First, class Second>
static inline std::common_type_t<First, Second> max(First first, Second second)
{
    using Type = std::common_type_t<First, Second>;
    Type a = static_cast<Type>(first), b = static_cast<Type>(second);
    if constexpr (std::is_floating_point_v<Type>)
        return fmax(a, b);
    else
        return a < b ? b : a;
}
template <class First, class Second>
static inline std::common_type_t<First, Second> min(First first, Second second)
{
    using Type = std::common_type_t<First, Second>;
    Type a = static_cast<Type>(first), b = static_cast<Type>(second);
    if constexpr (std::is_floating_point_v<Type>)
        return fmin(a, b);
    else
        return b < a ? b : a;
}

namespace emulator
{
template <class To, class From> static inline To reinterpret_bits(From value)
{
    static_assert(sizeof(To) == sizeof(From), "the same number of bits");
    To result;
    memcpy(&result, &value, sizeof result);
    return result;
}
} // namespace emulator

static inline int __float_as_int(float x)
{
    return emulator::reinterpret_bits<int>(x);
}
static inline unsigned __float_as_uint(float x)
{
    return emulator::reinterpret_bits<unsigned>(x);
}
static inline float __int_as_float(int bits)
{
    return emulator::reinterpret_bits<float>(bits);
}
static inline float __uint_as_float(unsigned bits)
{
    return emulator::reinterpret_bits<float>(bits);
}
static inline long long __double_as_longlong(double x)
{
    return emulator::reinterpret_bits<long long>(x);
}
static inline double __longlong_as_double(long long bits)
{
    return emulator::reinterpret_bits<double>(bits);
}

static inline float __int2float_rn(int x)
{
    return static_cast<float>(x);
}
static inline float __uint2float_rn(unsigned x)
{
    return static_cast<float>(x);
}
/* A device gives the nearest integer that exists, and 0 for a NaN; C++ leaves both undefined. */
static inline int __float2int_rn(float x)
{
    return x != x ? 0
                  : static_cast<int>(fmin(fmax(rint(static_cast<double>(x)), INT_MIN), INT_MAX));
}
static inline int __float2int_rd(float x)
{
    return __float2int_rn(floorf(x));
}

static inline unsigned __umulhi(unsigned x, unsigned y)
{
    return static_cast<unsigned>(static_cast<uint64_t>(x) * y >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz(static_cast<unsigned>(x)) : 32;
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

/* Loads and stores with a hint for the cache. */
template <class Type> static inline Type __ldg(const Type *address)
{
    return *address;
}
template <class Type> static inline Type __ldcs(const Type *address)
{
    return *address;
}
template <class Type> static inline void __stcs(Type *address, Type value)
{
    *address = value;
}

#endif
