/* The activation of linear, a row at a time: forward and backward. */
#ifndef SOFTBACK_OPS_CPU_LINEAR_ROW_H
#define SOFTBACK_OPS_CPU_LINEAR_ROW_H

#include "ops/cpu/activation.h"
#include "ops/linear.h"

enum { BUFFER = 256 };

/* Each activation but the identity: its value at z, and its slope from what is kept, y if
   linear_keeps_y, else z. That of relu is 0 at 0, where every number in 0..1 is a subgradient: a
   dead unit gets no gradient; and y > 0 exactly when z > 0. */
#define ACTIVATIONS(F)                                                                             \
    F(RELU, real_relu(z), (real)(kept > 0 ? 1 : 0))                                                \
    F(GELU, real_gelu(z), real_gelu_slope(kept))                                                   \
    F(GELU_TANH, real_gelu_tanh(z), real_gelu_tanh_slope(kept))                                    \
    F(SILU, real_silu(z), real_silu_slope(kept))                                                   \
    F(TANH, real_tanh(z), 1 - kept * kept)                                                         \
    F(SIGMOID, real_sigmoid(z), kept *(1 - kept))

/* z += bias, y = activation(z); z may be y. A buffer rules out aliasing, so that compilers
   vectorise the loops, one for each activation, without a branch inside. */
static inline void activate_row(sb_activation activation, int64_t out, const real *bias, real *z_,
                                real *y)
{
#define LOOP(NAME, value_at_z, slope)                                                              \
    case SB_ACTIVATION_##NAME:                                                                     \
        for (int64_t c = 0; c < n; c++) {                                                          \
            const real z = z_[start + c];                                                          \
            value[c] = value_at_z;                                                                 \
        }                                                                                          \
        break;
    real value[BUFFER];
    for (int64_t start = 0; start < out; start += BUFFER) {
        int64_t n = out - start < BUFFER ? out - start : BUFFER;
        for (int64_t c = 0; bias && c < n; c++)
            z_[start + c] += bias[start + c];
        switch (activation) {
            ACTIVATIONS(LOOP)
        case SB_ACTIVATION_IDENTITY: /* z is y */
            continue;
        }
        memcpy(y + start, value, (size_t)n * sizeof *y);
    }
#undef LOOP
}

/* y = activation(z) */
static inline void deactivate_row(sb_activation activation, int64_t out, const real *kept_,
                                  const real *dy, real *dz)
{
#define LOOP(NAME, value_at_z, slope)                                                              \
    case SB_ACTIVATION_##NAME:                                                                     \
        for (int64_t c = 0; c < n; c++) {                                                          \
            const real kept = kept_[start + c];                                                    \
            value[c] = dy[start + c] * (slope);                                                    \
        }                                                                                          \
        break;
    real value[BUFFER];
    for (int64_t start = 0; start < out; start += BUFFER) {
        int64_t n = out - start < BUFFER ? out - start : BUFFER;
        switch (activation) {
            ACTIVATIONS(LOOP)
        case SB_ACTIVATION_IDENTITY:
            return;
        }
        memcpy(dz + start, value, (size_t)n * sizeof *dz);
    }
#undef LOOP
}

#endif
