#include "cuda/lane_row.cuh"
#include "cuda/slabs.cuh"
#include "ops/normalization.h"

namespace
{

/* 1 / sqrt(mean x^2 + epsilon), where sum(factor) is the sum of squares of the row's x times the
   factor; of smaller numbers, if squares overflow. All threads of the group have the same sum, so
   they do not diverge. */
template <class real, class Sum> __device__ real scale_of(int64_t C, real epsilon, Sum sum)
{
    const real squares = sum((real)1), factor = ROW_SHRINK(real);
    return squares < (real)INFINITY ? 1 / real_sqrt(squares / (real)C + epsilon)
                                    : factor / real_sqrt(sum(factor) / (real)C);
}

/* For rows of any length, a block for each. */
template <class T>
__global__ void forward_rows(int64_t C, real_of<T> epsilon, const T *x, const T *gain, T *y,
                             real_of<T> *all_scales)
{
    typedef real_of<T> real;
    const row_group<ROW_THREADS> group;
    x += group.row * C;
    y += group.row * C;
    const real scale = scale_of(C, epsilon, [&](real factor) {
        real sum = 0;
        for (int64_t c = group.lane; c < C; c += ROW_THREADS)
            sum += ((real)x[c] * factor) * ((real)x[c] * factor);
        return group.sum(sum);
    });
    for (int64_t c = group.lane; c < C; c += ROW_THREADS)
        y[c] = (real)gain[c] * ((real)x[c] * scale);
    if (group.lane == 0)
        all_scales[group.row] = scale;
}

/* The same for rows in registers, which are read once. */
template <class T, int GROUP, int PACKS, bool WHOLE>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS<T, WHOLE>)
    forward_in_registers(int64_t rows, int64_t C, real_of<T> epsilon, const T *all_x,
                         const T *all_gains, T *y, real_of<T> *all_scales)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
    auto x = load_row<real>(lane, all_x + group.row * C);
    const real scale = scale_of(C, epsilon, [&](real factor) {
        real sum = 0;
        lane.each([&](int n) { sum += (x[n] * factor) * (x[n] * factor); });
        return group.sum(sum);
    });
    const auto gain = load_stored(lane, all_gains);
    lane.each([&](int n) { x[n] = (real)gain[n] * (x[n] * scale); });
    store_row(lane, x, y + group.row * C);
    if (group.lane == 0)
        all_scales[group.row] = scale;
}

template <class T>
bool forward(int64_t rows, int64_t C, double epsilon, const void *x, const void *gain, void *y,
             void *scale)
{
    LAUNCH_IN_REGISTERS(forward_rows, forward_in_registers, T, rows, C, whole_packs(C, x, gain, y),
                        (real_of<T>)epsilon, (const T *)x, (const T *)gain, (T *)y,
                        (real_of<T> *)scale);
    return launched("rms_norm");
}

/* y_c = gain_c h_c, h_c = x_c scale; mean_uh is the mean of u h, u = gain dy. */
template <class T>
__global__ void backward_rows(int64_t C, const T *x, const T *gain, const real_of<T> *all_scales,
                              const T *dy, slab_sum<T> all_dx)
{
    typedef real_of<T> real;
    const row_group<ROW_THREADS> group;
    x += group.row * C;
    dy += group.row * C;
    T *dx = all_dx.to + group.row * C;
    const real scale = all_scales[group.row];
    real sum_uh = 0;
    for (int64_t c = group.lane; c < C; c += ROW_THREADS)
        sum_uh += (real)gain[c] * (real)dy[c] * ((real)x[c] * scale);
    const real mean_uh = group.sum(sum_uh) / (real)C;
    for (int64_t c = group.lane; c < C; c += ROW_THREADS) {
        real h = (real)x[c] * scale, u = (real)gain[c] * (real)dy[c];
        dx[c] = before(all_dx.fresh, dx[c]) + (u - h * mean_uh) * scale;
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
        const int64_t in_slab = device_slab_rows(rows), end = slab_end(slab, rows, in_slab);
        real dgain = 0;
        for (int64_t r = slab * in_slab + threadIdx.y; c < C && r < end; r += blockDim.y)
            dgain += (real)dy[r * C + c] * ((real)x[r * C + c] * scale[r]);
        dgain = column_sum(dgain);
        if (c < C && threadIdx.y == 0)
            partial[slab * C + c] = dgain;
    }
}

