#include "ops/elementwise.h"
#include "ops/cpu/activation.h"
#include "ops/cpu/real.h"

enum { BLOCK = 512 };

/* The row of formulas, each a loop over a block of n elements. */
static void values(enum elementwise kind, real factor, int64_t n, const real *restrict x,
                   real *restrict y)
{
    switch (kind) {
    case ELEMENTWISE_NEGATE:
        for (int64_t i = 0; i < n; i++)
            y[i] = -x[i];
        break;
    case ELEMENTWISE_SCALE:
        for (int64_t i = 0; i < n; i++)
            y[i] = factor * x[i];
        break;
    case ELEMENTWISE_SQRT:
        for (int64_t i = 0; i < n; i++)
            y[i] = real_sqrt(x[i]);
        break;
    case ELEMENTWISE_EXP:
        for (int64_t i = 0; i < n; i++)
            y[i] = real_exp(x[i]);
        break;
    case ELEMENTWISE_LOG:
        for (int64_t i = 0; i < n; i++)
            y[i] = real_log(x[i]);
        break;
    case ELEMENTWISE_TANH:
        for (int64_t i = 0; i < n; i++)
            y[i] = real_tanh(x[i]);
        break;
    case ELEMENTWISE_SIGMOID:
        for (int64_t i = 0; i < n; i++)
            y[i] = real_sigmoid(x[i]);
        break;
    case ELEMENTWISE_RELU:
        for (int64_t i = 0; i < n; i++)
            y[i] = real_relu(x[i]);
        break;
    case ELEMENTWISE_GELU:
        for (int64_t i = 0; i < n; i++)
            y[i] = real_gelu(x[i]);
        break;
    case ELEMENTWISE_GELU_TANH:
        for (int64_t i = 0; i < n; i++)
            y[i] = real_gelu_tanh(x[i]);
        break;
    case ELEMENTWISE_SILU:
        for (int64_t i = 0; i < n; i++)
            y[i] = real_silu(x[i]);
        break;
    case ELEMENTWISE_KINDS:
        break;
    }
}

/* Their derivatives, in the same order: dx for a block, from x or y, whichever is shorter. */
static void slopes(enum elementwise kind, real factor, int64_t n, const real *restrict x,
                   const real *restrict y, const real *restrict dy, real *restrict dx)
{
    switch (kind) {
    case ELEMENTWISE_NEGATE:
        for (int64_t i = 0; i < n; i++)
            dx[i] = -dy[i];
        break;
    case ELEMENTWISE_SCALE:
        for (int64_t i = 0; i < n; i++)
            dx[i] = factor * dy[i];
        break;
    case ELEMENTWISE_SQRT:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] / (2 * y[i]);
        break;
    case ELEMENTWISE_EXP:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * y[i];
        break;
    case ELEMENTWISE_LOG:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] / x[i];
        break;
    case ELEMENTWISE_TANH:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * (1 - y[i] * y[i]);
        break;
    case ELEMENTWISE_SIGMOID:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * y[i] * (1 - y[i]);
        break;
    case ELEMENTWISE_RELU:
        for (int64_t i = 0; i < n; i++)
            dx[i] = x[i] > 0 ? dy[i] : 0;
        break;
    case ELEMENTWISE_GELU:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * real_gelu_slope(x[i]);
        break;
    case ELEMENTWISE_GELU_TANH:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * real_gelu_tanh_slope(x[i]);
        break;
    case ELEMENTWISE_SILU:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * real_silu_slope(x[i]);
        break;
    case ELEMENTWISE_KINDS:
    default:
        __builtin_unreachable(); /* so dx is always written, as compilers want to see */
    }
}

static bool forward(enum elementwise kind, double factor, int64_t n, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t at = 0; at < n; at += BLOCK)
        values(kind, (real)factor, n - at < BLOCK ? n - at : BLOCK, x + at, y + at);
    return true;
}

static bool backward(enum elementwise kind, double factor, bool fresh, int64_t n, const void *x_,
                     const void *y_, const void *dy_, void *dx_)
{
    const real *x = x_, *y = y_, *dy = dy_;
    real *dx = dx_;
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t length = n - at < BLOCK ? n - at : BLOCK;
        real part[BLOCK];
        slopes(kind, (real)factor, length, x + at, y + at, dy + at, fresh ? dx + at : part);
        for (int64_t i = 0; !fresh && i < length; i++)
            dx[at + i] += part[i];
    }
    return true;
}

KERNELS(elementwise) = {forward, backward};
