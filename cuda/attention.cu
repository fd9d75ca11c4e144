/*
 * Composed attention: the weights are stored, and each step is a kernel. This file has the forward,
 * attention_backward.cu the backward:
 *
 *     s = q k'                                    dk += scale ds' q   dq += scale ds k
 *     a = softmax(scale s + bias), masked         ds = a (da - rowsum(a da))   dbias += ds
 *     m = dropout(a)                              da = dropout(dm)
 *     o = m v                                     dm = do v'   dv += m' do
 */
#include "cuda/attention_steps.cuh"

namespace
{

/* s_i becomes a_i = softmax over the kept j of scale s_ij + bias_ij, and 0 elsewhere. If weights
   are stored in a narrower type, they are rounded from a. */
template <class T, int GROUP>
__global__ void softmax_rows(int64_t rows, int64_t Lk, attention a, const T *bias, real_of<T> *s,
                             T *weights)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const masked_row row(a.mask, {a.B, a.H, a.Lq, Lk}, group.row);
    const real scale = (real)a.scale, factor = bias ? 1 : scale;
    const int64_t *step = a.bias;
    s += group.row * Lk;
    weights += group.row * Lk;
    real max = -INFINITY, sum = 0;
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        if (!row.keeps(j))
            continue;
        if (bias)
            s[j] = scale * s[j] +
                   (real)bias[row.b * step[0] + row.h * step[1] + row.i * step[2] + j * step[3]];
        max = real_max(max, s[j]);
    }
    max = group.max(max);
    for (int64_t j = group.lane; j < Lk; j += GROUP)
        sum += row.keeps(j) ? real_exp(factor * (s[j] - max)) : 0;
    sum = group.sum(sum);
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        s[j] = row.keeps(j) ? real_exp(factor * (s[j] - max)) / sum : 0;
        if (sizeof(T) < sizeof(real))
            weights[j] = (T)s[j];
    }
}

template <class T> bool forward(const attention *a, const attention_forward *f)
{
    typedef real_of<T> real;
    const int64_t rows = a->B * a->H * a->Lq;
    const bool apart = sizeof(T) < sizeof(real);
    const scratch memory("attention", apart ? (size_t)(rows * a->Lk) * sizeof(real) : 0);
    real *const s = apart ? memory.as<real>() : (real *)f->weights;
    const pair_product<real> product = {
        s, a->dropout.threshold > 0, f->v, a->v, f->y, a->y, a->Dv, true};
    if (!memory || !pairs<T>(*a, a->D, f->q, a->q, f->k, a->k, a->cosine, s))
        return false;
    if (rows > 0 && a->Lk > 0)
        LAUNCH_ROWS(softmax_rows, T, rows, a->Lk, *a, (const T *)f->bias, s, (T *)f->weights);
    return launched("attention") && over_keys<T>(*a, product);
}

__global__ void move_blocks(int64_t n, int64_t bytes, char *to, int64_t to_stride, const char *from,
                            int64_t from_stride, const int32_t *rows)
{
    GRID_STRIDE(at, n * bytes)
    {
        const int64_t i = at / bytes, row = rows ? rows[i] : i;
        to[i * to_stride + at % bytes] = from[row * from_stride + at % bytes];
    }
}

bool copy_blocks(int64_t n, size_t bytes, void *to, size_t to_stride, const void *from,
                 size_t from_stride, const int32_t *rows)
{
    const int64_t size = (int64_t)bytes;
    if (n * size == 0)
        return true;
    const size_t row_bytes = rows ? (size_t)n * sizeof *rows : 0;
    const scratch there("kv_cache", row_bytes);
    if (!there ||
        !cuda_ok(cudaMemcpyAsync(there.as<void>(), rows, row_bytes, cudaMemcpyHostToDevice, stream),
                 "kv_cache"))
        return false;
    LAUNCH(move_blocks, dim3(blocks_for(n * size, THREADS)), dim3(THREADS), 0, stream, n, size,
           (char *)to, (int64_t)to_stride, (const char *)from, (int64_t)from_stride,
           rows ? there.as<const int32_t>() : nullptr);
    return launched("kv_cache");
}

} // namespace

KERNELS_AND_BF16(attention, forward<T>, attention_composed_backward<T>, attention_tiles_forward<T>,
                 attention_tiles_backward<T>, attention_tiles_rows<T>, copy_blocks);
