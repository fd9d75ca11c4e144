#include "ops/softmax.h"
#include "cuda/ids.cuh"
#include "cuda/masked_row.cuh"
#include "cuda/row_group.cuh"

namespace
{

template <class T, int GROUP>
__global__ void softmax_rows(int64_t rows, int64_t C, const T *x, T *y)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    y += group.row * C;
    T max = -INFINITY, sum = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        max = real_max(max, x[c]);
    max = group.max(max);
    for (int64_t c = group.lane; c < C; c += GROUP)
        sum += real_exp(x[c] - max);
    sum = group.sum(sum);
    for (int64_t c = group.lane; c < C; c += GROUP)
        y[c] = real_exp(x[c] - max) / sum;
}

template <class T> bool forward(int64_t rows, int64_t C, const void *x, void *y)
{
    LAUNCH_ROWS(softmax_rows, T, rows, C, (const T *)x, (T *)y);
    return launched("softmax");
}

/* y_c = exp(x_c - max) / sum */
template <class T, int GROUP>
__global__ void backward_rows(int64_t rows, int64_t C, const T *y, const T *dy, T *dx)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    y += group.row * C;
    dy += group.row * C;
    dx += group.row * C;
    T dot = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        dot += y[c] * dy[c];
    dot = group.sum(dot);
    for (int64_t c = group.lane; c < C; c += GROUP)
        dx[c] += y[c] * (dy[c] - dot);
}

template <class T>
bool backward(int64_t rows, int64_t C, const void *y, const void *dy, void *dx)
{
    LAUNCH_ROWS(backward_rows, T, rows, C, (const T *)y, (const T *)dy, (T *)dx);
    return launched("softmax");
}

template <class T, int GROUP>
__global__ void masked_rows(int64_t rows, int64_t Lk, mask_sizes s, mask_terms mask, T scale,
                            const T *x, T *y)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const masked_row row(mask, s, group.row);
    x += group.row * Lk;
    y += group.row * Lk;
    T max = -INFINITY, sum = 0;
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        max = row.keeps(j) ? real_max(max, x[j]) : max;
    max = group.max(max);
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        sum += row.keeps(j) ? real_exp(scale * (x[j] - max)) : 0;
    sum = group.sum(sum);
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        y[j] = row.keeps(j) ? real_exp(scale * (x[j] - max)) / sum : 0;
}

template <class T>
bool masked_forward(mask_sizes s, const mask_terms *mask, double temperature, const void *x,
                    void *y)
{
    LAUNCH_ROWS(masked_rows, T, s.B * s.H * s.Lq, s.Lk, s, *mask, (T)(1 / temperature),
                (const T *)x, (T *)y);
    return launched("masked_softmax");
}

/* y_j = exp(scale x_j - max) / sum over the kept j */
template <class T, int GROUP>
__global__ void masked_backward_rows(int64_t rows, int64_t Lk, mask_sizes s, mask_terms mask,
                                     T scale, const T *y, const T *dy, T *dx)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const masked_row row(mask, s, group.row);
    y += group.row * Lk;
    dy += group.row * Lk;
    dx += group.row * Lk;
    T dot = 0;
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        dot += row.keeps(j) ? y[j] * dy[j] : 0;
    dot = group.sum(dot);
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        if (row.keeps(j))
            dx[j] += scale * (y[j] * (dy[j] - dot));
}

template <class T>
bool masked_backward(mask_sizes s, const mask_terms *mask, double temperature, const void *y,
                     const void *dy, void *dx)
{
    LAUNCH_ROWS(masked_backward_rows, T, s.B * s.H * s.Lq, s.Lk, s, *mask, (T)(1 / temperature),
                (const T *)y, (const T *)dy, (T *)dx);
    return launched("masked_softmax");
}

template <class T> int64_t bad_length(int64_t B, const int32_t *lengths, int64_t Lk)
{
    return first_bad_id("masked_softmax: lengths", B, lengths, 0, Lk + 1);
}

} // namespace

KERNELS(softmax, forward<T>, backward<T>, masked_forward<T>, masked_backward<T>, bad_length<T>);
