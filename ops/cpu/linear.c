#include "ops/linear.h"
#include "ops/cpu/activation.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/rows.h"

enum { BUFFER = 256 };

/* z += bias, y = activation(z); z may be y. The values go through a buffer, without which compilers
   would not dare to compute several at a time. */
static inline __attribute__((always_inline)) void activate(sb_activation activation, int64_t out,
                                                           const real *bias, real *z, real *y)
{
    real value[BUFFER];
    for (int64_t start = 0; start < out; start += BUFFER) {
        int64_t n = out - start < BUFFER ? out - start : BUFFER;
        for (int64_t c = 0; bias && c < n; c++)
            z[start + c] += bias[start + c];
        if (activation == SB_IDENTITY) /* z is y */
            continue;
        for (int64_t c = 0; c < n; c++)
            value[c] = activation_value(activation, z[start + c]);
        memcpy(y + start, value, (size_t)n * sizeof *y);
    }
}

static void activate_row(sb_activation activation, int64_t out, const real *bias, real *z, real *y)
{
    switch (activation) { /* a loop for each, without a choice inside */
    case SB_IDENTITY:
        activate(SB_IDENTITY, out, bias, z, y);
        break;
    case SB_RELU:
        activate(SB_RELU, out, bias, z, y);
        break;
    case SB_GELU:
        activate(SB_GELU, out, bias, z, y);
        break;
    case SB_GELU_TANH:
        activate(SB_GELU_TANH, out, bias, z, y);
        break;
    case SB_SILU:
        activate(SB_SILU, out, bias, z, y);
        break;
    case SB_TANH:
        activate(SB_TANH, out, bias, z, y);
        break;
    case SB_SIGMOID:
        activate(SB_SIGMOID, out, bias, z, y);
        break;
    }
}

static bool forward(const struct linear_shape *s, const void *x, const void *weight,
                    const void *bias, void *z_, void *y_)
{
    const int64_t rows = s->rows, in = s->in, out = s->out;
    real *y = y_, *z = z_ ? z_ : y_;
    bool ok = s->by_row
                  ? CPU(gemm_builtin)(false, true, rows, out, in, x, in, weight, in, 0, z, out)
                  : CPU(gemm_parallel)(false, true, rows, out, in, x, in, weight, in, 0, z, out);
    if (!bias && s->activation == SB_IDENTITY)
        return ok;
#pragma omp parallel for schedule(static) if (rows * out > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        activate_row(s->activation, out, bias, z + r * out, y + r * out);
    return ok;
}

/* The activation's slope, from z or from y as linear_keeps_y says. */
static inline __attribute__((always_inline)) real slope(sb_activation activation, real kept)
{
    switch (activation) {
    case SB_TANH: /* y = tanh z */
        return 1 - kept * kept;
    case SB_SIGMOID: /* y = 1 / (1 + e^-z) */
        return kept * (1 - kept);
    default: /* for relu too, where y > 0 just where z > 0 */
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

static void deactivate_row(sb_activation activation, int64_t out, const real *kept, const real *dy,
                           real *dz)
{
    switch (activation) {
    case SB_IDENTITY:
        break;
    case SB_RELU:
        deactivate(SB_RELU, out, kept, dy, dz);
        break;
    case SB_GELU:
        deactivate(SB_GELU, out, kept, dy, dz);
        break;
    case SB_GELU_TANH:
        deactivate(SB_GELU_TANH, out, kept, dy, dz);
        break;
    case SB_SILU:
        deactivate(SB_SILU, out, kept, dy, dz);
        break;
    case SB_TANH:
        deactivate(SB_TANH, out, kept, dy, dz);
        break;
    case SB_SIGMOID:
        deactivate(SB_SIGMOID, out, kept, dy, dz);
        break;
    }
}

static bool backward_activation(const struct linear_shape *s, const void *kept_, const void *dy_,
                                void *dz_)
{
    const int64_t out = s->out;
    const real *kept = kept_, *dy = dy_;
    real *dz = dz_;
#pragma omp parallel for schedule(static) if (s->rows * out > PARALLEL_WORK)
    for (int64_t r = 0; r < s->rows; r++)
        deactivate_row(s->activation, out, kept + r * out, dy + r * out, dz + r * out);
    return true;
}

/* z = x W' + b */
static bool backward_bias(const struct linear_shape *s, const void *dz_, void *partial_, bool fresh,
                          void *dbias)
{
    const int64_t out = s->out, slabs = slab_count(s->rows);
    const real *dz = dz_;
    real *partial = partial_;
    memset(partial, 0, (size_t)(slabs * out) * sizeof *partial);
#pragma omp parallel for schedule(static) if (s->rows * out > PARALLEL_WORK)
    for (int64_t slab = 0; slab < slabs; slab++)
        for (int64_t r = slab * SLAB_ROWS; r < slab_end(slab, s->rows); r++)
#pragma omp simd
            for (int64_t c = 0; c < out; c++)
                partial[slab * out + c] += dz[r * out + c];
    add_slabs(slabs, out, out, partial, fresh, dbias);
    return true;
}

static bool backward_x(const struct linear_shape *s, const void *dz, const void *weight, bool fresh,
                       void *dx)
{
    return CPU(gemm_parallel)(false, false, s->rows, s->in, s->out, dz, s->out, weight, s->in,
                              fresh ? 0 : 1, dx, s->in);
}

static bool backward_weight(const struct linear_shape *s, const void *dz, const void *x, bool fresh,
                            void *dweight)
{
    return CPU(gemm_parallel)(true, false, s->out, s->in, s->rows, dz, s->out, x, s->in,
                              fresh ? 0 : 1, dweight, s->in);
}

KERNELS(linear) = {forward, backward_activation, backward_bias, backward_x, backward_weight};
