#include "ops/dropout.h"
#include "ops/cpu/dropout_bits.h"

/* Applies dropout to at most a chunk of elements from `first` on. One draw of bits suffices when
   they are contiguous in the unsharded tensor and start at a group of 8. */
static void dropout_drop(const struct dropout *dropout, int64_t first, int64_t count, const real *x,
                         real *y)
{
    const struct place *place = &dropout->place;
    if (place->flat && place->offset % 8 == 0) {
        struct dropout_bits bits;
        CPU(dropout_bits)(dropout, (uint64_t)(place->offset + first) / 8, DROPOUT_GROUPS, bits.of);
        dropout_apply(dropout, bits.of, count, x, y);
        return;
    }
    struct dropout_reader reader = {.dropout = dropout};
    for (int64_t e = 0, n; e < count; e += n) {
        n = count - e;
        const uint16_t *bits = dropout_read_here(&reader, first + e, &n);
        dropout_apply(dropout, bits, n, x + e, y + e);
    }
}

static void dropout_add(int64_t count, const real *x, bool fresh, real *sum)
{
    if (fresh)
        memcpy(sum, x, (size_t)count * sizeof *sum);
    else
        for (int64_t e = 0; e < count; e++)
            sum[e] += x[e];
}

/* The dropped x of a chunk, in `buffer`; x itself when nothing is dropped. */
static const real *dropout_dropped(const struct dropout *dropout, int64_t first, int64_t count,
                                   const real *x, real *buffer)
{
    if (dropout->threshold == 0)
        return x;
    dropout_drop(dropout, first, count, x, buffer);
    return buffer;
}

static bool dropout_forward(const struct dropout *dropout, int64_t n, const void *x_,
                            const void *residual_, void *y_)
{
    const real *x = x_, *residual = residual_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t first = 0; first < n; first += DROPOUT_CHUNK) {
        int64_t count = smaller(n - first, DROPOUT_CHUNK);
        real buffer[DROPOUT_CHUNK];
        const real *kept = dropout_dropped(dropout, first, count, x + first, buffer);
        if (residual)
            for (int64_t e = 0; e < count; e++)
                y[first + e] = residual[first + e] + kept[e];
        else
            memcpy(y + first, kept, (size_t)count * sizeof *y);
    }
    return true;
}

/* y = residual + (dropped ? 0 : x / (1 - p)), and backward drops the same elements */
static bool dropout_backward(const struct dropout *dropout, int64_t n, const void *dy_, void *dx_,
                             bool fresh_dx, void *dresidual_, bool fresh_dresidual)
{
    const real *dy = dy_;
    real *dx = dx_, *dresidual = dresidual_;
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t first = 0; first < n; first += DROPOUT_CHUNK) {
        int64_t count = smaller(n - first, DROPOUT_CHUNK);
        real buffer[DROPOUT_CHUNK];
        if (dx)
            dropout_add(count, dropout_dropped(dropout, first, count, dy + first, buffer), fresh_dx,
                        dx + first);
        if (dresidual)
            dropout_add(count, dy + first, fresh_dresidual, dresidual + first);
    }
    return true;
}

KERNELS(dropout) = {dropout_forward, dropout_backward};
