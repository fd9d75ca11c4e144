#include "cuda/row_group.cuh"
#include "ops/l2_normalize.h"

namespace
{

template <class T, int GROUP>
__device__ T sum_of_squares(const row_group<GROUP> &group, int64_t C, const T *x, T scale)
{
    T sum = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        sum += (x[c] * scale) * (x[c] * scale);
    return group.sum(sum);
}

/* Squares that overflow though the elements are finite are taken of x / max instead. All threads of
   the group have the same sum, so they go the same way. */
template <class T, int GROUP>
__device__ T row_length(const row_group<GROUP> &group, int64_t C, const T *x)
{
    T sum = sum_of_squares(group, C, x, (T)1), max = 0;
    if (sum < (T)INFINITY)
        return real_sqrt(sum);
    for (int64_t c = group.lane; c < C; c += GROUP)
        max = real_max(max, real_abs(x[c]));
    max = group.max(max);
    return max < (T)INFINITY ? max * real_sqrt(sum_of_squares(group, C, x, 1 / max)) : sum;
}

template <class T, int GROUP>
__global__ void forward_rows(int64_t rows, int64_t C, T least, const T *x, T *y, T *all_lengths)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    y += group.row * C;
    const T length = row_length(group, C, x), divisor = length < least ? least : length;
    for (int64_t c = group.lane; c < C; c += GROUP)
        y[c] = x[c] / divisor;
    if (group.lane == 0)
        all_lengths[group.row] = length;
}

template <class T> bool forward(int64_t rows, int64_t C, const void *x, void *y, void *length)
{
    LAUNCH_ROWS(forward_rows, T, rows, C, (T)L2_NORMALIZE_LEAST, (const T *)x, (T *)y, (T *)length);
    return launched("l2_normalize");
}

/* y = x / |x|; or y = x / least for a row that is shorter, but not 0. A row on which nothing
   depends, such as a masked key, has gradient 0 whatever is in it. */
template <class T, int GROUP>
__global__ void backward_rows(int64_t rows, int64_t C, T least, const T *y, const T *all_lengths,
                              const T *dy, bool fresh, T *dx)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    y += group.row * C;
    dy += group.row * C;
    dx += group.row * C;
    const T length = all_lengths[group.row];
    T dot = 0;
    int used = 0;
    for (int64_t c = group.lane; c < C; c += GROUP) {
        dot += y[c] * dy[c];
        used |= dy[c] != 0;
    }
    dot = group.sum(dot);
    used = group.max(used);
    dot = length < least ? 0 : dot;
    const T inverse = length == 0 || !used ? 0 : 1 / (length < least ? least : length);
    for (int64_t c = group.lane; c < C; c += GROUP) {
        T part = used ? (dy[c] - y[c] * dot) * inverse : 0;
        dx[c] = before(fresh, dx[c]) + part;
    }
}

template <class T>
bool backward(int64_t rows, int64_t C, const void *y, const void *length, const void *dy,
              bool fresh, void *dx)
{
    LAUNCH_ROWS(backward_rows, T, rows, C, (T)L2_NORMALIZE_LEAST, (const T *)y, (const T *)length,
                (const T *)dy, fresh, (T *)dx);
    return launched("l2_normalize");
}

} // namespace

KERNELS(l2_normalize, forward<T>, backward<T>);
