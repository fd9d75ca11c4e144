#include "cuda/broadcast.cuh"
#include "ops/reduce.h"

namespace
{

/* y = sum_i x_i / divisor */
template <class T> bool sum(const broadcast *plan, double divisor, const void *x, void *y)
{
    const operands<T> in = {(const T *)x, nullptr, nullptr, nullptr, 0};
    return broadcast_sum<T, y_itself>("sum", *plan, in, 1, divisor, false, (T *)y);
}

/* y = sum_i x_i / divisor */
struct sum_dx {
    template <class T> __device__ T operator()(const element<T> &e) const
    {
        return e.a / e.factor;
    }
};

template <class T>
bool sum_backward(const broadcast *plan, double divisor, bool fresh, const void *dy, void *dx)
{
    const operands<T> in = {nullptr, (const T *)dy, nullptr, nullptr, (real_of<T>)divisor};
    return broadcast_map<T, sum_dx>("sum", *plan, in, !fresh, (T *)dx);
}

/* The larger of two, where a NaN is the largest of all. */
struct larger {
    template <class T> __device__ T operator()(T max, T x) const
    {
        return x <= max || max != max ? max : x;
    }
};

struct smaller {
    __device__ int64_t operator()(int64_t a, int64_t b) const
    {
        return b < a ? b : a;
    }
};

/* Whether x is the maximum: equal, or both are NaN. */
template <class T> __device__ bool is_max(T x, T max)
{
    return x == max || (x != x && max != max);
}

/* A thread's part of one row of n elements, `inner` apart; none of them if it has no row. */
template <class Group> struct part {
    Group group;
    bool used;
    int64_t row, begin, n, inner;

    __device__ part(const reduce_shape &s)
        : used(group.row < s.outer * s.inner), row(used ? group.row : 0),
          begin(row / s.inner * (s.n - 1) * s.inner + row), n(used ? s.n : 0), inner(s.inner)
    {
    }
    template <class T> __device__ real_of<T> max(const T *x) const
    {
        real_of<T> max = -INFINITY;
        for (int64_t i = group.lane; i < n; i += Group::LANES)
            max = larger()(max, (real_of<T>)x[begin + i * inner]);
        return group.reduce(max, larger());
    }
};

template <class T, class Group> __global__ void max_rows(reduce_shape shape, const T *x, T *y)
{
    const part<Group> p(shape);
    const real_of<T> max = p.max(x);
    if (p.used && p.group.lane == 0)
        y[p.row] = max;
}

template <class T> bool max(reduce_shape s, const void *x, void *y)
{
    const int64_t rows = s.outer * s.inner;
    if (rows > 0)
        LAUNCH_GROUPS(max_rows, T, rows, s.n, s.inner == 1, s, (const T *)x, (T *)y);
    return launched("max");
}

/* y = max_i x_i, reached m times: dx_i = x_i == y ? dy / m : 0 */
template <class T, class Group>
__global__ void max_backward_rows(reduce_shape shape, bool fresh, const T *x, const T *y,
                                  const T *dy, T *dx)
{
    typedef real_of<T> real;
    const part<Group> p(shape);
    const real max = y[p.row];
    int64_t m = 0;
    for (int64_t i = p.group.lane; i < p.n; i += Group::LANES)
        m += is_max((real)x[p.begin + i * p.inner], max);
    m = p.group.sum(m);
    const real share = (real)dy[p.row] / (real)m;
    for (int64_t i = p.group.lane; i < p.n; i += Group::LANES) {
        const int64_t at = p.begin + i * p.inner;
        dx[at] = before(fresh, dx[at]) + (is_max((real)x[at], max) ? share : 0);
    }
}

template <class T>
bool max_backward(reduce_shape s, bool fresh, const void *x, const void *y, const void *dy,
                  void *dx)
{
    const int64_t rows = s.outer * s.inner;
    if (rows > 0)
        LAUNCH_GROUPS(max_backward_rows, T, rows, s.n, s.inner == 1, s, fresh, (const T *)x,
                      (const T *)y, (const T *)dy, (T *)dx);
    return launched("max");
}

template <class T, class Group>
__global__ void argmax_rows(reduce_shape shape, const T *x, int32_t *index)
{
    const part<Group> p(shape);
    const real_of<T> max = p.max(x);
    int64_t first = p.n;
    for (int64_t i = p.group.lane; i < first; i += Group::LANES)
        if (is_max((real_of<T>)x[p.begin + i * p.inner], max))
            first = i;
    first = p.group.reduce(first, smaller());
    if (p.used && p.group.lane == 0)
        index[p.row] = (int32_t)first;
}

template <class T> bool argmax(reduce_shape s, const void *x, int32_t *index)
{
    const int64_t rows = s.outer * s.inner;
    if (rows > 0)
        LAUNCH_GROUPS(argmax_rows, T, rows, s.n, s.inner == 1, s, (const T *)x, index);
    return launched("argmax");
}

} // namespace

KERNELS_AND_BF16(reduce, sum<T>, sum_backward<T>, max<T>, max_backward<T>, argmax<T>);
