#include "cuda/row_group.cuh"
#include "cuda/slabs.cuh"
#include "ops/rms_norm.h"

namespace
{

template <class T, int GROUP>
__global__ void forward_rows(int64_t rows, int64_t C, real_of<T> epsilon, const T *x, const T *gain,
                             T *y, real_of<T> *all_scales)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    y += group.row * C;
    real sum = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        sum += (real)x[c] * (real)x[c];
    const real scale = 1 / real_sqrt(group.sum(sum) / (real)C + epsilon);
    for (int64_t c = group.lane; c < C; c += GROUP)
        y[c] = (real)gain[c] * ((real)x[c] * scale);
    if (group.lane == 0)
        all_scales[group.row] = scale;
}

template <class T>
bool forward(int64_t rows, int64_t C, double epsilon, const void *x, const void *gain, void *y,
             void *scale)
{
    LAUNCH_ROWS(forward_rows, T, rows, C, (real_of<T>)epsilon, (const T *)x, (const T *)gain,
                (T *)y, (real_of<T> *)scale);
    return launched("rms_norm");
}

/* y_c = gain_c h_c, h_c = x_c scale; mean_uh is the mean of u h, u = gain dy. */
template <class T, int GROUP>
__global__ void backward_rows(int64_t rows, int64_t C, const T *x, const T *gain,
                              const real_of<T> *all_scales, const T *dy, bool fresh, T *dx)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    x += group.row * C;
    dy += group.row * C;
    dx += group.row * C;
    const real scale = all_scales[group.row];
    real sum_uh = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        sum_uh += (real)gain[c] * (real)dy[c] * ((real)x[c] * scale);
    const real mean_uh = group.sum(sum_uh) / (real)C;
    for (int64_t c = group.lane; c < C; c += GROUP) {
        real h = (real)x[c] * scale, u = (real)gain[c] * (real)dy[c];
        dx[c] = before(fresh, dx[c]) + (u - h * mean_uh) * scale;
    }
}

/* The part of each slab of rows in dgain_c = sum of dy_c h_c. */
template <class T>
__global__ void sum_slabs(int64_t rows, int64_t slabs, int64_t C, RESTRICTED(const T) x,
                          RESTRICTED(const real_of<T>) scale, RESTRICTED(const T) dy,
                          RESTRICTED(real_of<T>) partial)
{
    typedef real_of<T> real;
    const int64_t blocks = column_blocks(C);
    for (int64_t block = blockIdx.x; block < blocks * slabs; block += gridDim.x) {
        const int64_t slab = block / blocks, c = block % blocks * SLAB_COLUMNS + threadIdx.x;
        const int64_t end = slab_end(slab, rows);
        real dgain = 0;
        for (int64_t r = slab * SLAB_ROWS + threadIdx.y; c < C && r < end; r += blockDim.y)
            dgain += (real)dy[r * C + c] * ((real)x[r * C + c] * scale[r]);
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
        LAUNCH_ROWS(backward_rows, T, rows, C, (const T *)x, (const T *)gain,
                    (const real_of<T> *)scale, (const T *)dy, dx.fresh, (T *)dx.to);
    if (dgain.to && slabs * C > 0)
        LAUNCH(sum_slabs<T>, dim3(blocks_for(slabs * column_blocks(C), 1)), column_block(rows), 0,
               stream, rows, slabs, C, (const T *)x, (const real_of<T> *)scale, (const T *)dy,
               (real_of<T> *)partial);
    add_slabs(slabs, C, (const real_of<T> *)partial,
              slab_sums<T, 1>{{{(T *)dgain.to, dgain.fresh}}});
    return launched("rms_norm");
}

} // namespace

KERNELS_AND_BF16(rms_norm, forward<T>, backward<T>);
