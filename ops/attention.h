/*
 * The kernels of attention, and the plain numbers that they read.
 *
 * Operands stay where they are: an axis order, or a cache with spare room, is a matter of strides.
 * "Composed" is the algorithm that stores the weights. It goes through the queries of a head in
 * blocks, so that what a block needs besides is small and stays near the processor.
 */
#ifndef SOFTBACK_OPS_ATTENTION_H
#define SOFTBACK_OPS_ATTENTION_H

#include "ops/dropout.h"
#include "ops/mask_terms.h"

enum { ATTENTION_BLOCK = 64 }; /* queries */

/* Row l of head h in sentence b begins at element b batch + l row + h head. */
struct attention_strides {
    int64_t batch, row, head;
};

/* How products are computed. */
enum attention_products {
    PRODUCTS_FAST,  /* by BLAS, if there is one: training */
    PRODUCTS_FIXED, /* by the built-in product, where a row depends on no other: evaluation */
    PRODUCTS_ROWS,  /* pair by pair, for a few queries: decoding with a cache */
};

struct attention {
    int64_t B, H, G, Lq, Lk, D, Dv;
    struct attention_strides q, k, v, y;
    int64_t bias[4]; /* strides along (B, H, Lq, Lk); 0 where the bias stretches */
    double scale;
    bool cosine; /* scores are divided by the length of the key; with PRODUCTS_ROWS only */
    enum attention_products products;
    struct mask_terms mask;
    struct dropout dropout; /* of the weights */
};

/* Rows of the scratch memory of a head. */
static inline int64_t attention_block_rows(const struct attention *a)
{
    return a->Lq < ATTENTION_BLOCK ? a->Lq : (int64_t)ATTENTION_BLOCK;
}

struct attention_forward {
    const void *q, *k, *v, *bias; /* bias may be NULL */
    void *weights;                /* (B, H, Lq, Lk): before dropout */
    void *scratch;                /* (B, H, block rows, Lk) with dropout, else NULL */
    void *y;
};

/* A gradient to add to; to be written when it is fresh; NULL when it is not wanted. */
struct attention_gradient {
    void *data;
    bool fresh;
};

struct attention_backward {
    const void *q, *k, *v, *weights;
    const void *dy;                     /* NULL: zero */
    struct attention_gradient dweights; /* of the weights, and in it what others added to it */
    void *scratch;                      /* (B, G, block rows, Lk) */
    void *dscores;                      /* (B, H, Lq, Lk) when dbias is wanted, else NULL; of bf16
                                           f32 */
    struct attention_gradient dq, dk, dv, dbias;
};

struct attention_tiled {
    const void *q, *k, *v, *bias; /* bias may be NULL */
    /* (B, H, Lq, 2), of bf16 f32: the largest score of a query (without a bias, before the scale),
       and 1 over its sum of exponentials; zeros for a query without keys. */
    void *stats;
    void *y;
    /* Over a part of the keys: y and the statistics have been begun with others, or others are to
       follow. Between parts they are sums: the largest score, the sum of exponentials, which is -1
       while no key is seen, and y before it is divided by that. On the CPU only. */
    bool begun, goes_on;
};

struct attention_tiled_backward {
    const void *q, *k, *v, *bias, *stats, *y, *dy;
    bool part;     /* of the keys: y and the statistics are those of more */
    void *delta;   /* (B, H, Lq), scratch: rowsum(dy y); of bf16 f32 */
    void *partial; /* (slabs - 1, B, H, Lq, D), scratch, when there is more than one slab */
    int64_t slabs; /* of keys, which are worked on in parallel */
    struct attention_gradient dq, dk, dv, dbias;
};

struct attention_kernels {
    /* Composed. */
    bool (*forward)(const struct attention *a, const struct attention_forward *f);
    bool (*backward)(const struct attention *a, const struct attention_backward *g);
    /* Tiled; false when there is no memory for the tiles. */
    bool (*tiled)(const struct attention *a, const struct attention_tiled *f);
    bool (*tiled_backward)(const struct attention *a, const struct attention_tiled_backward *g);
    /* The weights of queries first .. first + count - 1 of every head, from q, k, bias and stats of
       f; or, where f is NULL, their gradient, from v and dy of g. */
    bool (*tiled_rows)(const struct attention *a, const struct attention_tiled *f,
                       const struct attention_tiled_backward *g, int64_t first, int64_t count,
                       void *rows);
    /* Blocks of `bytes` bytes, at multiples of a stride: block i of `to` is block rows[i] of
       `from`, or block i where rows is NULL. For the cache of keys and values. The rows are in
       the host's memory. */
    bool (*copy_blocks)(int64_t n, size_t bytes, void *to, size_t to_stride, const void *from,
                        size_t from_stride, const int32_t *rows);
};

extern struct kernel_rows attention_rows;

#endif
