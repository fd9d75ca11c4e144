#include "ops/softmax.h"
#include "ops/plain/mask.h"
#include "ops/plain/real.h"

/* y_i = exp(x_i - max x) / sum_j exp(x_j - max x), for each row */
static bool softmax_forward(int64_t rows, int64_t C, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    for (int64_t r = 0; r < rows; r++, x += C, y += C) {
        real max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < C; i++)
            max = real_max(max, x[i]);
        for (int64_t i = 0; i < C; i++)
            sum += y[i] = real_exp(x[i] - max);
        for (int64_t i = 0; i < C; i++)
            y[i] /= sum;
    }
    return true;
}

/* dx_i = y_i (dy_i - sum_j dy_j y_j) */
static bool softmax_backward(int64_t rows, int64_t C, const void *y_,
                             const void *dy_, bool fresh, void *dx_)
{
    const real *y = y_, *dy = dy_;
    real *dx = dx_;
    zero_if_fresh(fresh, rows * C, dx);
    for (int64_t r = 0; r < rows; r++, y += C, dy += C, dx += C) {
        real dot = 0;
        for (int64_t j = 0; j < C; j++)
            dot += dy[j] * y[j];
        for (int64_t i = 0; i < C; i++)
            dx[i] += y[i] * (dy[i] - dot);
    }
    return true;
}

/* Whether the mask allows entry j of row r of (B, H, Lq, Lk). */
static bool allowed(const struct mask_sizes *s, const struct mask_terms *mask,
                    int64_t r, int64_t j)
{
    return mask_allows(mask, r / s->Lq / s->H, r / s->Lq % s->H, r % s->Lq, j);
}

/* y_i = exp(x_i / T - max) / sum_j exp(x_j / T - max), max and sum over the
   allowed j; 0 where blocked */
static bool softmax_masked_forward(struct mask_sizes s,
                                   const struct mask_terms *mask,
                                   double temperature, const void *x_, void *y_)
{
    const real *x = x_, T = (real)temperature;
    real *y = y_;
    for (int64_t r = 0; r < s.B * s.H * s.Lq; r++, x += s.Lk, y += s.Lk) {
        real max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < s.Lk; i++)
            if (allowed(&s, mask, r, i))
                max = real_max(max, x[i] / T);
        for (int64_t i = 0; i < s.Lk; i++) {
            y[i] = allowed(&s, mask, r, i) ? real_exp(x[i] / T - max) : 0;
            sum += y[i];
        }
        for (int64_t i = 0; i < s.Lk; i++)
            y[i] = allowed(&s, mask, r, i) ? y[i] / sum : 0;
    }
    return true;
}

/* dx_i = y_i (dy_i - sum_j dy_j y_j) / T, the sum over the allowed j; 0 where
   blocked */
static bool softmax_masked_backward(struct mask_sizes s,
                                    const struct mask_terms *mask,
                                    double temperature, const void *y_,
                                    const void *dy_, bool fresh, void *dx_)
{
    const real *y = y_, *dy = dy_, T = (real)temperature;
    const int64_t rows = s.B * s.H * s.Lq;
    real *dx = dx_;
    zero_if_fresh(fresh, rows * s.Lk, dx);
    for (int64_t r = 0; r < rows; r++, y += s.Lk, dy += s.Lk, dx += s.Lk) {
        real dot = 0;
        for (int64_t j = 0; j < s.Lk; j++)
            dot += allowed(&s, mask, r, j) ? dy[j] * y[j] : 0;
        for (int64_t i = 0; i < s.Lk; i++)
            dx[i] += allowed(&s, mask, r, i) ? y[i] * (dy[i] - dot) / T : 0;
    }
    return true;
}

/* The first sequence whose length is not in 0..Lk, or -1. */
static int64_t bad_length(int64_t B, const int32_t *lengths, int64_t Lk)
{
    for (int64_t b = 0; b < B; b++)
        if (lengths[b] < 0 || lengths[b] > Lk)
            return b;
    return -1;
}

/* Whether the mask allows each query a key. */
static bool masked_queries_seen(struct mask_sizes s,
                                const struct mask_terms *mask, int64_t rows,
                                uint8_t *seen)
{
    for (int64_t r = 0; r < s.B * s.H * s.Lq; r++) {
        uint8_t *any = &seen[r / s.Lq * rows + r % s.Lq];
        *any = 0;
        for (int64_t j = 0; j < s.Lk && !*any; j++)
            *any = allowed(&s, mask, r, j);
    }
    return true;
}

KERNELS(softmax) = {
    softmax_forward,         softmax_backward, softmax_masked_forward,
    softmax_masked_backward, bad_length,       masked_queries_seen};
