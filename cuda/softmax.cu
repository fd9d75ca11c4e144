#include "cuda/ids.cuh"
#include "cuda/masked_row.cuh"
#include "cuda/row_group.cuh"
#include "ops/softmax.h"

namespace
{

template <class T, int GROUP>
__global__ void softmax_rows(int64_t rows, int64_t C, const T *x, T *y)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    y += group.row * C;
    const real max = row_max(group, C, x), sum = row_sum_exp(group, C, x, max);
    for (int64_t c = group.lane; c < C; c += GROUP)
        y[c] = real_exp((real)x[c] - max) / sum;
}

template <class T> bool forward(int64_t rows, int64_t C, const void *x, void *y)
{
    LAUNCH_ROWS(softmax_rows, T, rows, C, (const T *)x, (T *)y);
    return launched("softmax");
}

/* Of y_c = exp(x_c - max) / sum: dx_c += y_c (dy_c - sum_j y_j dy_j) */
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
    real dot = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        dot += (real)y[c] * (real)dy[c];
    dot = group.sum(dot);
    for (int64_t c = group.lane; c < C; c += GROUP)
        dx[c] = before(fresh, dx[c]) + (real)y[c] * ((real)dy[c] - dot);
}

template <class T>
bool backward(int64_t rows, int64_t C, const void *y, const void *dy, bool fresh, void *dx)
{
    LAUNCH_ROWS(backward_rows, T, rows, C, (const T *)y, (const T *)dy, fresh, (T *)dx);
    return launched("softmax");
}

template <class T, int GROUP>
__global__ void masked_rows(int64_t rows, int64_t Lk, mask_sizes s, mask_terms mask,
                            real_of<T> scale, const T *x, T *y)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const masked_row row(mask, s, group.row);
    x += group.row * Lk;
    y += group.row * Lk;
    real max = -INFINITY, sum = 0;
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        max = row.keeps(j) ? real_max(max, (real)x[j]) : max;
    max = group.max(max);
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        sum += row.keeps(j) ? real_exp(scale * ((real)x[j] - max)) : 0;
    sum = group.sum(sum);
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        y[j] = row.keeps(j) ? real_exp(scale * ((real)x[j] - max)) / sum : 0;
}

template <class T>
bool masked_forward(mask_sizes s, const mask_terms *mask, double temperature, const void *x,
                    void *y)
{
    LAUNCH_ROWS(masked_rows, T, s.B * s.H * s.Lq, s.Lk, s, *mask, (real_of<T>)(1 / temperature),
                (const T *)x, (T *)y);
    return launched("masked_softmax");
}

/* Of y_j = exp(scale x_j - max) / sum over the kept j: dx_j += scale y_j (dy_j - sum_i y_i dy_i) */
template <class T, int GROUP>
__global__ void masked_backward_rows(int64_t rows, int64_t Lk, mask_sizes s, mask_terms mask,
                                     real_of<T> scale, const T *y, const T *dy, bool fresh, T *dx)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const masked_row row(mask, s, group.row);
    y += group.row * Lk;
    dy += group.row * Lk;
    dx += group.row * Lk;
    real dot = 0;
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        dot += row.keeps(j) ? (real)y[j] * (real)dy[j] : 0;
    dot = group.sum(dot);
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        if (row.keeps(j))
            dx[j] = before(fresh, dx[j]) + scale * ((real)y[j] * ((real)dy[j] - dot));
        else if (fresh)
            dx[j] = 0;
}

template <class T>
bool masked_backward(mask_sizes s, const mask_terms *mask, double temperature, const void *y,
                     const void *dy, bool fresh, void *dx)
{
    LAUNCH_ROWS(masked_backward_rows, T, s.B * s.H * s.Lq, s.Lk, s, *mask,
                (real_of<T>)(1 / temperature), (const T *)y, (const T *)dy, fresh, (T *)dx);
    return launched("masked_softmax");
}

template <class T> int64_t bad_length(int64_t B, const int32_t *lengths, int64_t Lk)
{
    return first_bad_id("masked_softmax: lengths", B, lengths, 0, Lk + 1);
}

} // namespace

KERNELS_AND_BF16(softmax, forward<T>, backward<T>, masked_forward<T>, masked_backward<T>,
                 bad_length<T>);
