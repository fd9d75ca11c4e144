#include "ops/cpu/gemm.h"
#include "ops/cpu/linear_row.h"
#include "ops/cpu/rows.h"

static int64_t linear_pack(int64_t out, int64_t in, const void *weight, void *packed)
{
    if (packed)
        CPU(gemm_pack_weight)(out, in, weight, packed);
    return CPU(gemm_weight_size)(out, in) * (int64_t)sizeof(real);
}

static bool linear_multiply(const struct linear_shape *s, const real *x, const real *weight,
                            real *z)
{
    const int64_t rows = s->rows, in = s->in, out = s->out;
    return s->packed ? CPU(gemm_weight)(rows, out, in, x, weight, z)
           : s->by_row
               ? CPU(gemm_builtin)(false, true, rows, out, in, x, in, weight, in, 0, z, out)
               : CPU(gemm_parallel)(false, true, rows, out, in, x, in, weight, in, 0, z, out);
}

/* y = activation(z + bias). Called inside a parallel region, whose threads share the rows. */
static void linear_activate_rows(const struct linear_shape *s, const real *bias, real *z, real *y)
{
#pragma omp for schedule(static)
    for (int64_t r = 0; r < s->rows; r++)
        activate_row(s->activation, s->out, bias, z + r * s->out, y + r * s->out);
}

static bool linear_forward(const struct linear_shape *s, const void *x, const void *weight,
                           const void *bias, void *z_, void *y_)
{
    real *y = y_, *z = z_ ? z_ : y_;
    const bool ok = linear_multiply(s, x, weight, z);
    if (!bias && s->activation == SB_ACTIVATION_IDENTITY)
        return ok;
    if (s->rows * s->out <= PARALLEL_WORK) {
        linear_activate_rows(s, bias, z, y);
        return ok;
    }
#pragma omp parallel
    linear_activate_rows(s, bias, z, y);
    return ok;
}

static bool linear_backward_activation(const struct linear_shape *s, const void *kept_,
                                       const void *dy_, void *dz_)
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
static bool linear_backward_bias(const struct linear_shape *s, const void *dz_, void *partial_,
                                 bool fresh, void *dbias)
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

static bool linear_backward_x(const struct linear_shape *s, const void *dz, const void *weight,
                              bool fresh, void *dx)
{
    return CPU(gemm_parallel)(false, false, s->rows, s->in, s->out, dz, s->out, weight, s->in,
                              fresh ? 0 : 1, dx, s->in);
}

static bool linear_backward_weight(const struct linear_shape *s, const void *dz, const void *x,
                                   bool fresh, void *dweight)
{
    return CPU(gemm_parallel)(true, false, s->out, s->in, s->rows, dz, s->out, x, s->in,
                              fresh ? 0 : 1, dweight, s->in);
}

KERNELS(linear) = {linear_pack,
                   linear_forward,
                   linear_backward_activation,
                   linear_backward_bias,
                   linear_backward_x,
                   linear_backward_weight,
                   false};
