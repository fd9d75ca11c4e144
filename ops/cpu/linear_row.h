/* The activation of linear, a row at a time: forward and backward. */
#ifndef SOFTBACK_OPS_CPU_LINEAR_ROW_H
#define SOFTBACK_OPS_CPU_LINEAR_ROW_H

#include "ops/cpu/activation.h"
#include "ops/linear.h"

enum { BUFFER = 256 };

/* z += bias, y = activation(z); z may be y. A buffer rules out aliasing, so that compilers
   vectorise the loop. */
static inline __attribute__((always_inline)) void activate(sb_activation activation, int64_t out,
                                                           const real *bias, real *z, real *y)
{
    real value[BUFFER];
    for (int64_t start = 0; start < out; start += BUFFER) {
        int64_t n = out - start < BUFFER ? out - start : BUFFER;
        for (int64_t c = 0; bias && c < n; c++)
            z[start + c] += bias[start + c];
        if (activation == SB_ACTIVATION_IDENTITY) /* z is y */
            continue;
        for (int64_t c = 0; c < n; c++)
            value[c] = activation_value(activation, z[start + c]);
        memcpy(y + start, value, (size_t)n * sizeof *y);
    }
}

static inline void activate_row(sb_activation activation, int64_t out, const real *bias, real *z,
                                real *y)
{
    switch (activation) { /* one loop for each, without a branch inside */
    case SB_ACTIVATION_IDENTITY:
        activate(SB_ACTIVATION_IDENTITY, out, bias, z, y);
        break;
    case SB_ACTIVATION_RELU:
        activate(SB_ACTIVATION_RELU, out, bias, z, y);
        break;
    case SB_ACTIVATION_GELU:
        activate(SB_ACTIVATION_GELU, out, bias, z, y);
        break;
    case SB_ACTIVATION_GELU_TANH:
        activate(SB_ACTIVATION_GELU_TANH, out, bias, z, y);
        break;
    case SB_ACTIVATION_SILU:
        activate(SB_ACTIVATION_SILU, out, bias, z, y);
        break;
    case SB_ACTIVATION_TANH:
        activate(SB_ACTIVATION_TANH, out, bias, z, y);
        break;
    case SB_ACTIVATION_SIGMOID:
        activate(SB_ACTIVATION_SIGMOID, out, bias, z, y);
        break;
    }
}

/* The activation's slope, from y if linear_keeps_y, else from z. */
static inline __attribute__((always_inline)) real slope(sb_activation activation, real kept)
{
    switch (activation) {
    case SB_ACTIVATION_TANH: /* y = tanh z */
        return 1 - kept * kept;
    case SB_ACTIVATION_SIGMOID: /* y = 1 / (1 + e^-z) */
        return kept * (1 - kept);
    default: /* also relu, where y > 0 exactly when z > 0 */
        return activation_slope(activation, kept);
    }
}

/* y = activation(z) */
static inline __attribute__((always_inline)) void
deactivate(sb_activation activation, int64_t out, const real *kept, const real *dy, real *dz)
{
    real value[BUFFER];
    for (int64_t start = 0; start < out; start += BUFFER) {
        int64_t n = out - start < BUFFER ? out - start : BUFFER;
        for (int64_t c = 0; c < n; c++)
            value[c] = dy[start + c] * slope(activation, kept[start + c]);
        memcpy(dz + start, value, (size_t)n * sizeof *dz);
    }
}

static inline void deactivate_row(sb_activation activation, int64_t out, const real *kept,
                                  const real *dy, real *dz)
{
    switch (activation) {
    case SB_ACTIVATION_IDENTITY:
        break;
    case SB_ACTIVATION_RELU:
        deactivate(SB_ACTIVATION_RELU, out, kept, dy, dz);
        break;
    case SB_ACTIVATION_GELU:
        deactivate(SB_ACTIVATION_GELU, out, kept, dy, dz);
        break;
    case SB_ACTIVATION_GELU_TANH:
        deactivate(SB_ACTIVATION_GELU_TANH, out, kept, dy, dz);
        break;
    case SB_ACTIVATION_SILU:
        deactivate(SB_ACTIVATION_SILU, out, kept, dy, dz);
        break;
    case SB_ACTIVATION_TANH:
        deactivate(SB_ACTIVATION_TANH, out, kept, dy, dz);
        break;
    case SB_ACTIVATION_SIGMOID:
        deactivate(SB_ACTIVATION_SIGMOID, out, kept, dy, dz);
        break;
    }
}

#endif
