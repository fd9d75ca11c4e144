/*
 * Layer norm, and RMS norm, which has no mean and no bias:
 *
 *     y_c = gain_c h_c + bias_c      h_c = (x_c - mean) scale
 *
 * Rows of up to LONGEST_IN_REGISTERS elements are read once; longer ones a piece at a time.
 */
#ifndef SOFTBACK_CUDA_NORM_CUH
#define SOFTBACK_CUDA_NORM_CUH

#include "cuda/lane_row.cuh"
#include "cuda/slabs.cuh"
#include "ops/normalization.h"

/* layer_norm_forward in the element type. */
template <class T> struct norm_call {
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
 * LeVeque 1983), so a row of equal values has variance 0 for any magnitude. Unless it is CENTRED,
 * the mean is 0.
 */
template <bool CENTRED, class real, int GROUP, class Each>
__device__ moments<real> moments_times(const row_group<GROUP> &group, int64_t C, real factor,
                                       real epsilon, Each each)
{
    real sum = 0, sum_d = 0, sum_d2 = 0, first = 0;
    if (CENTRED) {
        each([&](real x) { sum += x * factor; });
        first = group.sum(sum) / (real)C;
    }
    each([&](real x) {
        const real d = x * factor - first;
        sum_d += d;
        sum_d2 += d * d;
    });
    sum_d = CENTRED ? group.sum(sum_d) : 0;
    const real variance = (group.sum(sum_d2) - sum_d * (sum_d / (real)C)) / (real)C;
    return {first + sum_d / (real)C, 1 / real_sqrt((variance < 0 ? 0 : variance) + epsilon)};
}

/* If a sum overflows, the scale is 0 or NaN, and the moments are computed from smaller numbers. All
   threads of the group have the same scale, so they do not diverge. One copy of the passes. */
template <bool CENTRED, class real, int GROUP, class Each>
__device__ moments<real> moments_of(const row_group<GROUP> &group, int64_t C, real epsilon,
                                    Each each)
{
    const real factor = ROW_SHRINK(real);
    moments<real> m = {};
#pragma unroll 1
    for (int shrunk = 0; shrunk < 2; shrunk++) {
        m = moments_times<CENTRED>(group, C, shrunk ? factor : 1, shrunk ? 0 : epsilon, each);
        if (!shrunk && m.scale > 0)
            return m;
    }
    return {m.mean / factor, m.scale == (real)INFINITY ? 1 / real_sqrt(epsilon) : m.scale * factor};
}

/* The row of x, or of sum = x + dropout(branch), which is stored; from element `start` on. For bf16
   it is the rounded sum, which backward reads too. RMS norm has no branch. */
template <bool CENTRED, class T, int GROUP, int PACKS, bool WHOLE>
__device__ lane_values<real_of<T>, PACKS * ROW_PACK>
input_row(const lane_row<GROUP, PACKS, WHOLE> &lane, int64_t start, const norm_call<T> &f)
{
    typedef real_of<T> real;
    if (!CENTRED || !f.branch)
        return load_row<real>(lane, f.x + start);
    const uint32_t stay = lane_stay(lane, f.call, start);
    const auto branch = load_stored(lane, f.branch + start);
    auto x = load_row<real>(lane, f.x + start);
    const real scale = (real)f.call.scale;
    lane.each([&](int n) { x[n] = (T)(x[n] + (stay >> n & 1 ? (real)branch[n] * scale : 0)); });
    store_row(lane, x, f.sum + start);
    return x;
}

/* The elements of y that belong to x, from column c of the row on. */
template <class T, class Lane, class Values>
__device__ void output_row(const Lane &lane, Values x, const moments<real_of<T>> &of,
                           const norm_call<T> &f, int64_t start, int64_t c)
{
    typedef real_of<T> real;
    const auto gain = load_stored(lane, f.gain + c);
    lane.each([&](int n) { x[n] = (real)gain[n] * ((x[n] - of.mean) * of.scale); });
    if (f.bias) {
        const auto bias = load_stored(lane, f.bias + c);
        lane.each([&](int n) { x[n] += (real)bias[n]; });
    }
    store_row(lane, x, f.y + start + c);
}

