/* Attention with any of its options, and the same as a composition of simple operations. */
#ifndef SOFTBACK_TESTS_SUPPORT_VARIANT_H
#define SOFTBACK_TESTS_SUPPORT_VARIANT_H

#include "tests/support/test.h"

enum {
    MASK_NONE,
    MASK_CAUSAL,
    MASK_CAUSAL_LAST,
    MASK_PADDING,
    MASK_NEAR,
    MASK_PAIRS,
    MASK_PADDING_AND_CAUSAL,
    MASK_PAIRS_AND_PADDING,
    MASK_SPARSE,
    MASK_SPARSE_AND_CAUSAL,
    MASK_KINDS,
    MASK_WIDE, /* is not drawn */
};
enum { BIAS_NONE, BIAS_ALL, BIAS_HEADS, BIAS_KEYS, BIAS_BATCH, BIAS_QUERIES, BIAS_ONE, BIAS_KINDS };
enum { TEMPERATURE_NONE, TEMPERATURE_FIXED, TEMPERATURE_ONE, TEMPERATURE_HEADS, TEMPERATURE_KINDS };

/* The implementation: sb_attention with one of two algorithms, or simple operations. */
enum way { COMPOSED, TILED, OPERATIONS };

struct variant {
    uint64_t seed;
    int64_t B, H, G, Lq, Lk, D, Dv;
    sb_layout layout;
    sb_score score;
    double scale, dropout;
    int mask, bias, temperature;
    bool f32;
    /* This rank's queries, which the pairs of a mask cover; all if `of` is 0. */
    sb_piece rows;
    int64_t rows_here;
};

enum { VARIANT_INPUTS = 5 }; /* q, k, v, bias, log temperature; the last two may be NULL */
enum { RESULTS = 2 + VARIANT_INPUTS };

struct variant variant_draw(uint64_t seed);

/* The inputs, which the caller releases. */
void variant_inputs(const struct variant *c, sb_dtype dtype, sb_tensor *x[VARIANT_INPUTS]);

/* The options, with the mask, on the open tape. */
sb_attention_options variant_options(const struct variant *c, sb_tensor *const x[]);

sb_tensor *variant_forward(const struct variant *c, sb_tensor *const x[], enum way way,
                           sb_tensor **weights);

/* y, the weights, and the gradients of all inputs; to be released. With `weights_count`, and unless
   tiled, the loss depends on the weights too. */
void variant_run(const struct variant *c, sb_tensor *const x[], enum way way, bool weights_count,
                 sb_tensor *result[RESULTS]);

/* Asserts that both implementations give the same results. */
void variant_expect_same(const struct variant *c, sb_dtype dtype, enum way way, enum way other,
                         double tolerance);

/*
 * The least size of result i for a relative error. Gradients of scores are differences of products
 * dy v', of size sqrt(Dv), which may cancel; their rounding error is that of the products. Sums
 * over many of them, for a temperature and for a bias that is the same for all keys, cancel
 * further, and count as 1 at least.
 */
double variant_least_size(const struct variant *c, int i);

/* max |a - b| over max |b| of result i, or over its least size. */
double variant_difference(const struct variant *c, int i, const sb_tensor *a, const sb_tensor *b);

#endif
