/*
 * bfloat16: the upper half of a float. Arithmetic is float's, rounded to the nearest even, as on a
 * device.
 */
#ifndef SOFTBACK_EMULATOR_CUDA_BF16_H
#define SOFTBACK_EMULATOR_CUDA_BF16_H

#include <cuda_runtime.h>

struct __nv_bfloat16 {
    unsigned short bits;

    __nv_bfloat16() = default;
    __nv_bfloat16(float value) : bits(rounded(value))
    {
    }
    __nv_bfloat16(double value) : bits(rounded(rounded_to_odd(value)))
    {
    }
    template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
    __nv_bfloat16(Integer value) : __nv_bfloat16(static_cast<double>(value))
    {
    }
    operator float() const
    {
        return __uint_as_float(static_cast<unsigned>(bits) << 16);
    }

    /* Adds just under half of the last place that stays, and one more if that place is odd. */
    static unsigned short rounded(float value)
    {
        unsigned word = __float_as_uint(value);
        if ((word & 0x7fffffffu) > 0x7f800000u)
            return 0x7fff; /* the only NaN that a device returns */
        return static_cast<unsigned short>((word + 0x7fffu + (word >> 16 & 1)) >> 16);
    }
    /* Round to odd: rounds towards zero and sets the last bit if the result is inexact. Rounding
       that again to fewer bits gives the same as rounding the double once (Boldo and Melquiond
       2008). */
    static float rounded_to_odd(double value)
    {
        float near = static_cast<float>(value);
        if (static_cast<double>(near) == value || value != value || isinf(near))
            return near;
        unsigned word = __float_as_uint(near);
        if (fabs(static_cast<double>(near)) > fabs(value))
            word--;
        return __uint_as_float(word | 1);
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high)
    {
    }
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define EMULATOR_BF16_OPERATOR(sign)                                                               \
    static inline __nv_bfloat16 operator sign(__nv_bfloat16 a, __nv_bfloat16 b)                    \
    {                                                                                              \
        return static_cast<float>(a) sign static_cast<float>(b);                                   \
    }                                                                                              \
    static inline __nv_bfloat16 &operator sign##=(__nv_bfloat16 &a, __nv_bfloat16 b)               \
    {                                                                                              \
        return a = a sign b;                                                                       \
    }
EMULATOR_BF16_OPERATOR(+)
EMULATOR_BF16_OPERATOR(-)
EMULATOR_BF16_OPERATOR(*)
EMULATOR_BF16_OPERATOR(/)
#undef EMULATOR_BF16_OPERATOR

#define EMULATOR_BF16_COMPARISON(sign)                                                             \
    static inline bool operator sign(__nv_bfloat16 a, __nv_bfloat16 b)                             \
    {                                                                                              \
        return static_cast<float>(a) sign static_cast<float>(b);                                   \
    }
EMULATOR_BF16_COMPARISON(==)
EMULATOR_BF16_COMPARISON(!=)
EMULATOR_BF16_COMPARISON(<)
EMULATOR_BF16_COMPARISON(>)
EMULATOR_BF16_COMPARISON(<=)
EMULATOR_BF16_COMPARISON(>=)
#undef EMULATOR_BF16_COMPARISON

static inline __nv_bfloat16 operator-(__nv_bfloat16 a)
{
    return -static_cast<float>(a);
}

static inline __nv_bfloat16 __float2bfloat16(float x)
{
    return x;
}
static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    return x;
}
static inline __nv_bfloat16 __double2bfloat16(double x)
{
    return x;
}
static inline float __bfloat162float(__nv_bfloat16 x)
{
    return x;
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 x;
    x.bits = bits;
    return x;
}

static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high)
{
    return {low, high};
}
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x)
{
    return {x, x};
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high)
{
    return {low, high};
}
static inline __nv_bfloat162 __float22bfloat162_rn(float2 pair)
{
    return {pair.x, pair.y};
}
static inline float2 __bfloat1622float2(__nv_bfloat162 pair)
{
    return {pair.x, pair.y};
}
static inline float __low2float(__nv_bfloat162 pair)
{
    return pair.x;
}
static inline float __high2float(__nv_bfloat162 pair)
{
    return pair.y;
}
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 pair)
{
    return pair.x;
}
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 pair)
{
    return pair.y;
}

static inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a + b;
}
static inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a - b;
}
static inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a * b;
}
static inline __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a / b;
}
static inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    /* The double product is exact, so the sum is nearly always rounded only once. */
    return static_cast<double>(static_cast<float>(a)) * static_cast<float>(b) +
           static_cast<float>(c);
}
static inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return fmaxf(a, b);
}
static inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return fminf(a, b);
}

#endif