template <bool CENTRED, class T>
__device__ void store_moments(const moments<real_of<T>> &of, int64_t row, const norm_call<T> &f)
{
    if (CENTRED)
        f.mean[row] = of.mean;
    f.scale[row] = of.scale;
}

/* Each thread reads only elements of the sum that it wrote itself. */
template <class T, bool CENTRED> __global__ void norm_rows(int64_t C, norm_call<T> f)
{
    typedef real_of<T> real;
    const row_group<ROW_THREADS> group;
    const int64_t start = group.row * C;
    const bool aligned = whole_packs(C, f.x, f.branch, f.gain, f.bias, f.sum, f.y);
    if (f.branch)
        each_piece(group, C, aligned,
                   [&](const auto &lane, int64_t c) { input_row<CENTRED>(lane, start + c, f); });
    const T *const x = f.branch ? f.sum : f.x;
    const moments<real> of = moments_of<CENTRED>(group, C, f.epsilon, [&](auto take) {
        each_piece(group, C, aligned, [&](const auto &lane, int64_t c) {
            const auto part = load_row<real>(lane, x + start + c);
            lane.each_inside([&](int n) { take(part[n]); });
        });
    });
    if (group.lane == 0)
        store_moments<CENTRED>(of, group.row, f);
    each_piece(group, C, aligned, [&](const auto &lane, int64_t c) {
        output_row(lane, load_row<real>(lane, x + start + c), of, f, start, c);
    });
}

template <class T, bool CENTRED, int GROUP, int PACKS, bool WHOLE>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS<T, WHOLE>)
    norm_in_registers(int64_t rows, int64_t C, norm_call<T> f)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
    const auto x = input_row<CENTRED>(lane, group.row * C, f);
    const moments<real_of<T>> of = moments_of<CENTRED>(
        group, C, f.epsilon, [&](auto take) { lane.each_inside([&](int n) { take(x[n]); }); });
    if (group.lane == 0)
        store_moments<CENTRED>(of, group.row, f);
    output_row(lane, x, of, f, group.row * C, 0);
}

template <class T, bool CENTRED> void queue_norm(int64_t rows, int64_t C, const norm_call<T> &f)
{
    const bool whole = whole_packs(C, f.x, f.branch, f.gain, f.bias, f.sum, f.y);
    if (rows > 0 && C > LONGEST_IN_REGISTERS)
        LAUNCH((norm_rows<T, CENTRED>), dim3((unsigned)rows), dim3(ROW_THREADS), 0, stream, C, f);
    else if (rows > 0)
        with_row_group(C, whole, [&](auto kind) {
            using K = decltype(kind);
            LAUNCH((norm_in_registers<T, CENTRED, K::GROUP, K::PACKS, K::WHOLE>),
                   dim3(row_blocks<K::GROUP>(rows)), dim3(ROW_THREADS), 0, stream, rows, C, f);
        });
}

/* layer_norm_backward in the element type. */
template <class T> struct norm_gradients {
    const T *x, *gain;
    const real_of<T> *mean, *scale;
    const T *dy, *dsum;
    slab_sum<T> dx, dbranch;
    dropout call;
    real_of<T> *partial; /* (slabs, 2, C) for dgain and dbias, or (slabs, 1, C) */
};

template <bool CENTRED> constexpr int NORM_SUMS = CENTRED ? 2 : 1;

/* With u = gain dy: dx_c = (u_c - mean_u - h_c mean_uh) scale, of some elements of a row; the part
   that comes from dsum is that of sum = x + dropout(branch). */
