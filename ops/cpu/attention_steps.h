/* Steps that the forward and the backward of composed attention share. */
#ifndef SOFTBACK_OPS_CPU_ATTENTION_STEPS_H
#define SOFTBACK_OPS_CPU_ATTENTION_STEPS_H

#include "ops/attention.h"
#include "ops/cpu/dropout_bits.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/masked_row.h"

/* The queries first .. first + n - 1 of sequence b and head h, and the range of their keys. */
struct block {
    const struct attention *a;
    int64_t b, h, first, n;
    struct key_range keys;
};

static inline struct block block_at(const struct attention *a, int64_t b, int64_t h, int64_t first)
{
    int64_t n = a->Lq - first < ATTENTION_BLOCK ? a->Lq - first : ATTENTION_BLOCK;
    return (struct block){a, b, h, first, n, mask_range(&a->mask, b, first, first + n - 1, a->Lk)};
}

static inline struct masked_row row_of(const struct block *x, int64_t i)
{
    return masked_row(&x->a->mask, x->b, x->h, x->first + i, x->a->Lk);
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
    int64_t Lk = x->a->Lk, from = x->keys.from, count = x->keys.to - from;
    return count == 0 ||
           product(x->a, false, true, x->n, count, n, query.at + x->first * query.step, query.step,
                   key.at + from * key.step, key.step, 0, s + from, Lk);
}

/* s_i becomes a_i = softmax over the kept j of scale s_ij + bias_ij, and 0 elsewhere */
static inline void softmax_rows(const struct block *x, const real *bias, real *s)
{
    const struct attention *a = x->a;
    const int64_t *step = a->bias;
    const real scale = (real)a->scale;
    for (int64_t i = 0; i < x->n; i++, s += a->Lk) {
        struct masked_row row = row_of(x, i);
        if (!bias) {
            masked_row_softmax(&row, scale, s, s);
            continue;
        }
        const real *b = bias + x->b * step[0] + x->h * step[1] + (x->first + i) * step[2];
        for (int64_t j = row.keys.from; j < row.keys.to; j++)
            s[j] = scale * s[j] + b[j * step[3]];
        masked_row_softmax(&row, 1, s, s);
    }
}

/* y_ij = x_ij / (1 - p), or 0 where dropped, in the block's range; x and y may be the same. */
OUTLINED void drop(const struct block *block, const real *x, real *y)
{
    const struct attention *a = block->a;
    const struct dropout *dropout = &a->dropout;
    struct dropout_reader reader = {.dropout = dropout};
    int64_t row = (block->b * a->H + block->h) * a->Lq + block->first;
    for (int64_t i = 0; i < block->n; i++, row++, x += a->Lk, y += a->Lk) {
        const int64_t start = place_of_row(&dropout->place, row);
        for (int64_t j = block->keys.from, n; j < block->keys.to; j += n) {
            n = block->keys.to - j;
            const int64_t first = start + place_in_row(&dropout->place, j, &n);
            const uint16_t *bits = dropout_read(&reader, first, &n);
            dropout_apply(dropout, bits, n, x + j, y + j);
        }
    }
}

/* The weights after dropout, in scratch memory if dropout is applied. */
static inline const real *dropped(const struct block *x, const real *weights, real *scratch)
{
    if (x->a->dropout.threshold == 0)
        return weights;
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
                add_scaled(n, w[i * x->a->Lk + c], y.at + from * y.step, z + to * ldz);
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
        return product(x->a, false, false, x->n, n, count, w + from, x->a->Lk, y.at + from * y.step,
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
               product(x->a, true, false, count, n, x->n, w + from, x->a->Lk,
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
