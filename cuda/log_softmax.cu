#include "cuda/row_exp.cuh"
#include "ops/softmax.h"

namespace
{

/* For rows of any length, a block for each: reads the row twice. */
template <class T> __global__ void log_softmax_rows(int64_t C, const T *x, T *y)
{
    const row_group<ROW_THREADS> group;
    const bool aligned = whole_packs(C, x, y);
    x += group.row * C;
    y += group.row * C;
    const auto row = row_max_and_sum(group, C, x, aligned);
    const real_of<T> log_sum = real_log(row.sum);
    each_piece(group, C, aligned, [&](const auto &lane, int64_t c) {
        auto part = load_row<real_of<T>>(lane, x + c);
        lane.each([&](int n) { part[n] = (part[n] - row.max) - log_sum; });
        store_row(lane, part, y + c);
    });
}

/* The same for rows in registers, which are read once. */
template <class T, int GROUP, int PACKS, bool WHOLE>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS<T, WHOLE>)
    log_softmax_in_registers(int64_t rows, int64_t C, const T *x, T *y)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
    auto row = load_row<real>(lane, x + group.row * C, -(real)INFINITY);
    real max = -INFINITY, sum = 0;
    lane.each([&](int n) { max = real_max(max, row[n]); });
    max = group.max(max);
    lane.each([&](int n) { sum += exp_for<T>(row[n] - max); });
    const real log_sum = real_log(group.sum(sum));
    lane.each([&](int n) { row[n] = (row[n] - max) - log_sum; });
    store_row(lane, row, y + group.row * C);
}

template <class T> bool forward(int64_t rows, int64_t C, const void *x, void *y)
{
    LAUNCH_IN_REGISTERS(log_softmax_rows, log_softmax_in_registers, T, rows, C,
                        whole_packs(C, x, y), (const T *)x, (T *)y);
    return launched("log_softmax");
}

/* Of y_c = x_c - max - log sum_j exp(x_j - max): dx_c += dy_c - exp(y_c) sum_j dy_j */
template <class T>
__global__ void backward_rows(int64_t C, const T *y, const T *dy, bool fresh, T *dx)
{
    typedef real_of<T> real;
    const row_group<ROW_THREADS> group;
    y += group.row * C;
    dy += group.row * C;
    dx += group.row * C;
    real total = 0;
    for (int64_t c = group.lane; c < C; c += ROW_THREADS)
        total += (real)dy[c];
    total = group.sum(total);
    for (int64_t c = group.lane; c < C; c += ROW_THREADS)
        dx[c] = before(fresh, dx[c]) + ((real)dy[c] - exp_for<T>((real)y[c]) * total);
}

template <class T, int GROUP, int PACKS, bool WHOLE>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS<T, WHOLE>)
    backward_in_registers(int64_t rows, int64_t C, const T *all_y, const T *all_dy, bool fresh,
                          T *dx)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
    const auto y = load_row<real>(lane, all_y + group.row * C);
    auto dy = load_row<real>(lane, all_dy + group.row * C);
    real total = 0;
    lane.each([&](int n) { total += dy[n]; });
    total = group.sum(total);
    lane.each([&](int n) { dy[n] -= exp_for<T>(y[n]) * total; });
    add_row(lane, dy, fresh, dx + group.row * C);
}

template <class T>
bool backward(int64_t rows, int64_t C, const void *y, const void *dy, bool fresh, void *dx)
{
    LAUNCH_IN_REGISTERS(backward_rows, backward_in_registers, T, rows, C, whole_packs(C, y, dy, dx),
                        (const T *)y, (const T *)dy, fresh, (T *)dx);
    return launched("log_softmax");
}

} // namespace

KERNELS_AND_BF16(log_softmax, forward<T>, backward<T>, nullptr);
