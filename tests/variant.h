/* Attention with any of its options, and the same as a composition of simple operations. */
#ifndef SOFTBACK_TESTS_VARIANT_H
#define SOFTBACK_TESTS_VARIANT_H

#include "tests/test.h"

enum {
    MASK_NONE,
    MASK_CAUSAL,
    MASK_CAUSAL_LAST,
    MASK_PADDING,
    MASK_NEAR,
    MASK_PAIRS,
    MASK_PADDING_AND_CAUSAL,
    MASK_PAIRS_AND_PADDING,
    MASK_KINDS,
};
enum { BIAS_NONE, BIAS_ALL, BIAS_HEADS, BIAS_KEYS, BIAS_BATCH, BIAS_QUERIES, BIAS_ONE, BIAS_KINDS };
enum { TEMPERATURE_NONE, TEMPERATURE_FIXED, TEMPERATURE_ONE, TEMPERATURE_HEADS, TEMPERATURE_KINDS };

struct variant {
    uint64_t seed;
    int64_t B, H, G, Lq, Lk, D, Dv;
    sb_layout layout;
    sb_score score;
    double scale, dropout;
    int mask, bias, temperature;
};

enum { VARIANT_INPUTS = 5 }; /* q, k, v, bias, log temperature; the last two may be NULL */
enum { RESULTS = 2 + VARIANT_INPUTS };

struct variant variant_draw(uint64_t seed);

/* The inputs, which the caller releases. */
void variant_inputs(const struct variant *c, sb_dtype dtype, sb_tensor *x[VARIANT_INPUTS]);

/* y, by sb_attention or composed. */
sb_tensor *variant_forward(const struct variant *c, sb_tensor *const x[], bool composed,
                           sb_tensor **weights);

/* y, the weights, and the gradients of all inputs, of a loss in which y and the weights count; to
   be released. */
void variant_run(const struct variant *c, sb_tensor *const x[], bool composed,
                 sb_tensor *result[RESULTS]);

/* Asserts that all results are the same both ways. */
void variant_expect_same(const struct variant *c, sb_dtype dtype, double tolerance);

#endif
