#include "cuda/dropout_row.cuh"
#include "cuda/lane_row.cuh"
#include "cuda/slabs.cuh"
#include "ops/normalization.h"

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

template <class real> struct moments {
    real mean, scale;
};

/*
 * each(f) calls f(x_c) for the elements of the row that belong to this thread. From a first mean
 * and the sums of d = x - (first mean), which correct the rounding of that mean (Chan, Golub and
 * LeVeque 1983), so a row of equal values has variance 0 for any magnitude.
 */
template <class real, int GROUP, class Each>
__device__ moments<real> moments_times(const row_group<GROUP> &group, int64_t C, real factor,
                                       real epsilon, Each each)
{
    real sum = 0, sum_d = 0, sum_d2 = 0;
    each([&](real x) { sum += x * factor; });
    const real first = group.sum(sum) / (real)C;
    each([&](real x) {
        const real d = x * factor - first;
        sum_d += d;
        sum_d2 += d * d;
    });
    sum_d = group.sum(sum_d);
    const real variance = (group.sum(sum_d2) - sum_d * (sum_d / (real)C)) / (real)C;
    return {first + sum_d / (real)C, 1 / real_sqrt((variance < 0 ? 0 : variance) + epsilon)};
}

/* If a sum overflows, the scale is 0 or NaN, and the moments are computed from smaller numbers. All
   threads of the group have the same scale, so they do not diverge. One copy of the passes. */
