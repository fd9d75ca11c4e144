#include "ops/cpu/real.h"
#include "ops/shape.h"

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

/* y += x, for n numbers that do not overlap. */
typedef void piece_function(int64_t n, const void *x, void *y);

static bool slice_add_pieces(size_t width, struct runs runs, piece_function *add, const void *x,
                             void *y)
{
#pragma omp parallel for schedule(static) if (runs.count * runs.length > PARALLEL_WORK)
    for (int64_t i = 0; i < slice_piece_count(runs); i++) {
        const struct piece piece = slice_piece_at(runs, i);
        add(piece.length, (const char *)x + (size_t)piece.x * width,
            (char *)y + (size_t)piece.y * width);
    }
    return true;
}

static void slice_add_piece(int64_t n, const void *x_, void *y_)
{
    const real *restrict x = x_;
    real *restrict y = y_;
    for (int64_t j = 0; j < n; j++)
        y[j] += x[j];
}

static bool slice_add(struct runs runs, const void *x, void *y)
{
    return slice_add_pieces(sizeof(real), runs, slice_add_piece, x, y);
}

KERNELS(slice) = {slice_copy, slice_add};

#if REAL_IS_FLOAT
static void slice_add_piece_bf16(int64_t n, const void *x_, void *y_)
{
    const uint16_t *restrict x = x_;
    uint16_t *restrict y = y_;
    for (int64_t j = 0; j < n; j++)
        y[j] = sb_bf16_round(sb_bf16_widen(y[j]) + sb_bf16_widen(x[j]));
}

static bool slice_add_bf16(struct runs runs, const void *x, void *y)
{
    return slice_add_pieces(sizeof(uint16_t), runs, slice_add_piece_bf16, x, y);
}

KERNELS_BF16(slice) = {slice_copy, slice_add_bf16};
#endif
