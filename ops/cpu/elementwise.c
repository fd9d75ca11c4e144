#include "ops/elementwise.h"
#include "ops/cpu/activation.h"
#include "ops/cpu/real.h"

enum { BLOCK = 512 };

/* The table's y and dx. Called with a constant kind, a loop over them contains no branch. */
static inline __attribute__((always_inline)) real value(enum elementwise kind, real factor, real x)
{
#define VALUE(NAME, name, y, dx)                                                                   \
    case ELEMENTWISE_##NAME:                                                                       \
        return y;
    switch (kind) {
        ELEMENTWISE_TABLE(VALUE)
    case ELEMENTWISE_KINDS:
        break;
    }
#undef VALUE
    return x;
}

static inline __attribute__((always_inline)) real slope(enum elementwise kind, real factor, real x,
                                                        real y, real dy)
{
#define SLOPE(NAME, name, value, dx)                                                               \
    case ELEMENTWISE_##NAME:                                                                       \
        return dx;
    switch (kind) {
        ELEMENTWISE_TABLE(SLOPE)
    case ELEMENTWISE_KINDS:
        break;
    }
#undef SLOPE
    return dy;
}

/* A loop over a block of n elements for each function. */
static void elementwise_values(enum elementwise kind, real factor, int64_t n,
                               const real *restrict x, real *restrict y)
{
#define LOOP(NAME, name, value_of, slope_of)                                                       \
    case ELEMENTWISE_##NAME:                                                                       \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = value(ELEMENTWISE_##NAME, factor, x[i]);                                        \
        break;
    switch (kind) {
        ELEMENTWISE_TABLE(LOOP)
    case ELEMENTWISE_KINDS:
        break;
    }
#undef LOOP
}

static void elementwise_slopes(enum elementwise kind, real factor, int64_t n,
                               const real *restrict x, const real *restrict y,
                               const real *restrict dy, real *restrict dx)
{
#define LOOP(NAME, name, value_of, slope_of)                                                       \
    case ELEMENTWISE_##NAME:                                                                       \
        for (int64_t i = 0; i < n; i++)                                                            \
            dx[i] = slope(ELEMENTWISE_##NAME, factor, x[i], y[i], dy[i]);                          \
        break;
    switch (kind) {
        ELEMENTWISE_TABLE(LOOP)
    case ELEMENTWISE_KINDS:
    default:
        __builtin_unreachable(); /* tells compilers that dx is always written */
    }
#undef LOOP
}

static bool elementwise_forward(enum elementwise kind, double factor, int64_t n, const void *x_,
                                void *y_)
{
    const real *x = x_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t at = 0; at < n; at += BLOCK)
        elementwise_values(kind, (real)factor, n - at < BLOCK ? n - at : BLOCK, x + at, y + at);
    return true;
}

static bool elementwise_backward(enum elementwise kind, double factor, bool fresh, int64_t n,
                                 const void *x_, const void *y_, const void *dy_, void *dx_)
{
    const real *x = x_, *y = y_, *dy = dy_;
    real *dx = dx_;
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t length = n - at < BLOCK ? n - at : BLOCK;
        real part[BLOCK];
        elementwise_slopes(kind, (real)factor, length, x + at, y + at, dy + at,
                           fresh ? dx + at : part);
        for (int64_t i = 0; !fresh && i < length; i++)
            dx[at + i] += part[i];
    }
    return true;
}

KERNELS(elementwise) = {elementwise_forward, elementwise_backward};
