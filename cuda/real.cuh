/* Arithmetic of the element types: the type of sums, and functions under common names. */
#ifndef SOFTBACK_CUDA_REAL_CUH
#define SOFTBACK_CUDA_REAL_CUH

/* The element types are float, double and bf16. bf16 is for storage; arithmetic uses float. Without
   bf16 operators, an expression that does not convert to float fails to compile. */
#define __CUDA_NO_BFLOAT16_OPERATORS__
#define __CUDA_NO_BFLOAT162_OPERATORS__
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

typedef __nv_bfloat16 bf16;

template <class T> struct arithmetic_of {
    typedef T type;
};
template <> struct arithmetic_of<bf16> {
    typedef float type;
};
template <class T> using real_of = typename arithmetic_of<T>::type;

/* real_exp(x) is expf(x) of a float and exp(x) of a double, and so on. */
#define REAL_FUNCTION(name)                                                                        \
    __device__ inline float real_##name(float x)                                                   \
    {                                                                                              \
        return name##f(x);                                                                         \
    }                                                                                              \
    __device__ inline double real_##name(double x)                                                 \
    {                                                                                              \
        return name(x);                                                                            \
    }
REAL_FUNCTION(exp)
REAL_FUNCTION(log)
REAL_FUNCTION(sqrt)
REAL_FUNCTION(tanh)
REAL_FUNCTION(erf)
REAL_FUNCTION(sin)
REAL_FUNCTION(cos)
REAL_FUNCTION(expm1)
REAL_FUNCTION(log1p)
#undef REAL_FUNCTION

__device__ inline float real_pow(float x, float p)
{
    return powf(x, p);
}
__device__ inline double real_pow(double x, double p)
{
    return pow(x, p);
}
template <class T> __device__ T real_abs(T x)
{
    return x < 0 ? -x : x;
}

/* The larger number; ignores NaN. */
template <class T> __device__ T real_max(T a, T b)
{
    return b > a || a != a ? b : a;
}
__device__ inline float real_max(float a, float b)
{
    return fmaxf(a, b);
}

/* The value of a gradient before a part is added: 0 if it is fresh. */
template <class T> __device__ real_of<T> before(bool fresh, const T &dx)
{
    return fresh ? 0 : (real_of<T>)dx;
}

#endif
