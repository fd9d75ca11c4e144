#include "cuda/activation.cuh"
#include "cuda/broadcast.cuh"
#include "cuda/divisor.cuh"
#include "cuda/gemm.cuh"
#include "cuda/slabs.cuh"
#include "ops/linear.h"
#include <type_traits>

namespace
{

int64_t pitch_of(const struct linear_shape *s)
{
    return s->pitch ? s->pitch : s->out;
}

/* The number of linears. */
int64_t count_of(const struct linear_shape *s)
{
    return s->group.count ? s->group.count : 1;
}

/* z += bias, y = activation(z); z may be y. A row has `packs` packs. The y index of a block is that
   of its linear in a group, whose biases and results are `b_step` and `z_step` apart; groups have
   no activation. (cublasLt has an epilogue for relu too, but does not document its result for NaN.)
 */
template <class T, class Y, sb_activation ACTIVATION>
__global__ void activate(int64_t rows, int64_t out, divisor packs, int64_t pitch,
                         RESTRICTED(const T) bias, int64_t b_step, Y *z, Y *y, int64_t z_step)
{
    typedef pack<real_of<Y>, PACK<Y>> values;
    const int64_t item = ACTIVATION == SB_ACTIVATION_IDENTITY ? blockIdx.y : 0;
    GRID_STRIDE(i, rows * packs.d)
    {
        const int64_t row = packs.quotient(i), c = (i - row * packs.d) * PACK<Y>, left = out - c;
        const int64_t at = item * z_step + row * pitch + c;
        values value = values::load(z + at, left);
        if (bias) {
            const values b = values::load(&bias[item * b_step + c], left);
            for (int e = 0; e < PACK<Y>; e++)
                value.of[e] += b.of[e];
        }
        if (ACTIVATION == SB_ACTIVATION_IDENTITY || (bias && z != y))
            value.store(z + at, left);
        if constexpr (ACTIVATION != SB_ACTIVATION_IDENTITY) {
            for (int e = 0; e < PACK<Y>; e++)
                value.of[e] = activation_value(ACTIVATION, value.of[e]);
            value.store(y + at, left);
        }
    }
}

/* z = bias in every row */
template <class T> bool spread_bias(const struct linear_shape *s, const T *bias, T *z)
{
    broadcast plan = {};
    plan.rank = 3;
    plan.dim[0] = count_of(s);
    plan.dim[1] = s->rows;
    plan.dim[2] = s->out;
    plan.stride[0][0] = s->group.y;
    plan.stride[1][0] = s->group.bias;
    plan.stride[0][1] = pitch_of(s);
    plan.stride[0][2] = plan.stride[1][2] = 1;
    return broadcast_copy<T>("linear", plan, bias, false, z);
}

/* Queues activate if there is work; bias may be NULL. */
template <class T, class Y>
bool activate_rows(const struct linear_shape *s, const T *bias, Y *z, Y *y)
{
    typedef void kernel(int64_t rows, int64_t out, divisor packs, int64_t pitch,
                        RESTRICTED(const T) bias, int64_t b_step, Y * z, Y * y, int64_t z_step);
    static kernel *const kernels[] = {
        activate<T, Y, SB_ACTIVATION_IDENTITY>, activate<T, Y, SB_ACTIVATION_RELU>,
        activate<T, Y, SB_ACTIVATION_GELU>,     activate<T, Y, SB_ACTIVATION_GELU_TANH>,
        activate<T, Y, SB_ACTIVATION_SILU>,     activate<T, Y, SB_ACTIVATION_TANH>,
        activate<T, Y, SB_ACTIVATION_SIGMOID>};
    if ((!bias && s->activation == SB_ACTIVATION_IDENTITY) || s->rows * s->out == 0)
        return true;
    const int64_t packs = pack_count(s->out, PACK<Y>);
    const unsigned blocks = blocks_for(s->rows * packs, THREADS);
    LAUNCH(kernels[s->activation], dim3(blocks, (unsigned)count_of(s)), dim3(THREADS), 0, stream,
           s->rows, s->out, divisor(packs), pitch_of(s), bias, s->group.bias, z, y, s->group.y);
    return launched("linear");
}

/* Whether the epilogue of the product applies the activation: gelu_tanh of bf16, where its
   approximation errs by less than the rounding of y. */
template <class T> bool activates(const struct linear_shape *s, const T *kept)
{
    return std::is_same_v<T, bf16> && kept && s->activation == SB_ACTIVATION_GELU_TANH;
}

/* x W' + bias by one product, then the activation in the same or in a pass of its own. Not for
   float with an activation, which adds the bias in that pass. */
template <class T>
bool forward_at_once(const struct linear_shape *s, const T *x, const T *weight, const T *bias,
                     T *kept, T *y, bool *failed)
{
    T *const z = kept ? kept : y;
    if (!bias || s->by_row || (s->activation != SB_ACTIVATION_IDENTITY && !std::is_same_v<T, bf16>))
        return false;
    if (activates(s, kept) && gemm_with_bias(*s, x, weight, bias, kept, y))
        return true;
    if (!gemm_with_bias(*s, x, weight, bias, (T *)nullptr, z))
        return false;
    *failed = !activate_rows<T, T>(s, nullptr, z, y);
    return true;
}

/* If z is narrower than the sums of products, the sums start with the bias, so that z is rounded
   once. Otherwise rounding could change the sign of a unit with a large bias. */
template <class T, class Y>
bool forward_to(const struct linear_shape *s, const T *x, const T *weight, const T *bias, Y *kept,
                Y *y)
{
    const int64_t rows = s->rows, in = s->in, out = s->out, pitch = pitch_of(s);
    const gemm_shape size = {false, true, rows, out, in, in, in, pitch, s->tf32};
    const gemm_batch batch = {count_of(s), 0, s->group.weight, s->group.y};
    Y *const z = kept ? kept : y;
    constexpr bool narrow = !std::is_same<Y, real_of<Y>>::value;
    if constexpr (std::is_same<T, Y>::value && !std::is_same<T, double>::value) {
        bool failed = false;
        if (forward_at_once(s, x, weight, bias, kept, y, &failed))
            return !failed;
    }
    const bool begun = narrow && bias;
    if constexpr (narrow)
        if (bias && !spread_bias(s, bias, z))
            return false;
    if (!(s->by_row ? gemm_by_row<T, Y> : gemm<T, Y>)("linear", size, batch, x, weight,
                                                      begun ? 1 : 0, z))
        return false;
    return activate_rows<T, Y>(s, begun ? nullptr : bias, z, y);
}

template <class T>
bool forward(const struct linear_shape *s, const void *x, const void *weight, const void *bias,
             void *kept, void *y)
{
    const T *const in = (const T *)x, *const w = (const T *)weight, *const b = (const T *)bias;
    typedef real_of<T> real;
    return s->wide ? forward_to(s, in, w, b, (real *)kept, (real *)y)
                   : forward_to(s, in, w, b, (T *)kept, (T *)y);
}

/* The activation's slope, from y if linear_keeps_y, else from z. */
template <class T> __device__ T slope(sb_activation activation, T kept)
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
template <class T, sb_activation ACTIVATION>
__global__ void deactivate(int64_t n, const T *kept, RESTRICTED(const T) dy, T *dz)
{
    GRID_STRIDE(i, pack_count(n, PACK<T>))
    {
        const int64_t at = i * PACK<T>, left = n - at;
        const auto z = real_pack<T>::load(kept + at, left);
        auto d = real_pack<T>::load(&dy[at], left);
        for (int e = 0; e < PACK<T>; e++)
            d.of[e] *= slope(ACTIVATION, z.of[e]);
        d.store(dz + at, left);
    }
}

template <class T>
bool backward_activation(const struct linear_shape *s, const void *kept, const void *dy, void *dz)
{
    typedef void kernel(int64_t n, const T *kept, RESTRICTED(const T) dy, T *dz);
    static kernel *const kernels[] = {nullptr,
                                      deactivate<T, SB_ACTIVATION_RELU>,
                                      deactivate<T, SB_ACTIVATION_GELU>,
                                      deactivate<T, SB_ACTIVATION_GELU_TANH>,
                                      deactivate<T, SB_ACTIVATION_SILU>,
                                      deactivate<T, SB_ACTIVATION_TANH>,
                                      deactivate<T, SB_ACTIVATION_SIGMOID>};
    const int64_t n = s->rows * s->out;
    if (s->activation == SB_ACTIVATION_IDENTITY || n == 0)
        return true;
    LAUNCH_EACH(pack_count(n, PACK<T>), kernels[s->activation], n, (const T *)kept, (const T *)dy,
                (T *)dz);
    return launched("linear");
}

/* The blocks that the columns of a slab take, each of SLAB_COLUMNS packs. */
template <class T> KERNEL_INLINE int64_t pack_blocks(int64_t out)
{
    return column_blocks(pack_count(out, PACK<T>));
}

/* z = x W' + b: the part of each slab of rows in dbias. The y index of a block is that of its
   linear in a group, whose dz are `dz_step` apart; `partial` has room for SUMS linears. */
template <class T, int SUMS>
__global__ void sum_slabs(int64_t rows, int64_t slabs, int64_t out, RESTRICTED(const T) dz,
                          int64_t pitch, int64_t dz_step, real_of<T> *partial)
{
    SHARED(real_pack<T>, sums, [SLAB_LANES][SLAB_COLUMNS]);
    const int64_t blocks = pack_blocks<T>(out);
    for (int64_t block = blockIdx.x; block < blocks * slabs; block += gridDim.x) {
        const int64_t slab = block / blocks;
        const int64_t c = (block % blocks * SLAB_COLUMNS + threadIdx.x) * PACK<T>, left = out - c;
        const int64_t end = left > 0 ? slab_end(slab, rows) : 0;
        real_pack<T> sum = real_pack<T>::all(0);
#pragma unroll /* all loads are under way together */
        for (int n = 0; n < SLAB_ROWS / SLAB_LANES; n++) {
            const int64_t r = slab * SLAB_ROWS + n * SLAB_LANES + threadIdx.y;
            if (r >= end)
                continue;
            const auto row = real_pack<T>::load(&dz[blockIdx.y * dz_step + r * pitch + c], left);
            for (int e = 0; e < PACK<T>; e++)
                sum.of[e] += row.of[e];
        }
        sums[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        for (unsigned lane = 1; threadIdx.y == 0 && lane < blockDim.y; lane++)
            for (int e = 0; e < PACK<T>; e++)
                sum.of[e] += sums[lane][threadIdx.x].of[e];
        if (threadIdx.y == 0 && left > 0)
            sum.store(partial + (slab * SUMS + blockIdx.y) * out + c, left);
        __syncthreads(); /* before `sums` is written again */
    }
}

/* The sums of T of a single linear or of a group, from their parts. */
template <class T, int SUMS>
void add_bias_slabs(const struct linear_shape *s, const real_of<T> *partial, bool fresh, T *dbias)
{
    slab_sums<T, SUMS> sums = {};
    for (int64_t i = 0; i < count_of(s); i++)
        sums.sum[i] = {dbias + i * s->group.bias, fresh};
    add_slabs(slab_count(s->rows), s->out, partial, sums);
}

template <class T, int SUMS>
bool sum_bias(const struct linear_shape *s, const T *dz, real_of<T> *partial, bool fresh,
              void *dbias)
{
    const int64_t rows = s->rows, out = s->out, slabs = slab_count(rows);
    const dim3 blocks(blocks_for(slabs * pack_blocks<T>(out), 1), (unsigned)count_of(s));
    if (slabs * out > 0)
        LAUNCH((sum_slabs<T, SUMS>), blocks, column_block(rows), 0, stream, rows, slabs, out, dz,
               pitch_of(s), s->group.y, partial);
    if (s->wide)
        add_bias_slabs<real_of<T>, SUMS>(s, partial, fresh, (real_of<T> *)dbias);
    else
        add_bias_slabs<T, SUMS>(s, partial, fresh, (T *)dbias);
    return launched("linear");
}

template <class T>
bool backward_bias(const struct linear_shape *s, const void *dz, void *partial, bool fresh,
                   void *dbias)
{
    typedef real_of<T> real;
    return s->group.count
               ? sum_bias<T, LINEAR_GROUP>(s, (const T *)dz, (real *)partial, fresh, dbias)
               : sum_bias<T, 1>(s, (const T *)dz, (real *)partial, fresh, dbias);
}

template <class T>
bool backward_x(const struct linear_shape *s, const void *dz, const void *weight, bool fresh,
                void *dx)
{
    const gemm_shape size = {false,       false, s->rows, s->in,  s->out,
                             pitch_of(s), s->in, s->in,   s->tf32};
    const int beta = fresh ? 0 : 1;
    if (s->wide)
        return gemm("linear", size, gemm_single, (const T *)dz, (const T *)weight, beta,
                    (real_of<T> *)dx);
    return gemm("linear", size, gemm_single, (const T *)dz, (const T *)weight, beta, (T *)dx);
}

template <class T>
bool backward_weight(const struct linear_shape *s, const void *dz, const void *x, bool fresh,
                     void *dweight)
{
    const gemm_shape size = {true,        false, s->out, s->in,  s->rows,
                             pitch_of(s), s->in, s->in,  s->tf32};
    const gemm_batch batch = {count_of(s), s->group.y, 0, s->group.weight};
    const int beta = fresh ? 0 : 1;
    if (s->wide)
        return gemm("linear", size, batch, (const T *)dz, (const T *)x, beta,
                    (real_of<T> *)dweight);
    return gemm("linear", size, batch, (const T *)dz, (const T *)x, beta, (T *)dweight);
}

} // namespace

KERNELS_AND_BF16(linear, nullptr, forward<T>, backward_activation<T>, backward_bias<T>,
                 backward_x<T>, backward_weight<T>, true);
