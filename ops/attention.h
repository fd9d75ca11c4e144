/*
 * The kernels of attention, and the plain numbers that they read.
 *
 * Operands are read in place: strides describe the axis order and the spare capacity of a cache.
 * "Composed" is the algorithm that stores the weights. It processes the queries of a head in
 * blocks, so that the scratch memory of a block is small and stays in the cache.
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
    PRODUCTS_FAST,  /* BLAS, if available: training */
    PRODUCTS_FIXED, /* the built-in product, whose rows are independent: evaluation */
    PRODUCTS_ROWS,  /* one dot product for each pair, for few queries: decoding with a cache */
};

struct attention {
    int64_t B, H, G, Lq, Lk, D, Dv;
    struct attention_strides q, k, v, y;
    int64_t bias[4]; /* strides along (B, H, Lq, Lk); 0 where the bias is broadcast */
    double scale;
    bool cosine; /* scores are divided by the norm of the key; with PRODUCTS_ROWS only */
    enum attention_products products;
    struct mask_terms mask;
    struct dropout dropout; /* of the weights */
};

/* The number of rows of the scratch memory of a head. */
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

/* A gradient: written when fresh, else added to; NULL when not needed. */
struct attention_gradient {
    void *data;
    bool fresh;
};

struct attention_backward {
    const void *q, *k, *v, *weights;
    const void *dy;                     /* NULL: zero */
    struct attention_gradient dweights; /* of the weights; holds the parts of later operations */
    void *scratch;                      /* (B, G, block rows, Lk) */
    void *dscores; /* (B, H, Lq, Lk) when dbias is needed, else NULL; f32 for bf16 */
    struct attention_gradient dq, dk, dv, dbias;
};

struct attention_tiled {
    const void *q, *k, *v, *bias; /* bias may be NULL */
    /* (B, H, Lq, 2), f32 for bf16: the largest score of a query (without a bias, before the scale)
       and the inverse of its sum of exponentials; zeros for a fully masked query. */
    void *stats;
    void *y;
    /* For a part of the keys: `begun` when the sums and the statistics already contain other keys,
       `goes_on` when more keys follow. Until the last part, `sums` is y before the division, the
       statistics are the largest score and the sum of exponentials (-1 while all keys are masked),
       and y is not written. The sums have the strides of y; they are f32 for bf16, else y
       itself. */
    void *sums;
    bool begun, goes_on;
};

struct attention_tiled_backward {
    const void *q, *k, *v, *bias, *stats, *y, *dy;
    /* k and v hold a part of the keys; y and the statistics cover all keys. Gradients are f32 for
       bf16 then. */
    bool part;
    void *delta;   /* (B, H, Lq), scratch: rowsum(dy y); f32 for bf16 */
    void *partial; /* (slabs - 1, B, H, Lq, D), scratch, when there is more than one slab */
    int64_t slabs; /* of keys, which run in parallel */
    struct attention_gradient dq, dk, dv, dbias;
};

/* For the key/value cache: blocks of `bytes` bytes that lie a stride apart. Block i of `to` becomes
   block rows[i] of `from`, or block i if rows is NULL. */
struct block_copy {
    int64_t n;
    size_t bytes;
    void *to;
    size_t to_stride;
    const void *from;
    size_t from_stride;
    const int32_t *rows; /* in host memory; or NULL */
    const int32_t *at;   /* in device memory; or NULL: every block begins *at at_bytes later */
    size_t at_bytes;
};

struct attention_kernels {
    /* Composed. */
    bool (*forward)(const struct attention *a, const struct attention_forward *f);
    bool (*backward)(const struct attention *a, const struct attention_backward *g);
    /* Tiled; false when out of memory for tiles. */
    bool (*tiled)(const struct attention *a, const struct attention_tiled *f);
    bool (*tiled_backward)(const struct attention *a, const struct attention_tiled_backward *g);
    /* The weights of queries first .. first + count - 1 of every head, from q, k, bias and stats of
       f; or, where f is NULL, their gradient, from v and dy of g. */
    bool (*tiled_rows)(const struct attention *a, const struct attention_tiled *f,
                       const struct attention_tiled_backward *g, int64_t first, int64_t count,
                       void *rows);
    bool (*copy_blocks)(const struct block_copy copy[2]); /* keys and values, of the same rows */
};

extern struct kernel_rows attention_rows;

#endif
