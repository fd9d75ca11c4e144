#include "cuda/dropout_bits.cuh"
#include "cuda/pack.cuh"
#include "ops/dropout.h"

namespace
{

/* The elements of a group, in the type for arithmetic. */
template <class T> using group = pack<real_of<T>, DROPOUT_GROUP>;

/* The elements of a group after dropout. */
template <class T>
__device__ group<T> dropped(const dropout &call, int64_t first, int64_t left, const group<T> &x)
{
    typedef real_of<T> real;
    if (call.threshold == 0)
        return x;
    const uint32_t stay = staying_here(call, first, left);
    const real scale = (real)call.scale;
    group<T> y;
    for (int e = 0; e < DROPOUT_GROUP; e++)
        y.of[e] = stay >> e & 1 ? x.of[e] * scale : (real)0;
    return y;
}

template <class T>
__global__ void forward_groups(dropout call, int64_t n, const T *x, const T *residual, T *y)
{
    GRID_STRIDE(g, pack_count(n, DROPOUT_GROUP))
    {
        const int64_t at = g * DROPOUT_GROUP, left = n - at;
        group<T> kept = dropped<T>(call, at, left, group<T>::load(x + at, left));
        if (residual) {
            const group<T> before = group<T>::load(residual + at, left);
            for (int e = 0; e < DROPOUT_GROUP; e++)
                kept.of[e] = before.of[e] + kept.of[e];
        }
        kept.store(y + at, left);
    }
}

template <class T>
bool forward(const dropout *call, int64_t n, const void *x, const void *residual, void *y)
{
    const int64_t groups = pack_count(n, DROPOUT_GROUP);
    LAUNCH_EACH(groups, (forward_groups<T>), *call, n, (const T *)x, (const T *)residual, (T *)y);
    return launched("dropout");
}

/* y = residual + (dropped ? 0 : x / (1 - p)), and backward drops the same elements */
template <class T>
__global__ void backward_groups(dropout call, int64_t n, const T *dy, T *dx, bool fresh_dx,
                                T *dresidual, bool fresh_dresidual)
{
    GRID_STRIDE(g, pack_count(n, DROPOUT_GROUP))
    {
        const int64_t at = g * DROPOUT_GROUP, left = n - at;
        const group<T> dy_group = group<T>::load(dy + at, left);
        if (dx)
            dropped<T>(call, at, left, dy_group).add_to(dx + at, fresh_dx, left);
        if (dresidual)
            dy_group.add_to(dresidual + at, fresh_dresidual, left);
    }
}

template <class T>
bool backward(const dropout *call, int64_t n, const void *dy, void *dx, bool fresh_dx,
              void *dresidual, bool fresh_dresidual)
{
    const int64_t groups = pack_count(n, DROPOUT_GROUP);
    LAUNCH_EACH(groups, (backward_groups<T>), *call, n, (const T *)dy, (T *)dx, fresh_dx,
                (T *)dresidual, fresh_dresidual);
    return launched("dropout");
}

} // namespace

KERNELS_AND_BF16(dropout, forward<T>, backward<T>);
