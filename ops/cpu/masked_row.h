/*
 * Softmax over the keys that a mask keeps, row by row, for masked_softmax and attention.
 *
 * Terms without a dense pattern keep one range of keys, and the loops visit only that range. With
 * dense terms, the range is processed in chunks, each with bytes keep[j] that are computed when
 * needed and never stored. The mask alone decides which entries are zero: NaN in a blocked entry
 * has no effect, NaN in a kept entry makes all kept weights of its row NaN. The order of a sum
 * depends only on the length of the range, so padding does not change the bits of a row.
 */
#ifndef SOFTBACK_OPS_CPU_MASKED_ROW_H
#define SOFTBACK_OPS_CPU_MASKED_ROW_H

#include "ops/cpu/softmax_row.h"
#include "ops/mask_terms.h"

enum { MASK_CHUNK = 256 };

/* The row of query i in sentence b and head h. */
struct masked_row {
    const struct mask_terms *mask;
    int64_t b, h, i, Lk;
    struct key_range keys;
};

static inline struct masked_row masked_row(const struct mask_terms *mask, int64_t b, int64_t h,
                                           int64_t i, int64_t Lk)
{
    return (struct masked_row){mask, b, h, i, Lk, mask_range(mask, b, i, i, Lk)};
}

/* A part of a row: the keys j .. j + n - 1, of which those with keep[0..n-1] are kept; all when
   keep is NULL. */
struct masked_chunk {
    int64_t j, n;
    const uint8_t *keep;
};

/* One run of keys in the same block at a time. */
static inline void keep_blocks(const struct mask_term *term, const struct masked_row *row,
                               int64_t j, int64_t n, uint8_t *keep)
{
    for (int64_t c = 0, end; c < n; c = end) {
        int64_t column = mask_block_column(term, j + c);
        int64_t next = (column + 1) * term->size - term->key - j;
        end = next < n ? next : n;
        if (!mask_block_kept(term, row->b, row->h, mask_block_row(term, row->i), column))
            memset(keep + c, 0, (size_t)(end - c));
    }
}

static inline void keep_term(const struct mask_term *term, const struct masked_row *row, int64_t j,
                             int64_t n, uint8_t *keep)
{
    const int64_t *s = term->stride, step = s[3];
    const uint8_t *pairs = term->pairs + row->b * s[0] + row->h * s[1] + row->i * s[2] + j * step;
    for (int64_t c = 0; c < n; c++)
        keep[c] &= (pairs[c * step] != 0) == term->allows;
}

/* What all dense terms keep of n keys from j on. */
OUTLINED void keep_terms(const struct masked_row *row, int64_t j, int64_t n, uint8_t *buffer)
{
    memset(buffer, 1, (size_t)n);
    for (int t = 0; t < row->mask->count; t++) {
        if (row->mask->term[t].kind == MASK_DENSE)
            keep_term(&row->mask->term[t], row, j, n, buffer);
        if (row->mask->term[t].kind == MASK_BLOCKS)
            keep_blocks(&row->mask->term[t], row, j, n, buffer);
    }
}

/* The chunk from key j on; `buffer` has room for MASK_CHUNK bytes. Without dense terms it is the
   rest of the row. */
static inline struct masked_chunk masked_chunk(const struct masked_row *row, int64_t j,
                                               uint8_t *buffer)
{
    int64_t n = row->keys.to - j;
    if (!row->mask->dense)
        return (struct masked_chunk){j, n, NULL};
    n = n < MASK_CHUNK ? n : MASK_CHUNK;
    keep_terms(row, j, n, buffer);
    return (struct masked_chunk){j, n, buffer};
}

/* y becomes x in the row's range, but `fill` where a dense term blocks; x and y may be the same. */
OUTLINED void masked_row_fill(const struct masked_row *row, real fill, const real *x, real *y)
{
    uint8_t buffer[MASK_CHUNK];
    struct masked_chunk chunk;
    for (int64_t j = row->keys.from; j < row->keys.to; j += chunk.n) {
        chunk = masked_chunk(row, j, buffer);
        for (int64_t c = 0; c < chunk.n; c++)
            y[j + c] = !chunk.keep || chunk.keep[c] ? x[j + c] : fill;
    }
}

/* x becomes 0 outside of the kept keys, whatever it was. */
static inline void masked_row_clear(const struct masked_row *row, real *x)
{
    int64_t from = row->keys.from, to = row->keys.to;
    if (row->mask->dense)
        masked_row_fill(row, 0, x, x);
    memset(x, 0, (size_t)from * sizeof *x);
    memset(x + to, 0, (size_t)(row->Lk - to) * sizeof *x);
}

/*
 * The weights of a row: y_j = exp(scale x_j - max) / sum over the kept keys, and 0 elsewhere. x and
 * y may be the same. Blocked scores in the range are set to -infinity, which gives exactly 0 unless
 * the sum is not positive: when all scores are blocked, or a kept one is not finite.
 */
static inline void masked_row_softmax(const struct masked_row *row, real scale, const real *x,
                                      real *y)
{
    int64_t from = row->keys.from, count = row->keys.to - from;
    if (row->mask->dense) {
        masked_row_fill(row, -INFINITY, x, y);
        x = y;
    }
    real sum = row_softmax(count, row->Lk - from, scale, x + from, y + from);
    if (row->mask->dense && !(sum > 0 && sum < INFINITY))
        masked_row_fill(row, 0, y, y);
    memset(y, 0, (size_t)from * sizeof *y);
    memset(y + from + count, 0, (size_t)(row->Lk - from - count) * sizeof *y);
}

#endif
