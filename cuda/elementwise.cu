#include "cuda/activation.cuh"
#include "cuda/pack.cuh"
#include "ops/elementwise.h"
#include <utility>

namespace
{

/* The table's y and dx. */
template <class T, elementwise KIND> __device__ T value(T factor, T x)
{
#define VALUE(NAME, name, y, dx)                                                                   \
    case ELEMENTWISE_##NAME:                                                                       \
        return y;
    switch (KIND) {
        ELEMENTWISE_TABLE(VALUE)
    case ELEMENTWISE_KINDS:
        break;
    }
#undef VALUE
    return x;
}

template <class T, elementwise KIND> __device__ T slope(T factor, T x, T y, T dy)
{
#define SLOPE(NAME, name, value, dx)                                                               \
    case ELEMENTWISE_##NAME:                                                                       \
        return dx;
    switch (KIND) {
        ELEMENTWISE_TABLE(SLOPE)
    case ELEMENTWISE_KINDS:
        break;
    }
#undef SLOPE
    return dy;
}

template <class T, elementwise KIND>
__global__ void values(real_of<T> factor, int64_t n, const T *x, T *y)
{
    GRID_STRIDE(i, pack_count(n, PACK<T>))
    {
        const int64_t at = i * PACK<T>, left = n - at;
        auto part = real_pack<T>::load(x + at, left);
        for (real_of<T> &e : part.of)
            e = value<real_of<T>, KIND>(factor, e);
        part.store(y + at, left);
    }
}

template <class T, elementwise KIND>
__global__ void slopes(real_of<T> factor, bool fresh, int64_t n, const T *x_, const T *y_,
                       const T *dy_, T *dx_)
{
    typedef real_pack<T> reals;
    GRID_STRIDE(i, pack_count(n, PACK<T>))
    {
        const int64_t at = i * PACK<T>, left = n - at;
        const reals x = reals::load(x_ + at, left), y = reals::load(y_ + at, left);
        const reals dy = reals::load(dy_ + at, left);
        reals dx = fresh ? reals::all(0) : reals::load(dx_ + at, left);
        for (int e = 0; e < PACK<T>; e++)
            dx.of[e] = before(fresh, dx.of[e]) +
                       slope<real_of<T>, KIND>(factor, x.of[e], y.of[e], dy.of[e]);
        dx.store(dx_ + at, left);
    }
}

template <class T> struct formula_kernels {
    void (*values)(real_of<T> factor, int64_t n, const T *x, T *y);
    void (*slopes)(real_of<T> factor, bool fresh, int64_t n, const T *x, const T *y, const T *dy,
                   T *dx);
};

template <class T, size_t... KIND>
formula_kernels<T> kernels_of(elementwise kind, std::index_sequence<KIND...>)
{
    static const formula_kernels<T> all[] = {
        {values<T, (elementwise)KIND>, slopes<T, (elementwise)KIND>}...};
    return all[kind];
}

template <class T> formula_kernels<T> kernels_of(elementwise kind)
{
    return kernels_of<T>(kind, std::make_index_sequence<ELEMENTWISE_KINDS>());
}

template <class T> bool forward(elementwise kind, double factor, int64_t n, const void *x, void *y)
{
    LAUNCH_EACH(pack_count(n, PACK<T>), kernels_of<T>(kind).values, (real_of<T>)factor, n,
                (const T *)x, (T *)y);
    return launched("elementwise");
}

template <class T>
bool backward(elementwise kind, double factor, bool fresh, int64_t n, const void *x, const void *y,
              const void *dy, void *dx)
{
    LAUNCH_EACH(pack_count(n, PACK<T>), kernels_of<T>(kind).slopes, (real_of<T>)factor, fresh, n,
                (const T *)x, (const T *)y, (const T *)dy, (T *)dx);
    return launched("elementwise");
}

} // namespace

KERNELS_AND_BF16(elementwise, forward<T>, backward<T>);
