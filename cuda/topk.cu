#include "cuda/device.cuh"
#include "cuda/row_group.cuh"
#include "ops/indexing.h"

namespace
{

/* Whether element i of a row comes before element j: it is larger, or as large and further left.
   NaN is the largest. */
template <class T> __device__ bool comes_before(const T *x, int64_t i, int64_t j)
{
    const real_of<T> a = (real_of<T>)x[i], b = (real_of<T>)x[j];
    const bool nan_a = a != a, nan_b = b != b;
    if (nan_a != nan_b)
        return nan_a;
    return nan_a || a == b ? i < j : b < a;
}

/* Of two elements of a row the one that comes first; -1 stands for none. */
template <class T> struct first_of {
    const T *x;

    __device__ int operator()(int i, int j) const
    {
        return i < 0 || (j >= 0 && comes_before(x, j, i)) ? j : i;
    }
};

/* The k first of a row, in order: each pass over the row finds the first one after the last. */
template <class T, int GROUP>
__global__ void choose(int64_t rows, int64_t C, int64_t k, const T *x, T *y, int32_t *ids)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const first_of<T> first = {x += group.row * C};
    int last = -1;
    for (int64_t j = group.row * k; j < (group.row + 1) * k; j++) {
        int best = -1;
        for (int i = group.lane; i < C; i += GROUP)
            if (last < 0 || comes_before(x, last, i))
                best = first(best, i);
        last = group.reduce(best, first);
        if (group.lane == 0) {
            ids[j] = last;
            y[j] = x[last];
        }
    }
}

template <class T>
bool forward(int64_t rows, int64_t C, int64_t k, const void *x, void *y, int32_t *ids)
{
    LAUNCH_ROWS(choose, T, rows, C, k, (const T *)x, (T *)y, ids);
    return launched("topk");
}

/* y_j = x[ids_j] */
template <class T>
__global__ void put(int64_t n, int64_t C, int64_t k, const int32_t *ids, const T *dy, T *dx)
{
    GRID_STRIDE(i, n)
    {
        T *const to = &dx[i / k * C + ids[i]];
        *to = before(false, *to) + (real_of<T>)dy[i];
    }
}

template <class T>
bool backward(int64_t rows, int64_t C, int64_t k, const int32_t *ids, const void *dy, void *dx)
{
    const int64_t n = rows * k;
    LAUNCH_EACH(n, (put<T>), n, C, k, ids, (const T *)dy, (T *)dx);
    return launched("topk");
}

} // namespace

KERNELS_AND_BF16(topk, forward<T>, backward<T>);
