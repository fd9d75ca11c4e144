#include "cuda/dropout_row.cuh"
#include "cuda/slabs.cuh"
#include "ops/layer_norm.h"

namespace
{

/* layer_norm_forward in the element type. */
template <class T> struct forward_arguments {
    real_of<T> epsilon;
    const T *x, *branch, *gain, *bias;
    dropout call;
    T *sum, *y;
    real_of<T> *mean, *scale;
};

/* The sums of d = x - (first mean) correct the rounding of that mean (Chan, Golub and LeVeque
   1983), so a row of equal values has variance 0 for any magnitude. */
template <class T, int GROUP>
__device__ void row_moments(const row_group<GROUP> &group, int64_t C, const T *x, real_of<T> &mean,
                            real_of<T> &variance)
{
    typedef real_of<T> real;
    real sum = 0, sum_d = 0, sum_d2 = 0;
    for (int64_t c = group.lane; c < C; c += GROUP)
        sum += (real)x[c];
    const real first = group.sum(sum) / (real)C;
    for (int64_t c = group.lane; c < C; c += GROUP) {
        real d = (real)x[c] - first;
        sum_d += d;
        sum_d2 += d * d;
    }
    sum_d = group.sum(sum_d);
    sum_d2 = group.sum(sum_d2);
    variance = (sum_d2 - sum_d * (sum_d / (real)C)) / (real)C;
    variance = variance < 0 ? 0 : variance;
    mean = first + sum_d / (real)C;
}

/* sum = x + dropout(branch), of one row. */
template <class T, int GROUP>
__device__ void add_branch(const row_group<GROUP> &group, int64_t C, const forward_arguments<T> &f)
{
    typedef real_of<T> real;
    const real scale = (real)f.call.scale;
    const int64_t start = group.row * C;
    dropout_row<GROUP> row(f.call, group, C);
    for (int64_t c = group.lane; c - group.lane < C; c += GROUP) {
        const bool dropped = row.next_is_dropped();
        if (c < C) {
            const real kept = dropped ? (real)0 : (real)f.branch[start + c] * scale;
            f.sum[start + c] = (real)f.x[start + c] + kept;
        }
    }
}

/* Each thread reads only elements that it wrote itself, so x may be the sum. For bf16 it is the
   rounded sum, which backward reads too. */
template <class T, int GROUP>
__global__ void forward_rows(int64_t rows, int64_t C, forward_arguments<T> f)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const T *x = f.x + group.row * C;
    if (f.branch) {
        add_branch(group, C, f);
        x = f.sum + group.row * C;
    }
    real mean, variance;
    row_moments(group, C, x, mean, variance);
    const real scale = 1 / real_sqrt(variance + f.epsilon);
    if (group.lane == 0) {
        f.mean[group.row] = mean;
        f.scale[group.row] = scale;
    }
    T *y = f.y + group.row * C;
    for (int64_t c = group.lane; c < C; c += GROUP) {
        const real gain = f.gain[c], bias = f.bias ? (real)f.bias[c] : 0;
        y[c] = gain * (((real)x[c] - mean) * scale) + bias;
    }
}

template <class T> bool forward(const struct layer_norm_forward *f)
{
    const forward_arguments<T> arguments = {(real_of<T>)f->epsilon,
                                            (const T *)f->x,
                                            (const T *)f->branch,
                                            (const T *)f->gain,
                                            (const T *)f->bias,
                                            f->dropout,
                                            (T *)f->sum,
                                            (T *)f->y,
                                            (real_of<T> *)f->mean,
                                            (real_of<T> *)f->scale};
    LAUNCH_ROWS(forward_rows, T, f->rows, f->C, arguments);
    return launched("layer_norm");
}

/* layer_norm_backward in the element type. */
template <class T> struct backward_arguments {
    const T *x, *gain;
    const real_of<T> *mean, *scale;
    const T *dy, *dsum;
    slab_sum<T> dx, dbranch;
    dropout call;
    real_of<T> *partial;
};

/* y_c = gain_c h_c + bias_c, h_c = (x_c - mean) scale; with u = gain dy, its mean and that of u h.
   The part of dx that comes from dsum is that of sum = x + dropout(branch). */