template <bool CENTRED, class T, class Lane, class Stored>
__device__ void add_gradient(const Lane &lane, const Stored &x, const Stored &dy,
                             const Stored &gain, const moments<real_of<T>> &of, real_of<T> mean_u,
                             real_of<T> mean_uh, const norm_gradients<T> &b, int64_t at)
{
    typedef real_of<T> real;
    lane_values<real, Lane::VALUES> part;
    lane.each([&](int n) {
        const real h = ((real)x[n] - of.mean) * of.scale;
        part[n] = ((real)gain[n] * (real)dy[n] - mean_u - h * mean_uh) * of.scale;
    });
    if (CENTRED && b.dsum) {
        const auto dsum = load_stored(lane, b.dsum + at);
        lane.each([&](int n) { part[n] += (real)dsum[n]; });
    }
    if (b.dx.to)
        add_row(lane, part, b.dx.fresh, b.dx.to + at);
    if (CENTRED && b.dbranch.to) {
        const uint32_t stay = lane_stay(lane, b.call, at);
        lane.each([&](int n) { part[n] = stay >> n & 1 ? part[n] * (real)b.call.scale : 0; });
        add_row(lane, part, b.dbranch.fresh, b.dbranch.to + at);
    }
}

template <class T, bool CENTRED>
__device__ moments<real_of<T>> moments_before(const norm_gradients<T> &b, int64_t row)
{
    return {CENTRED ? b.mean[row] : 0, b.scale[row]};
}

template <class T, bool CENTRED> __global__ void gradient_rows(int64_t C, norm_gradients<T> b)
{
    typedef real_of<T> real;
    const row_group<ROW_THREADS> group;
    const int64_t start = group.row * C;
    const bool aligned = whole_packs(C, b.x, b.gain, b.dy, b.dsum, b.dx.to, b.dbranch.to);
    const moments<real> of = moments_before<T, CENTRED>(b, group.row);
    real sum_u = 0, sum_uh = 0;
    each_piece(group, C, aligned, [&](const auto &lane, int64_t c) {
        const auto x = load_stored(lane, b.x + start + c), dy = load_stored(lane, b.dy + start + c);
        const auto gain = load_stored(lane, b.gain + c);
        lane.each([&](int n) {
            const real u = (real)gain[n] * (real)dy[n];
            sum_u += u;
            sum_uh += u * (((real)x[n] - of.mean) * of.scale);
        });
    });
    const real mean_u = CENTRED ? group.sum(sum_u) / (real)C : 0;
    const real mean_uh = group.sum(sum_uh) / (real)C;
    each_piece(group, C, aligned, [&](const auto &lane, int64_t c) {
        add_gradient<CENTRED>(lane, load_stored(lane, b.x + start + c),
                              load_stored(lane, b.dy + start + c), load_stored(lane, b.gain + c),
                              of, mean_u, mean_uh, b, start + c);
    });
}

/* The part of each slab of rows in dgain_c = sum of dy_c h_c and dbias_c = sum of dy_c. */
template <class T, bool CENTRED>
__global__ void sum_norm_slabs(int64_t rows, int64_t slabs, int64_t C, norm_gradients<T> b)
{
    typedef real_of<T> real;
    const int64_t blocks = column_blocks(C);
    for (int64_t block = blockIdx.x; block < blocks * slabs; block += gridDim.x) {
        const int64_t slab = block / blocks, c = block % blocks * SLAB_COLUMNS + threadIdx.x;
        const int64_t in_slab = device_slab_rows(rows), end = slab_end(slab, rows, in_slab);
        real *const to = b.partial + slab * NORM_SUMS<CENTRED> * C + c;
        real dgain = 0, dbias = 0;
        for (int64_t r = slab * in_slab + threadIdx.y; c < C && r < end; r += blockDim.y) {
            const real mean = CENTRED ? b.mean[r] : 0, dy = (real)b.dy[r * C + c];
            dgain += dy * (((real)b.x[r * C + c] - mean) * b.scale[r]);
            dbias += dy;
        }
        dgain = column_sum(dgain);
        dbias = CENTRED ? column_sum(dbias) : 0;
        if (c < C && threadIdx.y == 0) {
            to[0] = dgain;
            if (CENTRED)
                to[C] = dbias;
        }
    }
}

/* A slab of rows in registers: dx and dbranch, and in the same pass the slab's part of dgain and
   dbias. */
