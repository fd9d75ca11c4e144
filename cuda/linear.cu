#include "cuda/activation.cuh"
#include "cuda/gemm.cuh"
#include "cuda/slabs.cuh"
#include "ops/linear.h"

namespace
{

/* z += bias, y = activation(z); z may be y. A block takes SLAB_ROWS rows of some columns, so that a
   thread reads its column's bias once. (An epilogue of cublasLt's could do it in the product's own
   pass: BIAS and RELU_BIAS, and GELU_AUX_BIAS for gelu_tanh, which keeps z too. The rest of the
   activations it has not.) */
template <class T, sb_activation ACTIVATION>
__global__ void activate(int64_t rows, int64_t out, const T *__restrict__ bias, T *z, T *y)
{
    const int64_t blocks = column_blocks(out), slabs = (rows + SLAB_ROWS - 1) / SLAB_ROWS;
    for (int64_t block = blockIdx.x; block < blocks * slabs; block += gridDim.x) {
        const int64_t slab = block / blocks, c = block % blocks * SLAB_COLUMNS + threadIdx.x;
        const int64_t end = c < out ? slab_end(slab, rows) : 0;
        const T b = bias && c < out ? bias[c] : 0;
        for (int64_t r = slab * SLAB_ROWS + threadIdx.y; r < end; r += blockDim.y) {
            const T value = z[r * out + c] + b;
            if (ACTIVATION == SB_IDENTITY || (bias && z != y))
                z[r * out + c] = value;
            if (ACTIVATION != SB_IDENTITY)
                y[r * out + c] = activation_value(ACTIVATION, value);
        }
    }
}

template <class T>
bool forward(const struct linear_shape *s, const void *x, const void *weight, const void *bias,
             void *kept, void *y)
{
    typedef void kernel(int64_t rows, int64_t out, const T *bias, T *z, T *y);
    static kernel *const kernels[] = {activate<T, SB_IDENTITY>, activate<T, SB_RELU>,
                                      activate<T, SB_GELU>,     activate<T, SB_GELU_TANH>,
                                      activate<T, SB_SILU>,     activate<T, SB_TANH>,
                                      activate<T, SB_SIGMOID>};
    const int64_t rows = s->rows, in = s->in, out = s->out;
    T *z = (T *)(kept ? kept : y);
    if (!(s->by_row ? gemm_by_row<T> : gemm<T>)("linear", {false, true, rows, out, in, in, in, out},
                                                gemm_single, (const T *)x, (const T *)weight, 0, z))
        return false;
    if ((!bias && s->activation == SB_IDENTITY) || rows * out == 0)
        return true;
    LAUNCH(kernels[s->activation], dim3(blocks_for(slab_count(rows) * column_blocks(out), 1)),
           column_block(rows), 0, stream, rows, out, (const T *)bias, z, (T *)y);
    return launched("linear");
}

/* The activation's slope, from z or from y as linear_keeps_y says. */
template <class T> __device__ T slope(sb_activation activation, T kept)
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
template <class T, sb_activation ACTIVATION>
__global__ void deactivate(int64_t n, const T *kept, const T *__restrict__ dy, T *dz)
{
    GRID_STRIDE(i, n)
    dz[i] = dy[i] * slope(ACTIVATION, kept[i]);
}

template <class T>
bool backward_activation(const struct linear_shape *s, const void *kept, const void *dy, void *dz)
{
    typedef void kernel(int64_t n, const T *kept, const T *dy, T *dz);
    static kernel *const kernels[] = {nullptr,
                                      deactivate<T, SB_RELU>,
                                      deactivate<T, SB_GELU>,
                                      deactivate<T, SB_GELU_TANH>,
                                      deactivate<T, SB_SILU>,
                                      deactivate<T, SB_TANH>,
                                      deactivate<T, SB_SIGMOID>};
    const int64_t n = s->rows * s->out;
    if (s->activation == SB_IDENTITY || n == 0)
        return true;
    LAUNCH(kernels[s->activation], dim3(blocks_for(n, THREADS)), dim3(THREADS), 0, stream, n,
           (const T *)kept, (const T *)dy, (T *)dz);
    return launched("linear");
}

/* z = x W' + b: the part of dbias that each slab of rows has. */
template <class T>
__global__ void sum_slabs(int64_t rows, int64_t slabs, int64_t out, const T *__restrict__ dz,
                          T *__restrict__ partial)
{
    const int64_t blocks = column_blocks(out);
    for (int64_t block = blockIdx.x; block < blocks * slabs; block += gridDim.x) {
        const int64_t slab = block / blocks, c = block % blocks * SLAB_COLUMNS + threadIdx.x;
        const int64_t end = c < out ? slab_end(slab, rows) : 0;
        T sum = 0;
        for (int64_t r = slab * SLAB_ROWS + threadIdx.y; r < end; r += blockDim.y)
            sum += dz[r * out + c];
        sum = column_sum(sum);
        if (c < out && threadIdx.y == 0)
            partial[slab * out + c] = sum;
    }
}

template <class T>
bool backward_bias(const struct linear_shape *s, const void *dz, void *partial, bool fresh,
                   void *dbias)
{
    const int64_t rows = s->rows, out = s->out, slabs = slab_count(rows);
    if (slabs * out > 0)
        LAUNCH(sum_slabs<T>, dim3(blocks_for(slabs * column_blocks(out), 1)), column_block(rows), 0,
               stream, rows, slabs, out, (const T *)dz, (T *)partial);
    add_slabs(slabs, out, (const T *)partial, slab_sums<T, 1>{{{(T *)dbias, fresh}}});
    return launched("linear");
}

template <class T>
bool backward_x(const struct linear_shape *s, const void *dz, const void *weight, bool fresh,
                void *dx)
{
    return gemm("linear", {false, false, s->rows, s->in, s->out, s->out, s->in, s->in}, gemm_single,
                (const T *)dz, (const T *)weight, fresh ? 0 : 1, (T *)dx);
}

template <class T>
bool backward_weight(const struct linear_shape *s, const void *dz, const void *x, bool fresh,
                     void *dweight)
{
    return gemm("linear", {true, false, s->out, s->in, s->rows, s->out, s->in, s->in}, gemm_single,
                (const T *)dz, (const T *)x, fresh ? 0 : 1, (T *)dweight);
}

} // namespace

KERNELS(linear, forward<T>, backward_activation<T>, backward_bias<T>, backward_x<T>,
        backward_weight<T>);
