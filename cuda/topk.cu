#include "cuda/device.cuh"
#include "cuda/real.cuh"
#include "ops/topk.h"

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

/* The k first of a row in its part of `ids`, in order; a thread for each row. */
template <class T>
__global__ void choose(int64_t rows, int64_t C, int64_t k, const T *x_, T *y, int32_t *ids_)
{
    GRID_STRIDE(row, rows)
    {
        const T *x = x_ + row * C;
        int32_t *ids = ids_ + row * k;
        for (int64_t i = 0, n = 0; i < C; i++) {
            if (n == k && !comes_before(x, i, ids[k - 1]))
                continue;
            int64_t at = n < k ? n++ : k - 1;
            for (; at > 0 && comes_before(x, i, ids[at - 1]); at--)
                ids[at] = ids[at - 1];
            ids[at] = (int32_t)i;
        }
        for (int64_t j = 0; j < k; j++)
            y[row * k + j] = x[ids[j]];
    }
}

template <class T>
bool forward(int64_t rows, int64_t C, int64_t k, const void *x, void *y, int32_t *ids)
{
    if (rows > 0)
        LAUNCH((choose<T>), dim3(blocks_for(rows, THREADS)), dim3(THREADS), 0, stream, rows, C, k,
               (const T *)x, (T *)y, ids);
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
    if (n > 0)
        LAUNCH((put<T>), dim3(blocks_for(n, THREADS)), dim3(THREADS), 0, stream, n, C, k, ids,
               (const T *)dy, (T *)dx);
    return launched("topk");
}

} // namespace

KERNELS_AND_BF16(topk, forward<T>, backward<T>);
