#include "ops/cpu/rows.h"
#include "ops/softmax.h"

static void log_softmax_forward_row(int64_t C, const real *restrict x, real *restrict y)
{
    real max = row_max(C, x), log_sum = real_log(row_sum_exp(C, x, max));
    for (int64_t c = 0; c < C; c++)
        y[c] = (x[c] - max) - log_sum;
}

static bool log_softmax_forward(int64_t rows, int64_t C, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        log_softmax_forward_row(C, x + r * C, y + r * C);
    return true;
}

/* Of y_c = x_c - max - log sum_j exp(x_j - max): dx_c += dy_c - exp(y_c) sum_j dy_j */
static void log_softmax_backward_row(int64_t C, const real *restrict y, const real *restrict dy,
                                     bool fresh, real *restrict dx)
{
    real total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t c = 0; c < C; c++)
        total += dy[c];
    for (int64_t c = 0; c < C; c++)
        dx[c] = before(fresh, dx[c]) + dy[c] - real_exp(y[c]) * total;
}

static bool log_softmax_backward(int64_t rows, int64_t C, const void *y_, const void *dy_,
                                 bool fresh, void *dx_)
{
    const real *y = y_, *dy = dy_;
    real *dx = dx_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        log_softmax_backward_row(C, y + r * C, dy + r * C, fresh, dx + r * C);
    return true;
}

enum { BLOCK = 256 };

static void log_softmax_block_of(int64_t n, const real *restrict x, const real *restrict bias,
                                 real max, real log_sum, real *restrict y)
{
    for (int64_t c = 0; c < n; c++)
        y[c] = (x[c] - max) - log_sum + bias[c];
}

/* The index of the largest y + bias if none is NaN: first its block, then its index there. */
static int64_t log_softmax_best_place(int64_t C, const real *x, const real *bias, real max,
                                      real log_sum)
{
    real y[BLOCK], best = -INFINITY;
    int64_t at = 0, place = 0;
    for (int64_t c = 0; c < C; c += BLOCK) {
        int64_t n = C - c < BLOCK ? C - c : BLOCK;
        log_softmax_block_of(n, x + c, bias + c, max, log_sum, y);
        real largest = row_max(n, y);
        at = largest > best ? c : at;
        best = largest > best ? largest : best;
    }
    log_softmax_block_of(C - at < BLOCK ? C - at : BLOCK, x + at, bias + at, max, log_sum, y);
    while (y[place] != best)
        place++;
    return at + place;
}

/* A NaN or +infinity in x makes the sum NaN, and so all y. */
static int32_t log_softmax_best_of_row(int64_t C, const real *x, const real *bias, double *value)
{
    real max = row_max(C, x), log_sum = real_log(row_sum_exp(C, x, max));
    int64_t place = log_sum == log_sum ? log_softmax_best_place(C, x, bias, max, log_sum) : 0;
    *value = (double)((x[place] - max) - log_sum);
    return (int32_t)place;
}

static bool log_softmax_best_all(int64_t rows, int64_t C, const void *x_, const void *bias,
                                 int32_t *index, double *value)
{
    const real *x = x_;
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++)
        index[r] = log_softmax_best_of_row(C, x + r * C, bias, &value[r]);
    return true;
}

KERNELS(log_softmax) = {log_softmax_forward, log_softmax_backward, log_softmax_best_all};
