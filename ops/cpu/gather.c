#include "ops/cpu/ids.h"
#include "ops/cpu/real.h"
#include "ops/indexing.h"

static int64_t gather_first_bad(int64_t rows, int64_t C, const void *ids)
{
    return first_bad_id(rows, ids, 0, C);
}

static bool gather_forward(int64_t rows, int64_t C, const void *x_, const void *ids_, void *y_)
{
    const real *x = x_;
    const int32_t *ids = ids_;
    real *y = y_;
    for (int64_t i = 0; i < rows; i++)
        y[i] = x[i * C + ids[i]];
    return true;
}

/* y_i = x[i, ids_i] */
static bool gather_backward(int64_t rows, int64_t C, const void *ids_, const void *dy_, void *dx_)
{
    const int32_t *ids = ids_;
    const real *dy = dy_;
    real *dx = dx_;
    for (int64_t i = 0; i < rows; i++)
        dx[i * C + ids[i]] += dy[i];
    return true;
}

KERNELS(gather) = {gather_first_bad, gather_forward, gather_backward};
