#include "ops/elementwise.h"
#include "ops/cpu/activation.h"
#include "ops/cpu/real.h"

enum { BLOCK = 512 };

/* A loop over a block of n elements for each function, with the table's y or dx. */
static void elementwise_values(enum elementwise kind, real factor, int64_t n,
                               const real *restrict x_, real *restrict y_)
{
#define LOOP(NAME, name, y, dx)                                                                    \
    case ELEMENTWISE_##NAME:                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const real x = x_[i];                                                                  \
            y_[i] = y;                                                                             \
        }                                                                                          \
        break;
    switch (kind) {
        ELEMENTWISE_TABLE(LOOP)
    case ELEMENTWISE_KINDS:
        break;
    }
#undef LOOP
}

static void elementwise_slopes(enum elementwise kind, real factor, int64_t n,
                               const real *restrict x_, const real *restrict y_,
                               const real *restrict dy_, real *restrict dx_)
{
#define LOOP(NAME, name, value, dx)                                                                \
    case ELEMENTWISE_##NAME:                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const real x = x_[i], y = y_[i], dy = dy_[i];                                          \
            (void)x, (void)y;                                                                      \
            dx_[i] = dx;                                                                           \
        }                                                                                          \
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
