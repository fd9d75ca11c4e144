#include "ops/slice.h"
#include "ops/cpu/real.h"

/* Long runs are split into pieces, so that threads share them. */
enum { PIECE = 4096 };

struct piece {
    int64_t length, x, y; /* offsets in elements */
};

static inline int64_t slice_piece_count(struct runs runs)
{
    return runs.count * ((runs.length + PIECE - 1) / PIECE);
}

static inline struct piece slice_piece_at(struct runs runs, int64_t i)
{
    const int64_t pieces = (runs.length + PIECE - 1) / PIECE, run = i / pieces;
    const int64_t start = (i - run * pieces) * PIECE, rest = runs.length - start;
    return (struct piece){rest < PIECE ? rest : PIECE, run * runs.x_stride + start,
                          run * runs.y_stride + start};
}

static bool slice_copy(size_t width, struct runs runs, const void *x, void *y)
{
#pragma omp parallel for schedule(static) if (runs.count * runs.length > PARALLEL_WORK)
    for (int64_t i = 0; i < slice_piece_count(runs); i++) {
        const struct piece piece = slice_piece_at(runs, i);
        memcpy((char *)y + (size_t)piece.y * width, (const char *)x + (size_t)piece.x * width,
               (size_t)piece.length * width);
    }
    return true;
}

static bool slice_add(struct runs runs, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (runs.count * runs.length > PARALLEL_WORK)
    for (int64_t i = 0; i < slice_piece_count(runs); i++) {
        const struct piece piece = slice_piece_at(runs, i);
        const real *restrict from = x + piece.x;
        real *restrict to = y + piece.y;
        for (int64_t j = 0; j < piece.length; j++)
            to[j] += from[j];
    }
    return true;
}

KERNELS(slice) = {slice_copy, slice_add};

#if REAL_IS_FLOAT
static bool slice_add_bf16(struct runs runs, const void *x_, void *y_)
{
    const uint16_t *x = x_;
    uint16_t *y = y_;
#pragma omp parallel for schedule(static) if (runs.count * runs.length > PARALLEL_WORK)
    for (int64_t i = 0; i < slice_piece_count(runs); i++) {
        const struct piece piece = slice_piece_at(runs, i);
        const uint16_t *restrict from = x + piece.x;
        uint16_t *restrict to = y + piece.y;
        for (int64_t j = 0; j < piece.length; j++)
            to[j] = sb_bf16_round(sb_bf16_widen(to[j]) + sb_bf16_widen(from[j]));
    }
    return true;
}

KERNELS_BF16(slice) = {slice_copy, slice_add_bf16};
#endif
