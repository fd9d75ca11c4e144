/*
 * Tiles, which the forward and the backward of tiled attention share.
 *
 * The scores of a head are divided into tiles of QUERIES x KEYS at fixed positions. A tile lives in
 * scratch memory with rows PITCH apart; element c of a row belongs to key j + c. Only the columns
 * from .. to - 1 are computed: those that the mask keeps for some query of the tile before dense
 * terms. They are computed in whole vectors, and blocked entries are overwritten afterwards.
 */
#ifndef SOFTBACK_OPS_CPU_ATTENTION_TILES_H
#define SOFTBACK_OPS_CPU_ATTENTION_TILES_H

#include "ops/cpu/attention_steps.h"
#include "ops/cpu/gemm_builtin.h"

/* PITCH is not a power of two: the elements of a column would then map to few cache sets. */
enum { QUERIES = 64, KEYS = 256, PITCH = KEYS + LANES };

_Static_assert((int)KEYS == (int)DROPOUT_CHUNK, "a row of a tile has the random bits of one chunk");
_Static_assert((int)KEYS == (int)MASK_CHUNK, "a row of a tile has one chunk of a dense mask");

struct attention_tile {
    const struct attention *a;
    int64_t b, h;
    int64_t i, rows; /* queries i .. i + rows - 1 */
    int64_t j, keys; /* keys j .. j + keys - 1 */
    int64_t from, to;
    bool whole; /* every pair in these columns is kept */
};