template <class T, int GROUP>
__global__ void backward_rows(int64_t rows, int64_t C, backward_arguments<T> b)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const int64_t start = group.row * C;
    const T *x = b.x + start, *dy = b.dy + start, *gain = b.gain;
    const real mean = b.mean[group.row], scale = b.scale[group.row];
    real sum_u = 0, sum_uh = 0;
    for (int64_t c = group.lane; c < C; c += GROUP) {
        real h = ((real)x[c] - mean) * scale, u = (real)gain[c] * (real)dy[c];
        sum_u += u;
        sum_uh += u * h;
    }
    const real mean_u = group.sum(sum_u) / (real)C, mean_uh = group.sum(sum_uh) / (real)C;
    const real kept_scale = (real)b.call.scale;
    dropout_row<GROUP> row(b.call, group, C);
    for (int64_t c = group.lane; c - group.lane < C; c += GROUP) {
        const bool dropped = row.next_is_dropped();
        if (c >= C)
            continue;
        real h = ((real)x[c] - mean) * scale, u = (real)gain[c] * (real)dy[c];
        real part = (u - mean_u - h * mean_uh) * scale, dsum = b.dsum ? (real)b.dsum[start + c] : 0;
        if (b.dx.to)
            b.dx.to[start + c] = before(b.dx.fresh, b.dx.to[start + c]) + part + dsum;
        if (b.dbranch.to) {
            const real kept = dropped ? (real)0 : (part + dsum) * kept_scale;
            b.dbranch.to[start + c] = before(b.dbranch.fresh, b.dbranch.to[start + c]) + kept;
        }
    }
}

/* The part of each slab of rows in dgain_c = sum of dy_c h_c and dbias_c = sum of dy_c. */
template <class T>
__global__ void sum_slabs(int64_t rows, int64_t slabs, int64_t C, backward_arguments<T> b)
{
    typedef real_of<T> real;
    const int64_t blocks = column_blocks(C);
    for (int64_t block = blockIdx.x; block < blocks * slabs; block += gridDim.x) {
        const int64_t slab = block / blocks, c = block % blocks * SLAB_COLUMNS + threadIdx.x;
        const int64_t end = slab_end(slab, rows);
        real dgain = 0, dbias = 0;
        for (int64_t r = slab * SLAB_ROWS + threadIdx.y; c < C && r < end; r += blockDim.y) {
            real h = ((real)b.x[r * C + c] - b.mean[r]) * b.scale[r];
            dgain += (real)b.dy[r * C + c] * h;
            dbias += (real)b.dy[r * C + c];
        }
        dgain = column_sum(dgain);
        dbias = column_sum(dbias);
        if (c < C && threadIdx.y == 0) {
            b.partial[slab * 2 * C + c] = dgain;
            b.partial[slab * 2 * C + C + c] = dbias;
        }
    }
}

template <class T> slab_sum<T> target(const struct layer_norm_gradient &dx)
{
    return {(T *)dx.to, dx.fresh};
}

template <class T> bool backward(const struct layer_norm_backward *b)
{
    const backward_arguments<T> arguments = {(const T *)b->x,
                                             (const T *)b->gain,
                                             (const real_of<T> *)b->mean,
                                             (const real_of<T> *)b->scale,
                                             (const T *)b->dy,
                                             (const T *)b->dsum,
                                             target<T>(b->dx),
                                             target<T>(b->dbranch),
                                             b->dropout,
                                             (real_of<T> *)b->partial};
    const int64_t rows = b->rows, C = b->C, slabs = slab_count(rows);
    if (b->dx.to || b->dbranch.to)
        LAUNCH_ROWS(backward_rows, T, rows, C, arguments);
    if ((b->dgain.to || b->dbias.to) && slabs * C > 0)
        LAUNCH(sum_slabs<T>, dim3(blocks_for(slabs * column_blocks(C), 1)), column_block(rows), 0,
               stream, rows, slabs, C, arguments);
    add_slabs(slabs, C, (const real_of<T> *)b->partial,
              slab_sums<T, 2>{{target<T>(b->dgain), target<T>(b->dbias)}});
    return launched("layer_norm");
}

} // namespace

KERNELS_AND_BF16(layer_norm, forward<T>, backward<T>);
