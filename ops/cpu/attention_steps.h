/* Steps that the forward and the backward of composed attention share. */
#ifndef SOFTBACK_OPS_CPU_ATTENTION_STEPS_H
#define SOFTBACK_OPS_CPU_ATTENTION_STEPS_H

#include "ops/attention.h"
#include "ops/cpu/dropout_bits.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/masked_row.h"
#include "ops/cpu/short_rows.h"

/* The queries first .. first + n - 1 of sequence b and head h, and the range of their keys. Rows of
   pairs are `pitch` apart. */
struct block {
    const struct attention *a;
    int64_t b, h, first, n;
    struct key_range keys;
    int64_t pitch;
    bool is_short;
    const uint16_t *bits; /* of a short block's dropout, a row after the other; or NULL */
};

static inline struct block block_at(const struct attention *a, int64_t b, int64_t h, int64_t first)
{
    const int64_t n = a->Lq - first < ATTENTION_BLOCK ? a->Lq - first : ATTENTION_BLOCK;
    const struct key_range keys = mask_range(&a->mask, b, first, first + n - 1, a->Lk);
    return (struct block){a, b, h, first, n, keys, a->Lk, false, NULL};
}

static inline struct masked_row row_of(const struct block *x, int64_t i)
{
    return masked_row(&x->a->mask, x->b, x->h, x->first + i, x->a->Lk);
}

/*
 * Short blocks: few keys, and masks that keep a range of them. Their pairs, and the random bits of
 * their dropout, are in the first-level cache, and their rows have room for whole vectors.
 */
enum { SHORT_LEAST = 4 }; /* queries: fewer are faster one by one */
struct short_pairs {
    real of[ATTENTION_BLOCK * (SHORT + LANES)];
};
struct short_bits {
    uint16_t of[ATTENTION_BLOCK * SHORT + LANES];
};

/* Makes the block short, if it can be; draws its bits, unless the partition scatters them. */
static inline void block_shorten(struct block *x, struct short_bits *bits)
{
    const struct attention *a = x->a;
    const struct place *place = &a->dropout.place;
    if (a->Lk > SHORT || a->mask.dense || x->n < SHORT_LEAST)
        return;
    x->is_short = true;
    x->pitch = short_pitch(a->Lk);
    if (a->dropout.threshold == 0 || place->pitch > SHORT || !place_has_prefixes(place))
        return;
    const int64_t start = place_of_row(place, (x->b * a->H + x->h) * a->Lq + x->first);
    CPU(dropout_bits)(&a->dropout, (uint64_t)start / 8, x->n * place->pitch / 8, bits->of);
    x->bits = bits->of;
}

/* The rows of a short block from i on, LANES at most. */
static inline struct short_rows short_rows_of(const struct block *x, int64_t i)
{
    const int64_t left = x->n - i;
    struct short_rows rows = {.count = left < LANES ? left : LANES, .pitch = x->pitch};
    for (int64_t r = 0; r < rows.count; r++)
        rows.keys[r] = row_of(x, i + r).keys;
    return rows;
}

/* Copies the pairs of a short block from or to rows of Lk numbers; the next row overwrites what is
   copied past the end of a row. */
static inline void short_load(const struct block *x, const real *rows, real *pairs)
{
    const int64_t Lk = x->a->Lk;
    for (int64_t i = 0; i < x->n; i++)
        for (int64_t j = 0; j < Lk; j += LANES) {
            const real *from = rows + i * Lk + j;
            const vector y = Lk - j >= LANES ? vector_load(from)
                                             : tail_load(from, Lk - j, (x->n - i) * Lk - j, 0);
            vector_store(pairs + i * x->pitch + j, y);
        }
}

static inline void short_save(const struct block *x, const real *pairs, real *rows)
{
    const int64_t Lk = x->a->Lk;
    for (int64_t i = 0; i < x->n; i++)
        for (int64_t j = 0; j < Lk; j += LANES)
            tail_store(rows + i * Lk + j, Lk - j, (x->n - i) * Lk - j,
                       vector_load(pairs + i * x->pitch + j));
}

/* The first row of a head, and the distance between rows. */
struct rows {
    const real *at;
    int64_t step;
};

static inline struct rows rows_of(const void *data, struct attention_strides s, int64_t b,
                                  int64_t h)
{
    return (struct rows){(const real *)data + b * s.batch + h * s.head, s.row};
}

