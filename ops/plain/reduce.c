#include "ops/reduce.h"
#include "ops/plain/broadcast.h"

/* sum: y = sum_i x_i     mean: y = sum_i x_i / n, n being the divisor */
static bool sum_forward(const struct broadcast *plan, double divisor,
                        const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    zero_if_fresh(true, walk_elements(plan, 1), y);
    for (int64_t n = 0; n < walk_size(plan); n++)
        y[walk_at(plan, 1, n)] += x[walk_at(plan, 0, n)];
    for (int64_t n = 0; n < walk_elements(plan, 1); n++)
        y[n] /= (real)divisor;
    return true;
}

/* sum: dx_i = dy     mean: dx_i = dy / n */
static bool sum_backward(const struct broadcast *plan, double divisor,
                         bool fresh, const void *dy_, void *dx_)
{
    const real *dy = dy_;
    real *dx = dx_;
    zero_if_fresh(fresh, walk_elements(plan, 0), dx);
    for (int64_t n = 0; n < walk_size(plan); n++)
        dx[walk_at(plan, 0, n)] += dy[walk_at(plan, 1, n)] / (real)divisor;
    return true;
}

/* The larger of two values, where a NaN is the largest of all. */
static real larger(real max, real x)
{
    return isnan(real_value(max)) || real_value(x) <= real_value(max) ? max : x;
}

static bool is_max(real x, real max)
{
    return real_value(x) == real_value(max) ||
           (isnan(real_value(x)) && isnan(real_value(max)));
}

/* max: y = max_i x_i, x being (outer, n, inner) */
static bool max_forward(struct reduce_shape s, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t c = 0; c < s.inner; c++) {
            real max = -INFINITY;
            for (int64_t i = 0; i < s.n; i++)
                max = larger(max, x[(o * s.n + i) * s.inner + c]);
            y[o * s.inner + c] = max;
        }
    return true;
}

/* dx_i = dy / m at the m elements that are the maximum, else 0 */
static bool max_backward(struct reduce_shape s, bool fresh, const void *x_,
                         const void *y_, const void *dy_, void *dx_)
{
    const real *x = x_, *y = y_, *dy = dy_;
    real *dx = dx_;
    zero_if_fresh(fresh, s.outer * s.n * s.inner, dx);
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t c = 0; c < s.inner; c++) {
            const int64_t at = o * s.inner + c, first = o * s.n * s.inner + c;
            int64_t m = 0;
            for (int64_t i = 0; i < s.n; i++)
                m += is_max(x[first + i * s.inner], y[at]);
            for (int64_t i = 0; i < s.n; i++)
                if (is_max(x[first + i * s.inner], y[at]))
                    dx[first + i * s.inner] += dy[at] / (real)m;
        }
    return true;
}

/* argmax: the index of the first maximum */
static bool argmax(struct reduce_shape s, const void *x_, int32_t *index)
{
    const real *x = x_;
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t c = 0; c < s.inner; c++) {
            real max = -INFINITY;
            int64_t first = 0;
            for (int64_t i = 0; i < s.n; i++)
                max = larger(max, x[(o * s.n + i) * s.inner + c]);
            while (!is_max(x[(o * s.n + first) * s.inner + c], max))
                first++;
            index[o * s.inner + c] = (int32_t)first;
        }
    return true;
}

KERNELS(reduce) = {sum_forward, sum_backward, max_forward, max_backward,
                   argmax};
