#include "cuda/norm.cuh"

namespace
{

template <class T>
bool forward(int64_t rows, int64_t C, double epsilon, const void *x, const void *gain, void *y,
             void *scale)
{
    norm_call<T> f = {};
    f.epsilon = (real_of<T>)epsilon;
    f.x = (const T *)x;
    f.gain = (const T *)gain;
    f.y = (T *)y;
    f.scale = (real_of<T> *)scale;
    queue_norm<T, false>(rows, C, f);
    return launched("rms_norm");
}

template <class T>
bool backward(int64_t rows, int64_t C, const void *x, const void *gain, const void *scale,
              const void *dy, struct norm_gradient dx, struct norm_gradient dgain, void *partial)
{
    norm_gradients<T> b = {};
    b.x = (const T *)x;
    b.gain = (const T *)gain;
    b.scale = (const real_of<T> *)scale;
    b.dy = (const T *)dy;
    b.dx = norm_target<T>(dx);
    b.partial = (real_of<T> *)partial;
    queue_norm_gradients<T, false>(rows, C, b, {dgain});
    return launched("rms_norm");
}

} // namespace

KERNELS_AND_BF16(rms_norm, forward<T>, backward<T>);