static inline real *row_in(void *data, struct attention_strides s, int64_t b, int64_t h, int64_t l)
{
    return (real *)data + b * s.batch + h * s.head + l * s.row;
}

static inline void add_scaled(int64_t n, real factor, const real *restrict x, real *restrict y)
{
    for (int64_t d = 0; d < n; d++)
        y[d] += factor * x[d];
}

/* 0 x is 0, and not NaN, for all n x of L rows. */
OUTLINED bool all_finite(int64_t L, int64_t n, struct rows x)
{
    int64_t whole = n / LANES * LANES;
    vector zeros = vector_zero();
    real zero = 0;
    for (int64_t l = 0; l < L; l++) {
        const real *row = x.at + l * x.step;
        for (int64_t d = 0; d < whole; d += LANES)
            zeros += 0 * vector_load(row + d);
        for (int64_t d = whole; d < n; d++)
            zero += 0 * row[d];
    }
    return vector_sum(zeros) + zero == 0;
}

static inline bool product(const struct attention *a, bool ta, bool tb, int64_t m, int64_t n,
                           int64_t k, const real *x, int64_t ldx, const real *y, int64_t ldy,
                           real beta, real *z, int64_t ldz)
{
    return a->products == PRODUCTS_FAST
               ? CPU(gemm_serial)(ta, tb, m, n, k, x, ldx, y, ldy, beta, z, ldz)
               : CPU(gemm_builtin)(ta, tb, m, n, k, x, ldx, y, ldy, beta, z, ldz);
}

/* s_ij = x_i . y_j for all keys in the block's range; the scores, and dm. */
static inline bool pair_products(const struct block *x, int64_t n, struct rows query,
                                 struct rows key, real *s)
{
    int64_t from = x->keys.from, count = x->keys.to - from;
    return count == 0 ||
           product(x->a, false, true, x->n, count, n, query.at + x->first * query.step, query.step,
                   key.at + from * key.step, key.step, 0, s + from, x->pitch);
}

/* s_ij = scale s_ij + bias_ij */
static inline void add_bias(const struct block *x, const real *bias, real *s)
{
    const struct attention *a = x->a;
    const int64_t *step = a->bias;
    bias += x->b * step[0] + x->h * step[1] + x->first * step[2];
    for (int64_t i = 0; i < x->n; i++, s += x->pitch, bias += step[2])
        for (int64_t j = x->keys.from; j < x->keys.to; j++)
            s[j] = (real)a->scale * s[j] + bias[j * step[3]];
}

/* s_i becomes a_i = softmax over the kept j of scale s_ij + bias_ij, and 0 elsewhere */
static inline void softmax_rows(const struct block *x, const real *bias, real *s)
{
    const real scale = bias ? 1 : (real)x->a->scale;
    if (bias)
        add_bias(x, bias, s);
    for (int64_t i = 0; x->is_short && i < x->n; i += LANES) {
        const struct short_rows rows = short_rows_of(x, i);
        short_softmax(&rows, scale, s + i * x->pitch);
    }
    for (int64_t i = 0; !x->is_short && i < x->n; i++, s += x->pitch) {
        const struct masked_row row = row_of(x, i);
        masked_row_softmax(&row, scale, s, s);
    }
}

/* y_ij = x_ij / (1 - p), or 0 where dropped, in the block's range; x and y may be the same. */
OUTLINED void drop(const struct block *block, const real *x, real *y)
{
    const struct attention *a = block->a;
    const struct dropout *dropout = &a->dropout;
    struct dropout_reader reader = {.dropout = dropout};
    int64_t row = (block->b * a->H + block->h) * a->Lq + block->first;
    for (int64_t i = 0; i < block->n; i++, row++, x += block->pitch, y += block->pitch) {
        const int64_t start = place_of_row(&dropout->place, row);
        for (int64_t j = block->keys.from, n; j < block->keys.to; j += n) {
            n = block->keys.to - j;
            const int64_t first = start + place_in_row(&dropout->place, j, &n);
            const uint16_t *bits = dropout_read(&reader, first, &n);
            dropout_apply(dropout, bits, n, x + j, y + j);
        }
    }
}

