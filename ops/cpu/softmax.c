#include "ops/softmax.h"
#include "ops/cpu/masked_row.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/stream.h"

static bool softmax_forward(int64_t rows, int64_t C, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    const bool streamed = streams(rows, C, y);
#pragma omp parallel if (rows * C > PARALLEL_WORK)
    {
        real made[STREAM_ROW] __attribute__((aligned(64)));
#pragma omp for schedule(static) nowait
        for (int64_t r = 0; r < rows; r++) {
            row_softmax(C, C, 1, x + r * C, stream_begin(streamed, made, y + r * C));
            stream_row(streamed, C, made, y + r * C);
        }
        stream_end();
    }
    return true;
}

/* Of y_c = exp(x_c - max) / sum: to_c = dx_c + y_c (dy_c - sum_j y_j dy_j) */
static void softmax_backward_row(int64_t C, const real *y, const real *dy, bool fresh,
                                 const real *dx, real *to)
{
    const real dot = row_dot(C, C, y, dy);
    for (int64_t from = 0; from < C; from += ROW_PART) {
        const int64_t end = smaller(from + ROW_PART, C);
        row_prefetch(end - from, y + C + from);
        row_prefetch(end - from, dy + C + from);
#pragma omp simd
        for (int64_t c = from; c < end; c++)
            to[c] = before(fresh, dx[c]) + y[c] * (dy[c] - dot);
    }
}

static bool softmax_backward(int64_t rows, int64_t C, const void *y_, const void *dy_, bool fresh,
                             void *dx_)
{
    const real *y = y_, *dy = dy_;
    real *dx = dx_;
    const bool streamed = fresh && streams(rows, C, dx);
#pragma omp parallel if (rows * C > PARALLEL_WORK)
    {
        real made[STREAM_ROW] __attribute__((aligned(64)));
#pragma omp for schedule(static) nowait
        for (int64_t r = 0; r < rows; r++) {
            softmax_backward_row(C, y + r * C, dy + r * C, fresh, dx + r * C,
                                 stream_begin(streamed, made, dx + r * C));
            stream_row(streamed, C, made, dx + r * C);
        }
        stream_end();
    }
    return true;
}

/* Row r of (B, H, Lq, Lk). */
static struct masked_row softmax_row_at(const struct mask_sizes *s, const struct mask_terms *mask,
                                        int64_t r)
{
    return masked_row(mask, r / s->Lq / s->H, r / s->Lq % s->H, r % s->Lq, s->Lk);
}

static bool softmax_masked_forward(struct mask_sizes s, const struct mask_terms *mask,
                                   double temperature, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    const real scale = (real)(1 / temperature);
    int64_t rows = s.B * s.H * s.Lq;
#pragma omp parallel for schedule(static) if (rows * s.Lk > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++) {
        struct masked_row row = softmax_row_at(&s, mask, r);
        masked_row_softmax(&row, scale, x + r * s.Lk, y + r * s.Lk);
    }
    return true;
}

/* sum_j y_j dy_j over the kept keys */
static real softmax_masked_dot(const struct masked_row *row, const real *y, const real *dy)
{
    uint8_t buffer[MASK_CHUNK];
    struct masked_chunk chunk;
    int64_t from = row->keys.from;
    if (!row->mask->dense)
        return row_dot(row->keys.to - from, row->Lk - from, y + from, dy + from);
    real dot = 0;
    for (int64_t j = from; j < row->keys.to; j += chunk.n) {
        chunk = masked_chunk(row, j, buffer);
#pragma omp simd reduction(+ : dot)
        for (int64_t c = 0; c < chunk.n; c++)
            dot += chunk.keep[c] ? y[j + c] * dy[j + c] : 0;
    }
    return dot;
}

/* Of y_j = exp(scale x_j - max) / sum over the kept j: dx_j += scale y_j (dy_j - sum_i y_i dy_i) */
static void softmax_masked_backward_row(const struct masked_row *row, real scale,
                                        const real *restrict y, const real *restrict dy,
                                        real *restrict dx)
{
    uint8_t buffer[MASK_CHUNK];
    struct masked_chunk chunk;
    const real dot = softmax_masked_dot(row, y, dy);
    for (int64_t j = row->keys.from; j < row->keys.to; j += chunk.n) {
        chunk = masked_chunk(row, j, buffer);
        for (int64_t c = j; c < j + chunk.n; c++) {
            real ds = y[c] * (dy[c] - dot);
            dx[c] += !chunk.keep || chunk.keep[c - j] ? scale * ds : 0;
        }
    }
}

static bool softmax_masked_backward(struct mask_sizes s, const struct mask_terms *mask,
                                    double temperature, const void *y_, const void *dy_, bool fresh,
                                    void *dx_)
{
    const real *y = y_, *dy = dy_;
    real *dx = dx_;
    const real scale = (real)(1 / temperature);
    int64_t rows = s.B * s.H * s.Lq;
#pragma omp parallel for schedule(static) if (rows * s.Lk > PARALLEL_WORK)
    for (int64_t r = 0; r < rows; r++) {
        struct masked_row row = softmax_row_at(&s, mask, r);
        if (fresh)
            memset(dx + r * s.Lk, 0, (size_t)s.Lk * sizeof *dx);
        softmax_masked_backward_row(&row, scale, y + r * s.Lk, dy + r * s.Lk, dx + r * s.Lk);
    }
    return true;
}

static int64_t softmax_bad_length(int64_t B, const int32_t *lengths, int64_t Lk)
{
    for (int64_t b = 0; b < B; b++)
        if (lengths[b] < 0 || lengths[b] > Lk)
            return b;
    return -1;
}

static bool softmax_has_key(const struct masked_row *row)
{
    uint8_t buffer[MASK_CHUNK];
    struct masked_chunk chunk;
    for (int64_t j = row->keys.from; j < row->keys.to; j += chunk.n) {
        chunk = masked_chunk(row, j, buffer);
        if (!chunk.keep || memchr(chunk.keep, 1, (size_t)chunk.n))
            return true;
    }
    return false;
}

static bool softmax_seen(struct mask_sizes s, const struct mask_terms *mask, int64_t rows,
                         uint8_t *seen)
{
    for (int64_t r = 0; r < s.B * s.H * s.Lq; r++) {
        const struct masked_row row = softmax_row_at(&s, mask, r);
        seen[r / s.Lq * rows + r % s.Lq] = softmax_has_key(&row);
    }
    return true;
}

KERNELS(softmax) = {softmax_forward,         softmax_backward,   softmax_masked_forward,
                    softmax_masked_backward, softmax_bad_length, softmax_seen};
