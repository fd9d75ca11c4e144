#include "ops/reduce.h"
#include "ops/cpu/broadcast.h"

FORMULA(reduce_x_itself, s->y[i])

/* y = sum_i x_i / divisor */
static bool reduce_sum(const struct broadcast *plan, double divisor, const void *x, void *y)
{
    struct walk walk = {plan, {x}, reduce_x_itself, 0};
    broadcast_sum(&walk, 1, divisor, false, y);
    return true;
}

/* y = sum_i x_i / divisor */
FORMULA(reduce_sum_dx, s->a[i] / s->factor)

static bool reduce_sum_backward(const struct broadcast *plan, double divisor, bool fresh,
                                const void *dy, void *dx)
{
    struct walk walk = {plan, {NULL, dy}, reduce_sum_dx, (real)divisor};
    broadcast_map(&walk, !fresh, dx);
    return true;
}

/* The larger of two, where a NaN is the largest of all. */
static inline real reduce_larger(real max, real x)
{
    return x <= max || max != max ? max : x;
}

/* Whether x is the maximum: equal, or both are NaN. */
static inline bool reduce_is_max(real x, real max)
{
    return x == max || (x != x && max != max);
}

/* The maximum of a row, in lanes, since compilers do not reorder comparisons by themselves. */
static real reduce_row_max(int64_t n, const real *x)
{
    enum { LANES = 2 * VECTOR_BYTES / sizeof(real) };
    real lane[LANES], max = -INFINITY;
    for (int l = 0; l < LANES; l++)
        lane[l] = -INFINITY;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] = reduce_larger(lane[l], x[i + l]);
    for (int l = 0; l < LANES; l++)
        max = reduce_larger(max, lane[l]);
    for (; i < n; i++)
        max = reduce_larger(max, x[i]);
    return max;
}

/* A unit of work: `width` columns of one (n, inner) block of x, from `column` on. */
struct columns {
    int64_t outer, column, width, n, inner;
};

static inline int64_t reduce_unit_count(struct reduce_shape shape)
{
    return shape.outer * ((shape.inner + STRIP - 1) / STRIP);
}

static inline struct columns reduce_unit_at(struct reduce_shape shape, int64_t unit)
{
    const int64_t blocks = (shape.inner + STRIP - 1) / STRIP, outer = unit / blocks;
    const int64_t column = (unit - outer * blocks) * STRIP;
    return (struct columns){outer, column, smaller(shape.inner - column, STRIP), shape.n,
                            shape.inner};
}

static void reduce_columns_max(struct columns u, const real *restrict x, real *restrict max)
{
    if (u.inner == 1) {
        *max = reduce_row_max(u.n, x);
        return;
    }
    memcpy(max, x, (size_t)u.width * sizeof *max);
    for (int64_t i = 1; i < u.n; i++)
        for (int64_t c = 0; c < u.width; c++)
            max[c] = reduce_larger(max[c], x[i * u.inner + c]);
}

static bool reduce_max(struct reduce_shape shape, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (shape.outer * shape.n * shape.inner > PARALLEL_WORK)
    for (int64_t unit = 0; unit < reduce_unit_count(shape); unit++) {
        const struct columns u = reduce_unit_at(shape, unit);
        reduce_columns_max(u, x + u.outer * u.n * u.inner + u.column,
                           y + u.outer * u.inner + u.column);
    }
    return true;
}

static inline real reduce_add_share(bool fresh, real dx, real x, real max, real share)
{
    return (fresh ? 0 : dx) + (reduce_is_max(x, max) ? share : 0);
}

/* y = max_i x_i, reached m times: dx_i = x_i == y ? dy / m : 0 */
static void reduce_row_backward(int64_t n, bool fresh, const real *restrict x, real y, real dy,
                                real *restrict dx)
{
    int64_t m = 0;
#pragma omp simd reduction(+ : m)
    for (int64_t i = 0; i < n; i++)
        m += reduce_is_max(x[i], y);
    for (int64_t i = 0; i < n; i++)
        dx[i] = reduce_add_share(fresh, dx[i], x[i], y, dy / (real)m);
}

/* The same for each column. */
static void reduce_columns_backward(struct columns u, bool fresh, const real *restrict x,
                                    const real *restrict y, const real *restrict dy,
                                    real *restrict dx)
{
    int64_t m[STRIP] = {0};
    for (int64_t i = 0; i < u.n; i++)
        for (int64_t c = 0; c < u.width; c++)
            m[c] += reduce_is_max(x[i * u.inner + c], y[c]);
    real share[STRIP];
    for (int64_t c = 0; c < u.width; c++)
        share[c] = dy[c] / (real)m[c];
    for (int64_t i = 0; i < u.n; i++)
        for (int64_t c = 0; c < u.width; c++) {
            const int64_t at = i * u.inner + c;
            dx[at] = reduce_add_share(fresh, dx[at], x[at], y[c], share[c]);
        }
}

static bool reduce_max_backward(struct reduce_shape shape, bool fresh, const void *x_,
                                const void *y_, const void *dy_, void *dx_)
{
    const real *x = x_, *y = y_, *dy = dy_;
    real *dx = dx_;
#pragma omp parallel for schedule(static) if (shape.outer * shape.n * shape.inner > PARALLEL_WORK)
    for (int64_t unit = 0; unit < reduce_unit_count(shape); unit++) {
        const struct columns u = reduce_unit_at(shape, unit);
        const int64_t to = u.outer * u.inner + u.column, from = u.outer * u.n * u.inner + u.column;
        if (u.inner == 1)
            reduce_row_backward(u.n, fresh, x + from, y[to], dy[to], dx + from);
        else
            reduce_columns_backward(u, fresh, x + from, y + to, dy + to, dx + from);
    }
    return true;
}

static void reduce_columns_argmax(struct columns u, const real *restrict x, int32_t *restrict index)
{
    real max[STRIP];
    reduce_columns_max(u, x, max);
    for (int64_t c = 0; c < u.width; c++) {
        int64_t i = 0;
        while (!reduce_is_max(x[i * u.inner + c], max[c]))
            i++;
        index[c] = (int32_t)i;
    }
}

static bool reduce_argmax(struct reduce_shape shape, const void *x_, int32_t *index)
{
    const real *x = x_;
#pragma omp parallel for schedule(static) if (shape.outer * shape.n * shape.inner > PARALLEL_WORK)
    for (int64_t unit = 0; unit < reduce_unit_count(shape); unit++) {
        const struct columns u = reduce_unit_at(shape, unit);
        reduce_columns_argmax(u, x + u.outer * u.n * u.inner + u.column,
                              index + u.outer * u.inner + u.column);
    }
    return true;
}

KERNELS(reduce) = {reduce_sum, reduce_sum_backward, reduce_max, reduce_max_backward, reduce_argmax};
