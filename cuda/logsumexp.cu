#include "cuda/row_group.cuh"
#include "ops/softmax.h"

namespace
{

/* No shift by an infinite maximum: inf - inf is NaN, but the sum is inf or 0. */
template <class T, int GROUP>
__global__ void forward_rows(int64_t rows, int64_t C, const T *x, T *y)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    const T max = row_max(group, C, x), shift = real_abs(max) < (T)INFINITY ? max : 0;
    const T sum = row_sum_exp(group, C, x, shift);
    if (group.lane == 0)
        y[group.row] = shift + real_log(sum);
}

template <class T> bool forward(int64_t rows, int64_t C, const void *x, void *y)
{
    LAUNCH_ROWS(forward_rows, T, rows, C, (const T *)x, (T *)y);
    return launched("logsumexp");
}

/* y = log sum_c exp(x_c) */
template <class T, int GROUP>
__global__ void backward_rows(int64_t rows, int64_t C, const T *x, const T *all_y, const T *all_dy,
                              bool fresh, T *dx)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    dx += group.row * C;
    const T y = all_y[group.row], dy = all_dy[group.row];
    for (int64_t c = group.lane; c < C; c += GROUP)
        dx[c] = before(fresh, dx[c]) + dy * real_exp(x[c] - y);
}

template <class T>
bool backward(int64_t rows, int64_t C, const void *x, const void *y, const void *dy, bool fresh,
              void *dx)
{
    LAUNCH_ROWS(backward_rows, T, rows, C, (const T *)x, (const T *)y, (const T *)dy, fresh,
                (T *)dx);
    return launched("logsumexp");
}

} // namespace

KERNELS(logsumexp, forward<T>, backward<T>);
