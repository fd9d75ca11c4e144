#include "ops/indexing.h"
#include "ops/plain/real.h"

/* Whether element i of a row comes before element j: it is larger, or as large
   and further left. NaN is the largest. */
static bool comes_before(const real *x, int64_t i, int64_t j)
{
    const bool nan_i = real_is_nan(x[i]), nan_j = real_is_nan(x[j]);
    if (nan_i != nan_j)
        return nan_i;
    const bool equal = nan_i || real_value(x[i]) == real_value(x[j]);
    return equal ? i < j : real_below(x[j], x[i]);
}

/* The first element of the row that comes after element `last`; -1: after none,
   so the first of all. */
static int64_t next_after(const real *x, int64_t C, int64_t last)
{
    int64_t best = -1;
    for (int64_t i = 0; i < C; i++)
        if ((last < 0 || comes_before(x, last, i)) &&
            (best < 0 || comes_before(x, i, best)))
            best = i;
    return best;
}

/* y_j = x[ids_j], the largest first */
static bool topk_forward(int64_t rows, int64_t C, int64_t k, const void *x_,
                         void *y_, int32_t *ids)
{
    const real *x = x_;
    real *y = y_;
    for (int64_t row = 0; row < rows; row++, x += C)
        for (int64_t j = 0, last = -1; j < k; j++) {
            last = next_after(x, C, last);
            ids[row * k + j] = (int32_t)last;
            y[row * k + j] = x[last];
        }
    return true;
}

/* dx[ids_j] = dy_j */
static bool topk_backward(int64_t rows, int64_t C, int64_t k,
                          const int32_t *ids, const void *dy_, void *dx_)
{
    const real *dy = dy_;
    real *dx = dx_;
    for (int64_t i = 0; i < rows * k; i++)
        dx[i / k * C + ids[i]] += dy[i];
    return true;
}

KERNELS(topk) = {topk_forward, topk_backward};
