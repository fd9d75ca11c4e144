#include "ops/cpu/real.h"
#include "ops/indexing.h"

/* Whether element i of a row comes before element j: it is larger, or as large and further left.
   NaN is the largest. */
static inline bool topk_before(const real *x, int64_t i, int64_t j)
{
    const bool nan_i = x[i] != x[i], nan_j = x[j] != x[j];
    if (nan_i != nan_j)
        return nan_i;
    return nan_i || x[i] == x[j] ? i < j : x[j] < x[i];
}

/* The k first of a row in `ids`, in order: each element moves up past those that it comes before.
 */
static void topk_row(int64_t C, int64_t k, const real *x, int32_t *ids)
{
    for (int64_t i = 0, n = 0; i < C; i++) {
        if (n == k && !topk_before(x, i, ids[k - 1]))
            continue;
        int64_t at = n < k ? n++ : k - 1;
        for (; at > 0 && topk_before(x, i, ids[at - 1]); at--)
            ids[at] = ids[at - 1];
        ids[at] = (int32_t)i;
    }
}

/* y_j = x[ids_j] */
static bool topk_forward(int64_t rows, int64_t C, int64_t k, const void *x_, void *y_, int32_t *ids)
{
    const real *x = x_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t row = 0; row < rows; row++) {
        topk_row(C, k, x + row * C, ids + row * k);
        for (int64_t j = 0; j < k; j++)
            y[row * k + j] = x[row * C + ids[row * k + j]];
    }
    return true;
}

static bool topk_backward(int64_t rows, int64_t C, int64_t k, const int32_t *ids, const void *dy_,
                          void *dx_)
{
    const real *dy = dy_;
    real *dx = dx_;
    for (int64_t i = 0; i < rows * k; i++)
        dx[i / k * C + ids[i]] += dy[i];
    return true;
}

KERNELS(topk) = {topk_forward, topk_backward};
