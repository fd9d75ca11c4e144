#include "cuda/row_group.cuh"
#include "ops/normalization.h"
#include "ops/rows.h"

namespace
{

template <class T, int GROUP>
__device__ real_of<T> sum_of_squares(const row_group<GROUP> &group, int64_t C, const T *x,
                                     real_of<T> scale)
{
    typedef real_of<T> real;
    real sum = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        sum += ((real)x[c] * scale) * ((real)x[c] * scale);
    return group.sum(sum);
}

/* y = x / |x|, and the length |x|. If squares overflow, both are computed from smaller numbers; if
   all of them are rounded to 0, from larger ones. All threads of the group have the same sum, so
   they do not diverge. */
template <class T, int GROUP>
__global__ void forward_rows(int64_t rows, int64_t C, real_of<T> least, const T *x, T *y,
                             real_of<T> *all_lengths)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    y += group.row * C;
    real sum = sum_of_squares(group, C, x, (real)1), factor = 1;
    if (!(sum < (real)INFINITY) || sum == 0) {
        factor = sum == 0 ? 1 / ROW_SHRINK(real) : ROW_SHRINK(real);
        sum = sum_of_squares(group, C, x, factor);
    }
    const real length = real_sqrt(sum), divisor = length < least * factor ? least * factor : length;
    for (int64_t c = group.lane; c < C; c += GROUP)
        y[c] = (real)x[c] * factor / divisor;
    if (group.lane == 0)
        all_lengths[group.row] = length / factor;
}

template <class T> bool forward(int64_t rows, int64_t C, const void *x, void *y, void *length)
{
    LAUNCH_ROWS(forward_rows, T, rows, C, (real_of<T>)L2_NORMALIZE_LEAST, (const T *)x, (T *)y,
                (real_of<T> *)length);
    return launched("l2_normalize");
}

/* y = x / |x|; or y = x / least for a smaller norm that is not 0. Where dy = 0, as for a masked
   key, dx = 0 whatever x is. */
template <class T, int GROUP>
__global__ void backward_rows(int64_t rows, int64_t C, real_of<T> least, const T *y,
                              const real_of<T> *all_lengths, const T *dy, bool fresh, T *dx)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    y += group.row * C;
    dy += group.row * C;
    dx += group.row * C;
    const real length = all_lengths[group.row];
    real dot = 0;
    int used = 0;
    for (int64_t c = group.lane; c < C; c += GROUP) {
        dot += (real)y[c] * (real)dy[c];
        used |= (real)dy[c] != 0;
    }
    dot = group.sum(dot);
    used = group.max(used);
    dot = length < least ? 0 : dot;
    const real inverse = length == 0 || !used ? 0 : 1 / (length < least ? least : length);
    for (int64_t c = group.lane; c < C; c += GROUP) {
        real part = used ? ((real)dy[c] - (real)y[c] * dot) * inverse : 0;
        dx[c] = before(fresh, dx[c]) + part;
    }
}

template <class T>
bool backward(int64_t rows, int64_t C, const void *y, const void *length, const void *dy,
              bool fresh, void *dx)
{
    LAUNCH_ROWS(backward_rows, T, rows, C, (real_of<T>)L2_NORMALIZE_LEAST, (const T *)y,
                (const real_of<T> *)length, (const T *)dy, fresh, (T *)dx);
    return launched("l2_normalize");
}

} // namespace

KERNELS_AND_BF16(l2_normalize, forward<T>, backward<T>);
