#include "ops/cpu/rows.h"
#include "ops/normalization.h"

/* y = x / |x|, and the length |x|. If squares overflow, both are computed from smaller numbers; if
   all of them are rounded to 0, from larger ones. */
static real l2_normalize_forward_row(int64_t C, const real *restrict x, real *restrict y)
{
    const real least = (real)L2_NORMALIZE_LEAST;
    real sum = row_sum_of_squares(C, x, 1), factor = 1;
    if (!(sum < INFINITY) || sum == 0) {
        factor = sum == 0 ? 1 / ROW_SHRINK(real) : ROW_SHRINK(real);
        sum = row_sum_of_squares(C, x, factor);
    }
    const real length = real_sqrt(sum), divisor = length < least * factor ? least * factor : length;
    for (int64_t c = 0; c < C; c++)
        y[c] = x[c] * factor / divisor;
    return length / factor;
}

static bool l2_normalize_forward(int64_t rows, int64_t C, const void *x_, void *y_, void *length_)
{
    const real *x = x_;
    real *y = y_, *length = length_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        length[r] = l2_normalize_forward_row(C, x + r * C, y + r * C);
    return true;
}

static bool l2_normalize_is_zero(int64_t C, const real *x)
{
    bool zero = true;
    for (int64_t c = 0; c < C; c++)
        zero &= x[c] == 0;
    return zero;
}

/* y = x / |x|; or y = x / least for a smaller norm that is not 0. Where dy = 0, as for a masked
   key, dx = 0 whatever x is. */
static void l2_normalize_backward_row(int64_t C, const real *restrict y, real length,
                                      const real *restrict dy, bool fresh, real *restrict dx)
{
    const real least = (real)L2_NORMALIZE_LEAST;
    real dot = 0;
    if (l2_normalize_is_zero(C, dy)) {
        memset(dx, 0, fresh ? (size_t)C * sizeof *dx : 0);
        return;
    }
#pragma omp simd reduction(+ : dot)
    for (int64_t c = 0; c < C; c++)
        dot += y[c] * dy[c];
    dot = length < least ? 0 : dot;
    real inverse = length == 0 ? 0 : 1 / (length < least ? least : length);
    for (int64_t c = 0; c < C; c++)
        dx[c] = before(fresh, dx[c]) + (dy[c] - y[c] * dot) * inverse;
}

static bool l2_normalize_backward(int64_t rows, int64_t C, const void *y_, const void *length_,
                                  const void *dy_, bool fresh, void *dx_)
{
    const real *y = y_, *length = length_, *dy = dy_;
    real *dx = dx_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        l2_normalize_backward_row(C, y + r * C, length[r], dy + r * C, fresh, dx + r * C);
    return true;
}

KERNELS(l2_normalize) = {l2_normalize_forward, l2_normalize_backward};
