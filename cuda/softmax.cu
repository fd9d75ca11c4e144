#include "cuda/ids.cuh"
#include "cuda/masked_row.cuh"
#include "cuda/softmax_row.cuh"
#include "ops/softmax.h"

namespace
{

template <class T>
__global__ void masked_rows(int64_t Lk, mask_sizes s, mask_terms mask, real_of<T> scale, const T *x,
                            T *y)
{
    typedef real_of<T> real;
    const row_group<ROW_THREADS> group;
    const masked_row row(mask, s, group.row);
    x += group.row * Lk;
    y += group.row * Lk;
    real max = -INFINITY, sum = 0;
    for (int64_t j = group.lane; j < Lk; j += ROW_THREADS)
        max = row.keeps(j) ? real_max(max, (real)x[j]) : max;
    max = group.max(max);
    for (int64_t j = group.lane; j < Lk; j += ROW_THREADS)
        sum += row.keeps(j) ? real_exp(scale * ((real)x[j] - max)) : 0;
    const real inverse = 1 / group.sum(sum);
    for (int64_t j = group.lane; j < Lk; j += ROW_THREADS)
        y[j] = row.keeps(j) ? real_exp(scale * ((real)x[j] - max)) * inverse : 0;
}

/* A one bit for each of the lane's elements that the mask keeps. */
template <int GROUP, int PACKS, bool WHOLE>
__device__ uint32_t lane_keep(const lane_row<GROUP, PACKS, WHOLE> &lane, const masked_row &row)
{
    const int from = (int)row.keys.from, to = (int)row.keys.to;
    uint32_t keep = 0;
    lane.each(
        [&](int n) { keep |= (from <= lane.column(n) && lane.column(n) < to ? 1u : 0u) << n; });
#pragma unroll 1
    for (int n = 0; row.mask.dense && n < PACKS * ROW_PACK; n++)
        if ((keep >> n & 1) && !row.keeps(lane.column(n)))
            keep &= ~(1u << n);
    return keep;
}

/* The same for rows in registers: the mask is read once too. */
template <class T, int GROUP, int PACKS, bool WHOLE>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS<T, WHOLE>)
    masked_in_registers(int64_t rows, int64_t Lk, mask_sizes s, mask_terms mask, real_of<T> scale,
                        const T *x, T *y)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const lane_row<GROUP, PACKS, WHOLE> lane(group, Lk);
    const uint32_t keep = lane_keep(lane, masked_row(mask, s, group.row));
    auto row = load_row<real>(lane, x + group.row * Lk);
    real max = -INFINITY, sum = 0;
    lane.each([&](int n) {
        row[n] = keep >> n & 1 ? row[n] : -(real)INFINITY;
        max = real_max(max, row[n]);
    });
    max = group.max(max);
    lane.each([&](int n) { sum += row[n] = exp_for<T>(scale * (row[n] - max)); });
    const real inverse = 1 / group.sum(sum);
    lane.each([&](int n) { row[n] = keep >> n & 1 ? row[n] * inverse : 0; });
    store_row(lane, row, y + group.row * Lk);
}

template <class T>
bool masked_forward(mask_sizes s, const mask_terms *mask, double temperature, const void *x,
                    void *y)
{
    const int64_t rows = s.B * s.H * s.Lq;
    const real_of<T> scale = (real_of<T>)(1 / temperature);
    LAUNCH_IN_REGISTERS(masked_rows, masked_in_registers, T, rows, s.Lk, whole_packs(s.Lk, x, y), s,
                        *mask, scale, (const T *)x, (T *)y);
    return launched("masked_softmax");
}

/* Of y_j = exp(scale x_j - max) / sum over the kept j: dx_j += scale y_j (dy_j - sum_i y_i dy_i) */
template <class T>
__global__ void masked_backward_rows(int64_t Lk, mask_sizes s, mask_terms mask, real_of<T> scale,
                                     const T *y, const T *dy, bool fresh, T *dx)
{
    typedef real_of<T> real;
    const row_group<ROW_THREADS> group;
    const masked_row row(mask, s, group.row);
    y += group.row * Lk;
    dy += group.row * Lk;
    dx += group.row * Lk;
    real dot = 0;
    for (int64_t j = group.lane; j < Lk; j += ROW_THREADS)
        dot += row.keeps(j) ? (real)y[j] * (real)dy[j] : 0;
    dot = group.sum(dot);
    for (int64_t j = group.lane; j < Lk; j += ROW_THREADS)
        if (row.keeps(j))
            dx[j] = before(fresh, dx[j]) + scale * ((real)y[j] * ((real)dy[j] - dot));
        else if (fresh)
            dx[j] = 0;
}

template <class T, int GROUP, int PACKS, bool WHOLE>
__global__ void masked_backward_in_registers(int64_t rows, int64_t Lk, mask_sizes s,
                                             mask_terms mask, real_of<T> scale, const T *all_y,
                                             const T *all_dy, bool fresh, T *dx)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const lane_row<GROUP, PACKS, WHOLE> lane(group, Lk);
    const uint32_t keep = lane_keep(lane, masked_row(mask, s, group.row));
    const auto y = load_stored(lane, all_y + group.row * Lk);
    auto dy = load_row<real>(lane, all_dy + group.row * Lk);
    real dot = 0;
    lane.each([&](int n) { dot += keep >> n & 1 ? (real)y[n] * dy[n] : 0; });
    dot = group.sum(dot);
    lane.each([&](int n) { dy[n] = keep >> n & 1 ? scale * ((real)y[n] * (dy[n] - dot)) : 0; });
    add_row(lane, dy, fresh, dx + group.row * Lk);
}

template <class T>
bool masked_backward(mask_sizes s, const mask_terms *mask, double temperature, const void *y,
                     const void *dy, bool fresh, void *dx)
{
    const int64_t rows = s.B * s.H * s.Lq;
    const real_of<T> scale = (real_of<T>)(1 / temperature);
    LAUNCH_IN_REGISTERS(masked_backward_rows, masked_backward_in_registers, T, rows, s.Lk,
                        whole_packs(s.Lk, y, dy, dx), s, *mask, scale, (const T *)y, (const T *)dy,
                        fresh, (T *)dx);
    return launched("masked_softmax");
}

template <class T> int64_t bad_length(int64_t B, const int32_t *lengths, int64_t Lk)
{
    return first_bad_id("masked_softmax: lengths", B, lengths, 0, Lk + 1);
}

__global__ void seen_queries(mask_sizes s, mask_terms mask, int64_t rows, uint8_t *seen)
{
    GRID_STRIDE(r, s.B * s.H * s.Lq)
    {
        const masked_row row(mask, s, r);
        int64_t j = row.keys.from;
        while (j < row.keys.to && !mask_keeps(mask, row.b, row.h, row.i, j))
            j++;
        seen[r / s.Lq * rows + r % s.Lq] = j < row.keys.to;
    }
}

bool queries_seen(mask_sizes s, const mask_terms *mask, int64_t rows, uint8_t *seen)
{
    const int64_t n = s.B * s.H * s.Lq;
    LAUNCH_EACH(n, seen_queries, s, *mask, rows, seen);
    return launched("masked_softmax");
}

} // namespace

KERNELS_AND_BF16(softmax, softmax_forward<T, false>, softmax_backward<T, false>, masked_forward<T>,
                 masked_backward<T>, bad_length<T>, queries_seen);
