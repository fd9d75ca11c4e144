#include "cuda/row_group.cuh"
#include "cuda/slabs.cuh"
#include "ops/rms_norm.h"

namespace
{

template <class T, int GROUP>
__global__ void forward_rows(int64_t rows, int64_t C, T epsilon, const T *x, const T *gain, T *y,
                             T *all_scales)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    y += group.row * C;
    T sum = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        sum += x[c] * x[c];
    const T scale = 1 / real_sqrt(group.sum(sum) / (T)C + epsilon);
    for (int64_t c = group.lane; c < C; c += GROUP)
        y[c] = gain[c] * (x[c] * scale);
    if (group.lane == 0)
        all_scales[group.row] = scale;
}

template <class T>
bool forward(int64_t rows, int64_t C, double epsilon, const void *x, const void *gain, void *y,
             void *scale)
{
    LAUNCH_ROWS(forward_rows, T, rows, C, (T)epsilon, (const T *)x, (const T *)gain, (T *)y,
                (T *)scale);
    return launched("rms_norm");
}

/* y_c = gain_c h_c, h_c = x_c scale; mean_uh is the mean of u h, u = gain dy. */
template <class T, int GROUP>
__global__ void backward_rows(int64_t rows, int64_t C, const T *x, const T *gain,
                              const T *all_scales, const T *dy, bool fresh, T *dx)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    dy += group.row * C;
    dx += group.row * C;
    const T scale = all_scales[group.row];
    T sum_uh = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        sum_uh += gain[c] * dy[c] * (x[c] * scale);
    const T mean_uh = group.sum(sum_uh) / (T)C;
    for (int64_t c = group.lane; c < C; c += GROUP) {
        T h = x[c] * scale, u = gain[c] * dy[c];
        dx[c] = before(fresh, dx[c]) + (u - h * mean_uh) * scale;
    }
}

/* The part of dgain_c = sum of dy_c h_c that each slab of rows has. */
template <class T>
__global__ void sum_slabs(int64_t rows, int64_t slabs, int64_t C, const T *__restrict__ x,
                          const T *__restrict__ scale, const T *__restrict__ dy,
                          T *__restrict__ partial)
{
    const int64_t blocks = column_blocks(C);
    for (int64_t block = blockIdx.x; block < blocks * slabs; block += gridDim.x) {
        const int64_t slab = block / blocks, c = block % blocks * SLAB_COLUMNS + threadIdx.x;
        const int64_t end = slab_end(slab, rows);
        T dgain = 0;
        for (int64_t r = slab * SLAB_ROWS + threadIdx.y; c < C && r < end; r += blockDim.y)
            dgain += dy[r * C + c] * (x[r * C + c] * scale[r]);
        dgain = column_sum(dgain);
        if (c < C && threadIdx.y == 0)
            partial[slab * C + c] = dgain;
    }
}

template <class T>
bool backward(int64_t rows, int64_t C, const void *x, const void *gain, const void *scale,
              const void *dy, struct rms_norm_gradient dx, struct rms_norm_gradient dgain,
              void *partial)
{
    const int64_t slabs = slab_count(rows);
    if (dx.to)
        LAUNCH_ROWS(backward_rows, T, rows, C, (const T *)x, (const T *)gain, (const T *)scale,
                    (const T *)dy, dx.fresh, (T *)dx.to);
    if (dgain.to && slabs * C > 0)
        LAUNCH(sum_slabs<T>, dim3(blocks_for(slabs * column_blocks(C), 1)), column_block(rows), 0,
               stream, rows, slabs, C, (const T *)x, (const T *)scale, (const T *)dy, (T *)partial);
    add_slabs(slabs, C, (const T *)partial, slab_sums<T, 1>{{{(T *)dgain.to, dgain.fresh}}});
    return launched("rms_norm");
}

} // namespace

KERNELS(rms_norm, forward<T>, backward<T>);
