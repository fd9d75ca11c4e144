/* Softmax of rows, and its logarithm. */
#ifndef SOFTBACK_CUDA_SOFTMAX_ROW_CUH
#define SOFTBACK_CUDA_SOFTMAX_ROW_CUH

#include "cuda/row_exp.cuh"

/*
 * The type of the elements, and whether y is the logarithm:
 *
 *     y_c = exp(x_c - max) / sum      or      y_c = (x_c - max) - log sum
 */
template <class T, bool IS_LOG> struct softmax_of {
    typedef T number;
    typedef real_of<T> real;
    enum { LOG = IS_LOG };

    static __device__ real part(real x, real max)
    {
        return LOG ? x - max : exp_for<T>(x - max);
    }
    static __device__ real constant(real sum)
    {
        return LOG ? real_log(sum) : 1 / sum;
    }
    static __device__ real y(real part, real constant)
    {
        return LOG ? part - constant : part * constant;
    }
    /* dx_c = dy_c - exp(y_c) sum, of sum = sum_j dy_j; else y_c (dy_c - sum), of sum_j y_j dy_j */
    static __device__ real term(real y, real dy)
    {
        return LOG ? dy : y * dy;
    }
    static __device__ real dx(real y, real dy, real sum)
    {
        return LOG ? dy - exp_for<T>(y) * sum : y * (dy - sum);
    }
};

/* For rows of any length, a block for each: reads the row twice. */
template <class F>
__global__ void softmax_by_pieces(int64_t C, const typename F::number *x, typename F::number *y)
{
    const row_group<ROW_THREADS> group;
    const bool aligned = whole_packs(C, x, y);
    x += group.row * C;
    y += group.row * C;
    const auto row = row_max_and_sum(group, C, x, aligned);
    const auto constant = F::constant(row.sum);
    each_piece(group, C, aligned, [&](const auto &lane, int64_t c) {
        auto part = load_row<typename F::real>(lane, x + c);
        lane.each([&](int n) { part[n] = F::y(F::part(part[n], row.max), constant); });
        store_row(lane, part, y + c);
    });
}

/* The same for rows in registers, which are read once, with one exponential of each element. */
template <class F, int GROUP, int PACKS, bool WHOLE>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS<typename F::number, WHOLE>)
    softmax_in_registers(int64_t rows, int64_t C, const typename F::number *x,
                         typename F::number *y)
{
    typedef typename F::real real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
    auto row = load_row<real>(lane, x + group.row * C, -(real)INFINITY);
    real max = -INFINITY, sum = 0;
    lane.each([&](int n) { max = real_max(max, row[n]); });
    max = group.max(max);
    lane.each([&](int n) {
        row[n] = F::part(row[n], max);
        sum += F::LOG ? exp_for<typename F::number>(row[n]) : row[n];
    });
    const real constant = F::constant(group.sum(sum));
    lane.each([&](int n) { row[n] = F::y(row[n], constant); });
    store_row(lane, row, y + group.row * C);
}

template <class F>
__global__ void softmax_backward_by_pieces(int64_t C, const typename F::number *y,
                                           const typename F::number *dy, bool fresh,
                                           typename F::number *dx)
{
    typedef typename F::real real;
    const row_group<ROW_THREADS> group;
    const bool aligned = whole_packs(C, y, dy, dx);
    y += group.row * C;
    dy += group.row * C;
    dx += group.row * C;
    real sum = 0;
    each_piece(group, C, aligned, [&](const auto &lane, int64_t c) {
        const auto a = load_stored(lane, y + c), b = load_stored(lane, dy + c);
        lane.each([&](int n) { sum += F::term((real)a[n], (real)b[n]); });
    });
    sum = group.sum(sum);
    each_piece(group, C, aligned, [&](const auto &lane, int64_t c) {
        const auto a = load_stored(lane, y + c);
        auto part = load_row<real>(lane, dy + c);
        lane.each([&](int n) { part[n] = F::dx((real)a[n], part[n], sum); });
        add_row(lane, part, fresh, dx + c);
    });
}

template <class F, int GROUP, int PACKS, bool WHOLE>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS<typename F::number, WHOLE>)
    softmax_backward_in_registers(int64_t rows, int64_t C, const typename F::number *all_y,
                                  const typename F::number *all_dy, bool fresh,
                                  typename F::number *dx)
{
    typedef typename F::real real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const lane_row<GROUP, PACKS, WHOLE> lane(group, C);
    const auto y = load_stored(lane, all_y + group.row * C);
    auto dy = load_row<real>(lane, all_dy + group.row * C);
    real sum = 0;
    lane.each([&](int n) { sum += F::term((real)y[n], dy[n]); });
    sum = group.sum(sum);
    lane.each([&](int n) { dy[n] = F::dx((real)y[n], dy[n], sum); });
    add_row(lane, dy, fresh, dx + group.row * C);
}

template <class T, bool LOG> bool softmax_forward(int64_t rows, int64_t C, const void *x, void *y)
{
    typedef softmax_of<T, LOG> F;
    LAUNCH_IN_REGISTERS(softmax_by_pieces, softmax_in_registers, F, rows, C, whole_packs(C, x, y),
                        (const T *)x, (T *)y);
    return launched(LOG ? "log_softmax" : "softmax");
}

template <class T, bool LOG>
bool softmax_backward(int64_t rows, int64_t C, const void *y, const void *dy, bool fresh, void *dx)
{
    typedef softmax_of<T, LOG> F;
    LAUNCH_IN_REGISTERS(softmax_backward_by_pieces, softmax_backward_in_registers, F, rows, C,
                        whole_packs(C, y, dy, dx), (const T *)y, (const T *)dy, fresh, (T *)dx);
    return launched(LOG ? "log_softmax" : "softmax");
}

#endif