/* A slab of rows in registers: dx, and in the same pass the slab's part of dgain. */
template <class T, int GROUP, int PACKS, bool WHOLE>
__global__ void __launch_bounds__(SLAB_THREADS<GROUP>,
                                  slab_blocks<T, lane_kind<GROUP, PACKS, WHOLE>>(1))
    backward_slabs(int64_t rows, int64_t C, const T *x, const T *all_gains,
                   const real_of<T> *all_scales, const T *dy, slab_sum<T> dx, real_of<T> *partial)
{
    typedef real_of<T> real;
    const int64_t slab = blockIdx.x, in_slab = device_slab_rows(rows);
    const int64_t end = slab_end(slab, rows, in_slab);
    row_group<GROUP> group(slab * in_slab + threadIdx.x / GROUP);
    const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
    const auto gain = load_stored(lane, all_gains);
    lane_values<real, PACKS *ROW_PACK> dgain = {};
    for (; group.row < end; group.row += SLAB_THREADS<GROUP> / GROUP) {
        const int64_t start = group.row * C;
        const real scale = all_scales[group.row];
        const auto row_x = load_stored(lane, x + start), row_dy = load_stored(lane, dy + start);
        const auto h = [&](int n) { return (real)row_x[n] * scale; };
        real sum_uh = 0;
        lane.each([&](int n) {
            dgain[n] += (real)row_dy[n] * h(n);
            sum_uh += (real)gain[n] * (real)row_dy[n] * h(n);
        });
        const real mean_uh = group.sum(sum_uh) / (real)C;
        lane_values<real, PACKS * ROW_PACK> u;
        lane.each(
            [&](int n) { u[n] = ((real)gain[n] * (real)row_dy[n] - h(n) * mean_uh) * scale; });
        if (dx.to)
            add_row(lane, u, dx.fresh, dx.to + start);
    }
    store_block_sum(lane, dgain, (int)C, partial + slab * C);
}

template <class T>
bool backward(int64_t rows, int64_t C, const void *x, const void *gain, const void *scale,
              const void *dy, struct norm_gradient dx, struct norm_gradient dgain, void *partial)
{
    const int64_t slabs = device_slab_count(rows);
    const bool whole = whole_packs(C, x, gain, dy, dx.to, partial);
    const slab_sum<T> row_sum = {(T *)dx.to, dx.fresh};
    if (C <= LONGEST_IN_SLABS<T> && slabs * C > 0)
        with_row_group<SLAB_PACKS<T>>(C, whole, [&](auto kind) {
            using K = decltype(kind);
            LAUNCH((backward_slabs<T, K::GROUP, K::PACKS, K::WHOLE>), dim3((unsigned)slabs),
                   dim3(SLAB_THREADS<K::GROUP>), 0, stream, rows, C, (const T *)x, (const T *)gain,
                   (const real_of<T> *)scale, (const T *)dy, row_sum, (real_of<T> *)partial);
        });
    if (C > LONGEST_IN_SLABS<T> && rows > 0 && dx.to)
        LAUNCH((backward_rows<T>), dim3((unsigned)rows), dim3(ROW_THREADS), 0, stream, C,
               (const T *)x, (const T *)gain, (const real_of<T> *)scale, (const T *)dy, row_sum);
    if (C > LONGEST_IN_SLABS<T> && rows > 0 && dgain.to)
        LAUNCH(sum_slabs<T>, dim3(blocks_for(slabs * column_blocks(C), 1)), column_block(rows), 0,
               stream, rows, slabs, C, (const T *)x, (const real_of<T> *)scale, (const T *)dy,
               (real_of<T> *)partial);
    add_slabs(slabs, C, (const real_of<T> *)partial,
              slab_sums<T, 1>{{{(T *)dgain.to, dgain.fresh}}});
    return launched("rms_norm");
}

} // namespace

KERNELS_AND_BF16(rms_norm, forward<T>, backward<T>);
