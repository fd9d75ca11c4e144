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

__device__ inline float real_exp(float x)
{
    return expf(x);
}
__device__ inline double real_exp(double x)
{
    return exp(x);
}
__device__ inline float real_log(float x)
{
    return logf(x);
}
__device__ inline double real_log(double x)
{
    return log(x);
}
__device__ inline float real_sqrt(float x)
{
    return sqrtf(x);
}
__device__ inline double real_sqrt(double x)
{
    return sqrt(x);
}
__device__ inline float real_tanh(float x)
{
    return tanhf(x);
}
__device__ inline double real_tanh(double x)
{
    return tanh(x);
}
__device__ inline float real_erf(float x)
{
    return erff(x);
}
__device__ inline double real_erf(double x)
{
    return erf(x);
}
__device__ inline float real_sin(float x)
{
    return sinf(x);
}
__device__ inline double real_sin(double x)
{
    return sin(x);
}
__device__ inline float real_cos(float x)
{
    return cosf(x);
}
__device__ inline double real_cos(double x)
{
    return cos(x);
}
__device__ inline float real_expm1(float x)
{
    return expm1f(x);
}
__device__ inline double real_expm1(double x)
{
    return expm1(x);
}
__device__ inline float real_log1p(float x)
{
    return log1pf(x);
}
__device__ inline double real_log1p(double x)
{
    return log1p(x);
}
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
