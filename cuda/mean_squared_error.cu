#include "cuda/broadcast.cuh"
#include "ops/loss.h"

namespace
{

/* In an element, y is x, a is dy and b is the target. */

struct square {
    template <class T> __device__ T operator()(const element<T> &e) const
    {
        return (e.y - e.b) * (e.y - e.b);
    }
};

template <class T>
bool forward(const broadcast *plan, double divisor, const void *x, const void *target, void *y)
{
    const operands<T> in = {(const T *)x, nullptr, (const T *)target, nullptr, 0};
    return broadcast_sum<T, square>("mean_squared_error", *plan, in, 1, divisor, false, (T *)y);
}

/* y = sum of (x - target)^2 / n: dx = 2/n (x - target) dy, and dtarget = -dx */
struct square_dx {
    template <class T> __device__ T operator()(const element<T> &e) const
    {
        return e.factor * (e.y - e.b) * e.a;
    }
};

template <class T>
bool backward(const broadcast *plan, double factor, bool fresh, const void *x, const void *target,
              const void *dy, void *dx)
{
    const operands<T> in = {(const T *)x, (const T *)dy, (const T *)target, nullptr, (T)factor};
    return broadcast_map<T, square_dx>("mean_squared_error", *plan, in, !fresh, (T *)dx);
}

} // namespace

KERNELS(mean_squared_error, forward<T>, backward<T>);