template <class real, int GROUP, class Each>
__device__ moments<real> moments_of(const row_group<GROUP> &group, int64_t C, real epsilon,
                                    Each each)
{
    const real factor = ROW_SHRINK(real);
    moments<real> m = {};
#pragma unroll 1
    for (int shrunk = 0; shrunk < 2; shrunk++) {
        m = moments_times(group, C, shrunk ? factor : 1, shrunk ? 0 : epsilon, each);
        if (!shrunk && m.scale > 0)
            return m;
    }
    return {m.mean / factor, m.scale == (real)INFINITY ? 1 / real_sqrt(epsilon) : m.scale * factor};
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

/* For rows of any length, a block for each. Each thread reads only elements that it wrote itself,
   so x may be the sum. For bf16 it is the rounded sum, which backward reads too. */
template <class T> __global__ void forward_rows(int64_t C, forward_arguments<T> f)
{
    typedef real_of<T> real;
    const row_group<ROW_THREADS> group;
    const T *x = f.x + group.row * C;
    if (f.branch) {
        add_branch(group, C, f);
        x = f.sum + group.row * C;
    }
    const moments<real> of = moments_of(group, C, f.epsilon, [&](auto take) {
        for (int64_t c = group.lane; c < C; c += ROW_THREADS)
            take((real)x[c]);
    });
    if (group.lane == 0) {
        f.mean[group.row] = of.mean;
        f.scale[group.row] = of.scale;
    }
    T *y = f.y + group.row * C;
    for (int64_t c = group.lane; c < C; c += ROW_THREADS) {
        const real gain = f.gain[c], bias = f.bias ? (real)f.bias[c] : 0;
        y[c] = gain * (((real)x[c] - of.mean) * of.scale) + bias;
    }
}

/* The row of x, or of the sum as it is stored. */
template <class T, int GROUP, int PACKS, bool WHOLE>
__device__ lane_values<real_of<T>, PACKS * ROW_PACK>
input_row(const lane_row<GROUP, PACKS, WHOLE> &lane, int64_t start, const forward_arguments<T> &f)
{
    typedef real_of<T> real;
    if (!f.branch)
        return load_row<real>(lane, f.x + start);
    const uint32_t stay = lane_stay(lane, f.call, start);
    const auto branch = load_stored(lane, f.branch + start);
    auto x = load_row<real>(lane, f.x + start);
    const real scale = (real)f.call.scale;
    lane.each([&](int n) { x[n] = (T)(x[n] + (stay >> n & 1 ? (real)branch[n] * scale : 0)); });
    store_row(lane, x, f.sum + start);
    return x;
}

/* The same for rows in registers, which are read once. */
template <class T, int GROUP, int PACKS, bool WHOLE>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS<T, WHOLE>)
    forward_in_registers(int64_t rows, int64_t C, forward_arguments<T> f)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
    auto x = input_row(lane, group.row * C, f);
    const moments<real> of = moments_of(
        group, C, f.epsilon, [&](auto take) { lane.each_inside([&](int n) { take(x[n]); }); });
    if (group.lane == 0) {
        f.mean[group.row] = of.mean;
        f.scale[group.row] = of.scale;
    }
    const auto gain = load_stored(lane, f.gain);
    lane.each([&](int n) { x[n] = (real)gain[n] * ((x[n] - of.mean) * of.scale); });
    if (f.bias) {
        const auto bias = load_stored(lane, f.bias);
        lane.each([&](int n) { x[n] += (real)bias[n]; });
    }
    store_row(lane, x, f.y + group.row * C);
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
    LAUNCH_IN_REGISTERS(forward_rows, forward_in_registers, T, f->rows, f->C,
                        whole_packs(f->C, f->x, f->branch, f->gain, f->bias, f->sum, f->y),
                        arguments);
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
template <class T> __global__ void backward_rows(int64_t C, backward_arguments<T> b)
{
    enum { GROUP = ROW_THREADS };
    typedef real_of<T> real;
    const row_group<GROUP> group;
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
        const int64_t in_slab = device_slab_rows(rows), end = slab_end(slab, rows, in_slab);
        real dgain = 0, dbias = 0;
        for (int64_t r = slab * in_slab + threadIdx.y; c < C && r < end; r += blockDim.y) {
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

/* dx and dbranch of one row; adds to its lanes' parts of dgain and dbias. */
template <class T, int GROUP, int PACKS, bool WHOLE>
__device__ void
backward_row(const row_group<GROUP> &group, const lane_row<GROUP, PACKS, WHOLE> &lane, int64_t C,
             const backward_arguments<T> &b, lane_values<real_of<T>, PACKS * ROW_PACK> &dgain,
             lane_values<real_of<T>, PACKS * ROW_PACK> &dbias)
{
    typedef real_of<T> real;
    const int64_t start = group.row * C;
    const real mean = b.mean[group.row], scale = b.scale[group.row];
    const auto x = load_stored(lane, b.x + start), dy = load_stored(lane, b.dy + start);
    const auto h = [&](int n) { return ((real)x[n] - mean) * scale; };
    const auto gain = load_stored(lane, b.gain);
    real sum_u = 0, sum_uh = 0;
    lane.each([&](int n) {
        const real u = (real)gain[n] * (real)dy[n];
        dgain[n] += (real)dy[n] * h(n);
        dbias[n] += (real)dy[n];
        sum_u += u;
        sum_uh += u * h(n);
    });
    const real mean_u = group.sum(sum_u) / (real)C, mean_uh = group.sum(sum_uh) / (real)C;
    lane_values<real, PACKS * ROW_PACK> u;
    lane.each(
        [&](int n) { u[n] = ((real)gain[n] * (real)dy[n] - mean_u - h(n) * mean_uh) * scale; });
    if (b.dsum) {
        const auto dsum = load_stored(lane, b.dsum + start);
        lane.each([&](int n) { u[n] += (real)dsum[n]; });
    }
    if (b.dx.to)
        add_row(lane, u, b.dx.fresh, b.dx.to + start);
    if (b.dbranch.to) {
        const uint32_t stay = lane_stay(lane, b.call, start);
        lane.each([&](int n) { u[n] = stay >> n & 1 ? u[n] * (real)b.call.scale : 0; });
        add_row(lane, u, b.dbranch.fresh, b.dbranch.to + start);
    }
}

/* A slab of rows in registers: dx and dbranch, and in the same pass the slab's part of dgain and
   dbias. */
template <class T, int GROUP, int PACKS, bool WHOLE>
__global__ void __launch_bounds__(SLAB_THREADS<GROUP>,
                                  slab_blocks<T, lane_kind<GROUP, PACKS, WHOLE>>(2))
    backward_slabs(int64_t rows, int64_t C, backward_arguments<T> b)
{
    typedef lane_values<real_of<T>, PACKS * ROW_PACK> values;
    const int64_t slab = blockIdx.x, in_slab = device_slab_rows(rows);
    const int64_t end = slab_end(slab, rows, in_slab);
    row_group<GROUP> group(slab * in_slab + threadIdx.x / GROUP);
    const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
    values dgain = {}, dbias = {};
    for (; group.row < end; group.row += SLAB_THREADS<GROUP> / GROUP)
        backward_row(group, lane, C, b, dgain, dbias);
    store_block_sum(lane, dgain, (int)C, b.partial + slab * 2 * C);
    store_block_sum(lane, dbias, (int)C, b.partial + slab * 2 * C + C);
}

template <class T> slab_sum<T> target(const struct norm_gradient &dx)
{
    return {(T *)dx.to, dx.fresh};
}

template <class T> backward_arguments<T> arguments_of(const struct layer_norm_backward *b)
{
    return {(const T *)b->x,
            (const T *)b->gain,
            (const real_of<T> *)b->mean,
            (const real_of<T> *)b->scale,
            (const T *)b->dy,
            (const T *)b->dsum,
            target<T>(b->dx),
            target<T>(b->dbranch),
            b->dropout,
            (real_of<T> *)b->partial};
}

template <class T> bool backward(const struct layer_norm_backward *b)
{
    const backward_arguments<T> arguments = arguments_of<T>(b);
    const int64_t rows = b->rows, C = b->C, slabs = device_slab_count(rows);
    const bool whole =
        whole_packs(C, b->x, b->gain, b->dy, b->dsum, b->dx.to, b->dbranch.to, b->partial);
    const bool sums = b->dgain.to || b->dbias.to, parts = b->dx.to || b->dbranch.to;
    if (C <= LONGEST_IN_SLABS<T> && slabs * C > 0)
        with_row_group<SLAB_PACKS<T>>(C, whole, [&](auto kind) {
            using K = decltype(kind);
            LAUNCH((backward_slabs<T, K::GROUP, K::PACKS, K::WHOLE>), dim3((unsigned)slabs),
                   dim3(SLAB_THREADS<K::GROUP>), 0, stream, rows, C, arguments);
        });
    if (C > LONGEST_IN_SLABS<T> && rows > 0 && parts)
        LAUNCH((backward_rows<T>), dim3((unsigned)rows), dim3(ROW_THREADS), 0, stream, C,
               arguments);
    if (C > LONGEST_IN_SLABS<T> && rows > 0 && sums)
        LAUNCH(sum_slabs<T>, dim3(blocks_for(slabs * column_blocks(C), 1)), column_block(rows), 0,
               stream, rows, slabs, C, arguments);
    add_slabs(slabs, C, (const real_of<T> *)b->partial,
              slab_sums<T, 2>{{target<T>(b->dgain), target<T>(b->dbias)}});
    return launched("layer_norm");
}

} // namespace

KERNELS_AND_BF16(layer_norm, forward<T>, backward<T>);
