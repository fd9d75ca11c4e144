#include "cuda/row_group.cuh"
#include "ops/log_softmax.h"

namespace
{

template <class T, int GROUP>
__global__ void forward_rows(int64_t rows, int64_t C, const T *x, T *y)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    y += group.row * C;
    const real max = row_max(group, C, x), log_sum = real_log(row_sum_exp(group, C, x, max));
    for (int64_t c = group.lane; c < C; c += GROUP)
        y[c] = ((real)x[c] - max) - log_sum;
}

template <class T> bool forward(int64_t rows, int64_t C, const void *x, void *y)
{
    LAUNCH_ROWS(forward_rows, T, rows, C, (const T *)x, (T *)y);
    return launched("log_softmax");
}

/* y_c = x_c - max - log sum_j exp(x_j - max) */
template <class T, int GROUP>
__global__ void backward_rows(int64_t rows, int64_t C, const T *y, const T *dy, bool fresh, T *dx)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    y += group.row * C;
    dy += group.row * C;
    dx += group.row * C;
    real total = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        total += (real)dy[c];
    total = group.sum(total);
    for (int64_t c = group.lane; c < C; c += GROUP)
        dx[c] = before(fresh, dx[c]) + (real)dy[c] - real_exp((real)y[c]) * total;
}

template <class T>
bool backward(int64_t rows, int64_t C, const void *y, const void *dy, bool fresh, void *dx)
{
    LAUNCH_ROWS(backward_rows, T, rows, C, (const T *)y, (const T *)dy, fresh, (T *)dx);
    return launched("log_softmax");
}

} // namespace

KERNELS_AND_BF16(log_softmax, forward<T>, backward<T>, nullptr);