template <class T, bool CENTRED, int GROUP, int PACKS, bool WHOLE>
__global__ void
__launch_bounds__(SLAB_THREADS<GROUP>,
                  slab_blocks<T, lane_kind<GROUP, PACKS, WHOLE>>(NORM_SUMS<CENTRED>))
    gradient_slabs(int64_t rows, int64_t C, norm_gradients<T> b)
{
    typedef real_of<T> real;
    const int64_t slab = blockIdx.x, in_slab = device_slab_rows(rows);
    const int64_t end = slab_end(slab, rows, in_slab);
    row_group<GROUP> group(slab * in_slab + threadIdx.x / GROUP);
    const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
    lane_values<real, PACKS *ROW_PACK> dgain = {}, dbias = {};
    for (; group.row < end; group.row += SLAB_THREADS<GROUP> / GROUP) {
        const int64_t start = group.row * C;
        const moments<real> of = moments_before<T, CENTRED>(b, group.row);
        const auto x = load_stored(lane, b.x + start), dy = load_stored(lane, b.dy + start);
        const auto gain = load_stored(lane, b.gain);
        real sum_u = 0, sum_uh = 0;
        lane.each([&](int n) {
            const real u = (real)gain[n] * (real)dy[n], h = ((real)x[n] - of.mean) * of.scale;
            dgain[n] += (real)dy[n] * h;
            if (CENTRED)
                dbias[n] += (real)dy[n];
            sum_u += u;
            sum_uh += u * h;
        });
        const real mean_u = CENTRED ? group.sum(sum_u) / (real)C : 0;
        const real mean_uh = group.sum(sum_uh) / (real)C;
        add_gradient<CENTRED>(lane, x, dy, gain, of, mean_u, mean_uh, b, start);
    }
    real *const to = b.partial + slab * NORM_SUMS<CENTRED> * C;
    store_block_sum(lane, dgain, (int)C, to);
    if (CENTRED)
        store_block_sum(lane, dbias, (int)C, to + C);
}

template <class T> slab_sum<T> norm_target(const struct norm_gradient &dx)
{
    return {(T *)dx.to, dx.fresh};
}

/* Those of dgain and dbias that are wide, or the others. */
template <class T, int SUMS>
void add_norm_slabs(int64_t slabs, int64_t C, const real_of<T> *partial,
                    const struct norm_gradient (&to)[SUMS], bool wide)
{
    slab_sums<T, SUMS> sums = {};
    for (int i = 0; i < SUMS; i++)
        if (to[i].wide == wide)
            sums.sum[i] = norm_target<T>(to[i]);
    add_slabs(slabs, C, partial, sums);
}

template <class T, bool CENTRED>
void queue_norm_gradients(int64_t rows, int64_t C, const norm_gradients<T> &b,
                          const struct norm_gradient (&to)[NORM_SUMS<CENTRED>])
{
    const int64_t slabs = device_slab_count(rows);
    const bool whole = whole_packs(C, b.x, b.gain, b.dy, b.dsum, b.dx.to, b.dbranch.to, b.partial);
    const bool in_slabs = C <= LONGEST_IN_SLABS<T>;
    if (in_slabs && slabs * C > 0)
        with_row_group<SLAB_PACKS<T>>(C, whole, [&](auto kind) {
            using K = decltype(kind);
            LAUNCH((gradient_slabs<T, CENTRED, K::GROUP, K::PACKS, K::WHOLE>),
                   dim3((unsigned)slabs), dim3(SLAB_THREADS<K::GROUP>), 0, stream, rows, C, b);
        });
    if (!in_slabs && rows > 0 && (b.dx.to || b.dbranch.to))
        LAUNCH((gradient_rows<T, CENTRED>), dim3((unsigned)rows), dim3(ROW_THREADS), 0, stream, C,
               b);
    if (!in_slabs && rows > 0)
        LAUNCH((sum_norm_slabs<T, CENTRED>), dim3(blocks_for(slabs * column_blocks(C), 1)),
               column_block(rows), 0, stream, rows, slabs, C, b);
    add_norm_slabs<T>(slabs, C, b.partial, to, false);
    add_norm_slabs<real_of<T>>(slabs, C, b.partial, to, true);
}

#endif