/* The same for a short block, in whole vectors, with bits that are drawn. */
OUTLINED void drop_short(const struct block *block, const real *x, real *y)
{
    const struct dropout *dropout = &block->a->dropout;
    const uint16_t *bits = block->bits;
    for (int64_t i = 0; i < block->n; i++, bits += dropout->place.pitch)
        for (int64_t j = 0, at = i * block->pitch; j < block->keys.to; j += LANES)
            vector_store(y + at + j, dropout_vector(dropout, bits + j, vector_load(x + at + j)));
}

/* The weights after dropout, in `scratch` if dropout is applied. */
static inline const real *dropped(const struct block *x, const real *weights, real *scratch)
{
    if (x->a->dropout.threshold == 0)
        return weights;
    if (x->bits)
        drop_short(x, weights, scratch);
    else
        drop(x, weights, scratch);
    return scratch;
}

/*
 * Pair by pair: z_i += w_ij y_j, or transposed z_j += w_ij y_i, for the kept pairs only. Used when
 * y is not finite, since a matrix product would add 0 NaN = NaN for blocked pairs, and for the few
 * queries of a decoding step.
 */
OUTLINED void add_by_pairs(const struct block *x, bool transposed, int64_t n, const real *w,
                           struct rows y, real *z, int64_t ldz)
{
    uint8_t buffer[MASK_CHUNK];
    struct masked_chunk chunk;
    for (int64_t i = 0; i < x->n; i++) {
        struct masked_row row = row_of(x, i);
        for (int64_t j = row.keys.from; j < row.keys.to; j += chunk.n) {
            chunk = masked_chunk(&row, j, buffer);
            for (int64_t c = j; c < j + chunk.n; c++) {
                if (chunk.keep && !chunk.keep[c - j])
                    continue;
                int64_t from = transposed ? x->first + i : c, to = transposed ? c : i;
                add_scaled(n, w[i * x->pitch + c], y.at + from * y.step, z + to * ldz);
            }
        }
    }
}

static inline void clear_rows(int64_t L, int64_t n, real *x, int64_t step)
{
    for (int64_t l = 0; l < L; l++)
        memset(x + l * step, 0, (size_t)n * sizeof *x);
}

/* z_i = sum_j w_ij y_j, or z_i += where z is not fresh, z being the block's first row: o = m v and
   dq = ds k. */
static inline bool add_over_keys(const struct block *x, bool finite, int64_t n, const real *w,
                                 struct rows y, bool fresh, real *z, int64_t ldz)
{
    int64_t from = x->keys.from, count = x->keys.to - from;
    if (finite && count > 0)
        return product(x->a, false, false, x->n, n, count, w + from, x->pitch, y.at + from * y.step,
                       y.step, fresh ? 0 : 1, z, ldz);
    if (fresh)
        clear_rows(x->n, n, z, ldz);
    add_by_pairs(x, false, n, w, y, z, ldz);
    return true;
}

/* z_j = sum_i w_ij y_i, or z_j +=, z being the row of key 0: dv = m' do and dk = ds' q. */
static inline bool add_over_queries(const struct block *x, bool finite, int64_t n, const real *w,
                                    struct rows y, bool fresh, real *z, int64_t ldz)
{
    int64_t from = x->keys.from, count = x->keys.to - from;
    const bool writes = fresh && finite && count == x->a->Lk;
    if (fresh && !writes)
        clear_rows(x->a->Lk, n, z, ldz);
    if (finite)
        return count == 0 ||
               product(x->a, true, false, count, n, x->n, w + from, x->pitch,
                       y.at + x->first * y.step, y.step, writes ? 0 : 1, z + from * ldz, ldz);
    add_by_pairs(x, true, n, w, y, z, ldz);
    return true;
}

/* Defined in attention_cached.c, attention_backward.c, attention_tiled.c,
   attention_tiled_backward.c and attention_rows.c. */
bool CPU(attention_cached)(const struct attention *a, const struct attention_forward *f);
bool CPU(attention_backward)(const struct attention *a, const struct attention_backward *g);
bool CPU(attention_tiled)(const struct attention *a, const struct attention_tiled *f);
bool CPU(attention_tiled_backward)(const struct attention *a,
                                   const struct attention_tiled_backward *g);
bool CPU(attention_rows)(const struct attention *a, const struct attention_tiled *f,
                         const struct attention_tiled_backward *g, int64_t first, int64_t count,
                         void *rows);

#endif