static inline int64_t whole_vectors(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

/* Finds the columns that the mask keeps; false if none. `whole` if it keeps every pair. */
static inline bool tile_kept(struct attention_tile *t)
{
    const struct mask_terms *mask = &t->a->mask;
    const int64_t query[2] = {t->i, t->i + t->rows - 1},
                  key[2] = {t->j + t->from, t->j + t->to - 1};
    bool any = t->from < t->to, every = true;
    for (int n = 0; any && n < mask->count; n++) {
        const struct mask_term *term = &mask->term[n];
        if (term->kind == MASK_BAND)
            every &= key[0] >= query[1] - term->before && key[1] <= query[0] + term->after;
        else if (term->kind == MASK_LENGTHS)
            every &= key[1] + term->key < term->lengths[t->b];
        else if (term->kind == MASK_BLOCKS) {
            bool all;
            mask_blocks_kept(term, t->b, t->h, query, key, &any, &all);
            every &= all;
        } else
            every = false;
    }
    t->whole = every;
    return any;
}

/* Makes the tile of queries i.. and keys j..; false if it is fully masked. */
static inline bool tile_at(const struct attention *a, int64_t b, int64_t h, int64_t i, int64_t j,
                           struct attention_tile *t)
{
    int64_t rows = smaller(a->Lq - i, QUERIES), keys = smaller(a->Lk - j, KEYS);
    struct key_range range = mask_range(&a->mask, b, i, i + rows - 1, a->Lk);
    *t = (struct attention_tile){.a = a, .b = b, .h = h, .i = i, .rows = rows, .j = j};
    t->keys = keys;
    t->from = larger(range.from - j, 0);
    t->to = smaller(range.to - j, keys);
    return tile_kept(t);
}

/* The columns that the mask keeps in row r of the tile before dense terms. */
static inline struct masked_row tile_row(const struct attention_tile *t, int64_t r)
{
    struct masked_row row = masked_row(&t->a->mask, t->b, t->h, t->i + r, t->a->Lk);
    row.keys.from = larger(row.keys.from, t->j + t->from);
    row.keys.to = larger(smaller(row.keys.to, t->j + t->to), row.keys.from);
    return row;
}

/* Sets x to `fill` where row r is blocked, in the vectors of the tile's columns. Returns whether
   the row keeps any key. */
static inline bool fill_blocked(const struct attention_tile *t, int64_t r, real fill, real *x)
{
    int64_t end = whole_vectors(t->to);
    if (t->whole) {
        for (int64_t c = t->to; c < end; c++)
            x[c] = fill;
        for (int64_t c = t->from / LANES * LANES; c < t->from; c++)
            x[c] = fill;
        return true;
    }
    struct masked_row row = tile_row(t, r);
    int64_t from = row.keys.from - t->j, to = row.keys.to - t->j;
    for (int64_t c = t->from / LANES * LANES; c < from; c++)
        x[c] = fill;
    for (int64_t c = to; c < end; c++)
        x[c] = fill;
    bool any = from < to && !row.mask->dense;
    if (from < to && row.mask->dense) {
        uint8_t buffer[MASK_CHUNK];
        struct masked_chunk chunk = masked_chunk(&row, row.keys.from, buffer);
        for (int64_t c = 0; c < chunk.n; c++) {
            any |= chunk.keep[c];
            x[from + c] = chunk.keep[c] ? x[from + c] : fill;
        }
    }
    return any;
}

/* The random bits of row r of the tile. */
static inline struct dropout_bits tile_bits(const struct attention_tile *t, int64_t r)
{
    const struct attention *a = t->a;
    const struct dropout *dropout = &a->dropout;
    const int64_t row = (t->b * a->H + t->h) * a->Lq + t->i + r;
    const int64_t start = place_of_row(&dropout->place, row);
    struct dropout_bits bits;
    if (dropout->place.flat) {
        CPU(dropout_bits)(dropout, (uint64_t)(start + t->j) / 8, DROPOUT_GROUPS, bits.of);
        return bits;
    }
    struct dropout_reader reader = {.dropout = dropout};
    for (int64_t c = t->from, n; c < t->to; c += n) {
        n = t->to - c;
        const int64_t first = start + place_in_row(&dropout->place, t->j + c, &n);
        const uint16_t *from = dropout_read(&reader, first, &n);
        memcpy(bits.of + c, from, (size_t)n * sizeof *from);
    }
    return bits;
}

static inline void tile_drop(const struct attention_tile *t, const struct dropout_bits *bits,
                             const real *x, real *y)
{
    dropout_apply(&t->a->dropout, bits->of + t->from, t->to - t->from, x + t->from, y + t->from);
}

/* s_rc = q_r . k_c for the tile's columns; `keys` is packed. */
static inline void tile_products(const struct attention_tile *t, int64_t n, const real *query,
                                 int64_t step, const real *keys, real *s)
{
    struct factor a = {query, step, 1};
    CPU(gemm_packed)(t->rows, t->keys, t->from, t->to, n, a, keys, s, PITCH);
}

/* The factor of score differences: 1 with a bias, since tile_scores has applied the scale. */
static inline real score_factor(const struct attention *a, const void *bias)
{
    return bias ? 1 : (real)a->scale;
}

/* The scores of row r, from s = q k': with a bias, scale s + bias; without, s itself. */
static inline void tile_scores(const struct attention_tile *t, int64_t r, const real *bias, real *x)
{
    const real scale = (real)t->a->scale;
    const int64_t *step = t->a->bias;
    if (!bias)
        return;
    bias += t->b * step[0] + t->h * step[1] + (t->i + r) * step[2] + t->j * step[3];
    for (int64_t c = t->from; c < t->to; c++)
        x[c] = scale * x[c] + bias[c * step[3]];
}

/* p = exp(scale (s - m)) / l, in row r. */
static inline void tile_weights(const struct attention_tile *t, int64_t r, real scale,
                                const real *stats, real *x)
{
    for (int64_t c = t->from / LANES * LANES; c < whole_vectors(t->to); c += LANES)
        vector_store(x + c, stats[1] * vector_exp(scale * (vector_load(x + c) - stats[0])));
    fill_blocked(t, r, 0, x);
}

/*
 * Pair by pair: z_r += w_rc y_c, or transposed z_c += w_rc y_r, for the kept pairs only. A matrix
 * product would add 0 NaN = NaN for blocked pairs.
 */
OUTLINED void tile_add_by_pairs(const struct attention_tile *t, bool transposed, int64_t n,
                                const real *w, const real *y, int64_t ldy, real *z, int64_t ldz)
{
    uint8_t buffer[MASK_CHUNK];
    for (int64_t r = 0; r < t->rows; r++) {
        struct masked_row row = tile_row(t, r);
        if (row.keys.from == row.keys.to)
            continue;
        struct masked_chunk chunk = masked_chunk(&row, row.keys.from, buffer);
        for (int64_t c = row.keys.from - t->j, e = 0; e < chunk.n; c++, e++)
            if (!chunk.keep || chunk.keep[e])
                add_scaled(n, w[r * PITCH + c], y + (transposed ? r : c) * ldy,
                           z + (transposed ? c : r) * ldz);
    }
}

/* z_r += sum_c w_rc y_c */
static inline void tile_add_over_keys(const struct attention_tile *t, bool finite, int64_t n,
                                      const real *w, const real *y, int64_t ldy, real *z,
                                      int64_t ldz)
{
    struct factor a = {w + t->from, PITCH, 1};
    if (finite || t->whole)
        CPU(gemm_rows)(t->rows, n, t->to - t->from, a, y + t->from * ldy, ldy, true, z, ldz);
    else
        tile_add_by_pairs(t, false, n, w, y, ldy, z, ldz);
}

/* z_c += sum_r w_rc y_r */
static inline void tile_add_over_queries(const struct attention_tile *t, bool finite, int64_t n,
                                         const real *w, const real *y, int64_t ldy, real *z,
                                         int64_t ldz)
{
    struct factor a = {w + t->from, 1, PITCH};
    if (finite || t->whole)
        CPU(gemm_rows)(t->to - t->from, n, t->rows, a, y, ldy, true, z + t->from * ldz, ldz);
    else
        tile_add_by_pairs(t, true, n, w, y, ldy, z, ldz);
}

/* Copies L rows of n into contiguous rows, padded to whole vectors; returns whether all numbers are
   finite, so that 0 x = 0 and not NaN. */
static inline bool copy_rows(int64_t L, int64_t n, const real *x, int64_t step, real *y)
{
    const int64_t whole = n / LANES * LANES;
    vector zeros = vector_zero();
    for (int64_t l = 0; l < L; l++, x += step, y += whole_vectors(n)) {
        for (int64_t d = 0; d < whole; d += LANES) {
            vector v = vector_load(x + d);
            vector_store(y + d, v);
            zeros += 0 * v;
        }
        if (whole < n) {
            vector v = tail_load(x + whole, n - whole, 0, 0);
            vector_store(y + whole, v);
            zeros += 0 * v;
        }
    }
    return vector_sum(zeros) == 0;
}

#endif
