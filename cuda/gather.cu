#include "cuda/ids.cuh"
#include "ops/indexing.h"

namespace
{

template <class T> int64_t first_bad(int64_t rows, int64_t C, const void *ids)
{
    return first_bad_id("gather: ids", rows, (const int32_t *)ids, 0, C);
}

template <class T>
__global__ void pick(int64_t rows, int64_t C, RESTRICTED(const T) x, RESTRICTED(const int32_t) ids,
                     RESTRICTED(T) y)
{
    GRID_STRIDE(i, rows)
    y[i] = id_ok(ids[i], C) ? x[i * C + ids[i]] : (T)NAN;
}

template <class T> bool forward(int64_t rows, int64_t C, const void *x, const void *ids, void *y)
{
    LAUNCH_EACH(rows, (pick<T>), rows, C, (const T *)x, (const int32_t *)ids, (T *)y);
    return launched("gather");
}

/* y_i = x[i, ids_i] */
template <class T>
__global__ void put(int64_t rows, int64_t C, RESTRICTED(const int32_t) ids, RESTRICTED(const T) dy,
                    RESTRICTED(T) dx)
{
    GRID_STRIDE(i, rows)
    if (id_ok(ids[i], C))
        dx[i * C + ids[i]] = before(false, dx[i * C + ids[i]]) + (real_of<T>)dy[i];
}

template <class T> bool backward(int64_t rows, int64_t C, const void *ids, const void *dy, void *dx)
{
    LAUNCH_EACH(rows, (put<T>), rows, C, (const int32_t *)ids, (const T *)dy, (T *)dx);
    return launched("gather");
}

} // namespace

KERNELS_AND_BF16(gather, first_bad<T>, forward<T>, backward<T>);
