/*
 * The activations as formulas: the twin of ops/cpu/activation.h. activation_value and
 * activation_slope select the function by name; with a template argument the selection happens at
 * compile time.
 */
#ifndef SOFTBACK_CUDA_ACTIVATION_CUH
#define SOFTBACK_CUDA_ACTIVATION_CUH

#include "cuda/real.cuh"
#include "ops/ops.h"

/* 1 / (1 + exp(-x)), which is exp(x) / (1 + exp(x)): the exponential never overflows. */
template <class T> __device__ T real_sigmoid(T x)
{
    T e = real_exp(-real_abs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* max(z, 0); NaN stays NaN. */
template <class T> __device__ T real_relu(T z)
{
    return z <= 0 ? 0 : z;
}

template <class T> __device__ bool real_positive(T x)
{
    return x > 0;
}

/* 0 at z = 0, where every number in 0..1 is a subgradient: a dead unit gets no gradient. */
template <class T> __device__ T real_relu_slope(T z)
{
    return z > 0 ? 1 : 0;
}

/* -1, 0 or 1 */
template <class T> __device__ T real_sign(T x)
{
    return (T)((x > 0) - (x < 0));
}

template <class T> __device__ bool real_below(T a, T b)
{
    return a < b;
}

/* d erf / dz = 2 / sqrt(pi) e^(-z^2) */
template <class T> __device__ T real_erf_slope(T z)
{
    return (T)1.12837916709551257390 * real_exp(-z * z);
}

/* d z^p / dz = p z^(p - 1), and 0 for p = 0 */
template <class T> __device__ T real_pow_slope(T z, T p)
{
    return p == 0 ? 0 : p * real_pow(z, p - 1);
}

/* d tanh / dz = 1 - tanh^2 */
template <class T> __device__ T real_tanh_slope(T z)
{
    T t = real_tanh(z);
    return 1 - t * t;
}

/* d s / dz = s (1 - s), s = 1 / (1 + e^-z) */
template <class T> __device__ T real_sigmoid_slope(T z)
{
    T s = real_sigmoid(z);
    return s * (1 - s);
}

/* Phi(z) = (1 + erf(z / sqrt 2)) / 2, the normal distribution function. */
template <class T> __device__ T real_normal(T z)
{
    const T root_half = (T)0.70710678118654752440; /* sqrt(1/2) */
    return (T)0.5 * (1 + real_erf(z * root_half));
}

/* gelu = z Phi(z) */
template <class T> __device__ T real_gelu(T z)
{
    return z * real_normal(z);
}

/* d gelu / dz = Phi(z) + z phi(z), phi(z) = e^(-z^2 / 2) / sqrt(2 pi) */
template <class T> __device__ T real_gelu_slope(T z)
{
    const T peak = (T)0.39894228040143267794; /* 1 / sqrt(2 pi) */
    return real_normal(z) + z * peak * real_exp((T)-0.5 * z * z);
}

/* gelu_tanh = z/2 (1 + tanh u), u = sqrt(2/pi) (z + 0.044715 z^3) */
template <class T> __device__ T real_gelu_tanh(T z)
{
    const T a = (T)0.79788456080286535588, b = (T)0.044715; /* a = sqrt(2/pi) */
    return (T)0.5 * z * (1 + real_tanh(a * (z + b * z * z * z)));
}

/* d gelu_tanh / dz = (1 + t)/2 + z/2 (1 - t^2) u', t = tanh u, u' = sqrt(2/pi) (1 + 3 b z^2) */
template <class T> __device__ T real_gelu_tanh_slope(T z)
{
    const T a = (T)0.79788456080286535588, b = (T)0.044715;
    T t = real_tanh(a * (z + b * z * z * z));
    return (T)0.5 * ((1 + t) + z * (1 - t * t) * a * (1 + 3 * b * z * z));
}

/* silu = z s(z) */
template <class T> __device__ T real_silu(T z)
{
    return z * real_sigmoid(z);
}

/* d silu / dz = s (1 + z (1 - s)) */
template <class T> __device__ T real_silu_slope(T z)
{
    T s = real_sigmoid(z);
    return s * (1 + z * (1 - s));
}

template <class T> __device__ T activation_value(sb_activation activation, T z)
{
    switch (activation) {
    case SB_ACTIVATION_RELU:
        return real_relu(z);
    case SB_ACTIVATION_GELU:
        return real_gelu(z);
    case SB_ACTIVATION_GELU_TANH:
        return real_gelu_tanh(z);
    case SB_ACTIVATION_SILU:
        return real_silu(z);
    case SB_ACTIVATION_TANH:
        return real_tanh(z);
    case SB_ACTIVATION_SIGMOID:
        return real_sigmoid(z);
    case SB_ACTIVATION_IDENTITY:
        break;
    }
    return z;
}

template <class T> __device__ T activation_slope(sb_activation activation, T z)
{
    switch (activation) {
    case SB_ACTIVATION_RELU:
        return real_relu_slope(z);
    case SB_ACTIVATION_GELU:
        return real_gelu_slope(z);
    case SB_ACTIVATION_GELU_TANH:
        return real_gelu_tanh_slope(z);
    case SB_ACTIVATION_SILU:
        return real_silu_slope(z);
    case SB_ACTIVATION_TANH:
        return real_tanh_slope(z);
    case SB_ACTIVATION_SIGMOID:
        return real_sigmoid_slope(z);
    case SB_ACTIVATION_IDENTITY:
        break;
    }
    return 1;
}

#endif
