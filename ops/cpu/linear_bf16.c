/*
 * linear in bf16: products are summed in f32, and results are rounded once: z, then y of the
 * rounded z, dx, dweight and dbias. With `wide` all of these are f32.
 */
#include "ops/cpu/gemm.h"
#include "ops/cpu/linear_row.h"
#include "ops/cpu/real.h"
#include "ops/cpu/rows.h"
#include "tensor/memory.h"

#if REAL_IS_FLOAT
static void linear_add_bias(int64_t n, const uint16_t *bias, real *sum)
{
    for (int64_t c = 0; bias && c < n; c++)
        sum[c] += sb_bf16_widen(bias[c]);
}

/* z = round(sum + bias), y = round(activation(z)); z may be NULL. */
static void linear_finish_row(const struct linear_shape *s, const uint16_t *bias, real *sum,
                              uint16_t *z, uint16_t *y)
{
    real value[BUFFER], result[BUFFER];
    for (int64_t c = 0; c < s->out; c += BUFFER) {
        const int64_t n = s->out - c < BUFFER ? s->out - c : BUFFER;
        linear_add_bias(n, bias ? bias + c : NULL, sum + c);
        bf16_round(n, sum + c, y + c);
        if (z)
            memcpy(z + c, y + c, (size_t)n * sizeof *z);
        if (s->activation == SB_ACTIVATION_IDENTITY)
            continue;
        bf16_widen(n, y + c, value);
        activate_row(s->activation, n, NULL, value, result);
        bf16_round(n, result, y + c);
    }
}

static void linear_finish(const struct linear_shape *s, const uint16_t *bias, real *sums,
                          uint16_t *z, uint16_t *y)
{
    const int64_t out = s->out;
#pragma omp parallel for schedule(static) if (s->rows * out > PARALLEL_WORK)
    for (int64_t r = 0; r < s->rows; r++)
        linear_finish_row(s, bias, sums + r * out, z ? z + r * out : NULL, y + r * out);
}

/* `wide` has no activation: it computes the logits of a loss. */
static bool linear_forward_wide(const struct linear_shape *s, const uint16_t *x,
                                const uint16_t *weight, const uint16_t *bias, real *y)
{
    if (!CPU(gemm_bf16)(false, true, s->rows, s->out, s->in, x, s->in, weight, s->in, 0, y, s->out))
        return false;
#pragma omp parallel for schedule(static) if (s->rows * s->out > PARALLEL_WORK)
    for (int64_t r = 0; r < s->rows; r++)
        linear_add_bias(s->out, bias, y + r * s->out);
    return true;
}

/* Memory for n sums; n may be 0. */
static real *linear_take_sums(int64_t n)
{
    return pool_take(memory_pool(), (size_t)(n + 1) * sizeof(real));
}

static void linear_give_sums(real *sums, int64_t n)
{
    pool_give(memory_pool(), sums, (size_t)(n + 1) * sizeof(real));
}

static bool linear_forward(const struct linear_shape *s, const void *x, const void *weight,
                           const void *bias, void *z, void *y)
{
    if (s->wide)
        return linear_forward_wide(s, x, weight, bias, y);
    const int64_t n = s->rows * s->out;
    real *sums = linear_take_sums(n);
    const bool ok = sums && CPU(gemm_bf16)(false, true, s->rows, s->out, s->in, x, s->in, weight,
                                           s->in, 0, sums, s->out);
    if (ok)
        linear_finish(s, bias, sums, z, y);
    linear_give_sums(sums, n);
    return ok;
}

static void linear_deactivate_block(sb_activation activation, int64_t n, const uint16_t *kept,
                                    const uint16_t *dy, uint16_t *dz)
{
    real k[BUFFER], g[BUFFER], result[BUFFER];
    bf16_widen(n, kept, k);
    bf16_widen(n, dy, g);
    deactivate_row(activation, n, k, g, result);
    bf16_round(n, result, dz);
}

static bool linear_backward_activation(const struct linear_shape *s, const void *kept_,
                                       const void *dy_, void *dz_)
{
    const uint16_t *kept = kept_, *dy = dy_;
    uint16_t *dz = dz_;
    const int64_t n = s->rows * s->out;
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t i = 0; i < n; i += BUFFER)
        linear_deactivate_block(s->activation, n - i < BUFFER ? n - i : BUFFER, kept + i, dy + i,
                                dz + i);
    return true;
}

/* sums, rounded, or what y holds plus the sums. */
static void linear_store(int64_t n, const real *sums, bool fresh, uint16_t *y)
{
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t i = 0; i < n; i++)
        y[i] = sb_bf16_round(fresh ? sums[i] : sb_bf16_widen(y[i]) + sums[i]);
}

static bool linear_backward_bias(const struct linear_shape *s, const void *dz_, void *partial_,
                                 bool fresh, void *dbias)
{
    const int64_t out = s->out, slabs = slab_count(s->rows);
    const uint16_t *dz = dz_;
    real *partial = partial_;
    memset(partial, 0, (size_t)(slabs * out) * sizeof *partial);
#pragma omp parallel for schedule(static) if (s->rows * out > PARALLEL_WORK)
    for (int64_t slab = 0; slab < slabs; slab++)
        for (int64_t r = slab * SLAB_ROWS; r < slab_end(slab, s->rows); r++)
            for (int64_t c = 0; c < out; c++)
                partial[slab * out + c] += sb_bf16_widen(dz[r * out + c]);
    if (s->wide) {
        add_slabs(slabs, out, out, partial, fresh, dbias);
        return true;
    }
    real *sums = linear_take_sums(out);
    if (!sums)
        return false;
    add_slabs(slabs, out, out, partial, true, sums);
    linear_store(out, sums, fresh, dbias);
    linear_give_sums(sums, out);
    return true;
}

/* dx or dweight, (m, n), of op(dz) (m, k) and b (k, n). */
static bool linear_gradient(const struct linear_shape *s, bool transpose, int64_t m, int64_t n,
                            int64_t k, const void *dz, const void *b, bool fresh, void *to)
{
    if (s->wide)
        return CPU(gemm_bf16)(transpose, false, m, n, k, dz, s->out, b, n, fresh ? 0 : 1, to, n);
    real *sums = linear_take_sums(m * n);
    const bool ok = sums && CPU(gemm_bf16)(transpose, false, m, n, k, dz, s->out, b, n, 0, sums, n);
    if (ok)
        linear_store(m * n, sums, fresh, to);
    linear_give_sums(sums, m * n);
    return ok;
}

static bool linear_backward_x(const struct linear_shape *s, const void *dz, const void *weight,
                              bool fresh, void *dx)
{
    return linear_gradient(s, false, s->rows, s->in, s->out, dz, weight, fresh, dx);
}

static bool linear_backward_weight(const struct linear_shape *s, const void *dz, const void *x,
                                   bool fresh, void *dweight)
{
    return linear_gradient(s, true, s->out, s->in, s->rows, dz, x, fresh, dweight);
}

KERNELS_BF16(linear) = {NULL,
                        linear_forward,
                        linear_backward_activation,
                        linear_backward_bias,
                        linear_backward_x,
                        linear_backward_weight,
                        false};
#endif
