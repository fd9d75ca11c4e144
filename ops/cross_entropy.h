/* The kernels of cross_entropy, and what linear_cross_entropy, which runs them too, shares. */
#ifndef SOFTBACK_OPS_CROSS_ENTROPY_H
#define SOFTBACK_OPS_CROSS_ENTROPY_H

#include "autograd/operation.h"
#include "ops/kernel.h"
#include "ops/ops.h"

struct cross_entropy_targets {
    int64_t rows, V;
    bool probabilities;     /* targets are (rows, V) real; otherwise ids (rows) */
    double label_smoothing; /* e: t_v becomes (1 - e) t_v + e / V */
    const void *targets;
    const void *class_weight; /* (V), or NULL: all 1 */
};

/*
 * What is found for each row, (rows) each. Backward needs max and inverse:
 * softmax(x)_v = exp(x_v - max) inverse. An ignored row has the loss 0 and the weight 0.
 */
struct cross_entropy_found {
    void *max, *inverse;
    void *loss;
    void *weight; /* of the target: sum_v w_v t_v with t not smoothed, so w_id */
};

/* The gradient of row r's loss is dy[r step] / *divisor; divisor may be NULL: 1. */
struct cross_entropy_dy {
    const void *dy;
    int64_t step;
    const void *divisor;
};

struct cross_entropy_kernels {
    /* The position of the first id that is V or more, and of the first class weight that is not a
       finite number >= 0; or -1. */
    int64_t (*first_bad_id)(int64_t rows, int64_t V, const void *ids);
    int64_t (*first_bad_weight)(int64_t V, const void *class_weight);
    /* x is (rows, V). */
    bool (*forward)(const struct cross_entropy_targets *t, const void *x,
                    const struct cross_entropy_found *found);
    /* *divisor = the sum of the weights (NULL: each row counts 1), or 1 if it is no mean; *y = the
       sum of the losses / *divisor; *counted: whether the divisor is not 0. */
    bool (*reduce)(int64_t rows, bool mean, const void *loss, const void *weight, void *divisor,
                   void *y, bool *counted);
    /* With `fresh`, dx holds nothing yet, and may then be x itself. */
    bool (*backward)(const struct cross_entropy_targets *t, const void *x,
                     const struct cross_entropy_found *found, const struct cross_entropy_dy *dy,
                     bool fresh, void *dx);
};

extern struct kernel_rows cross_entropy_rows;

/* A loss in the making, or on its way back. */
struct cross_entropy {
    const struct cross_entropy_kernels *kernels;
    struct cross_entropy_targets targets;
    struct cross_entropy_found found;
    struct cross_entropy_dy dy;
    sb_reduction reduction;
    sb_dtype dtype; /* of the logits */
};

enum { CROSS_ENTROPY_DIVISOR = 1 }; /* the saved tensor of one number, a mean's divisor */

/* What both operations hand to sb_node_new as their options. */
struct cross_entropy_options {
    double label_smoothing;
    sb_reduction reduction;
    bool weighted;  /* the third saved tensor is the class weights */
    unsigned early; /* of linear_cross_entropy: bit i: the last saved tensor holds input i's part */
};
struct cross_entropy_options cross_entropy_defaults(const sb_cross_entropy_options *options);

/* Targets as a constant: the same tensor, or one that passes no gradient on. */
sb_tensor *cross_entropy_constant(sb_tensor *targets);

/*
 * Checks targets and class_weight (NULL: none) against logits of this shape, of the dtype of sums
 * (ops/kernel.h) of the node's first input, and the node's options, and makes the node's output and
 * what backward needs, the node's saved tensors.
 */
bool cross_entropy_begin(struct cross_entropy *loss, sb_node *node, int rank, const int64_t *dim,
                         const sb_tensor *targets, sb_tensor *class_weight);

/* The node's output, from the losses of all rows. */
sb_tensor *cross_entropy_finish(const struct cross_entropy *loss, sb_node *node);

/* The same loss in backward. */
bool cross_entropy_resume(struct cross_entropy *loss, const sb_node *node, int rank,
                          const int64_t *dim, const sb_tensor *targets);

/* Only the rows from `start` on, `rows` of them. */
struct cross_entropy cross_entropy_part(const struct cross_entropy *loss, int64_t start,
                                        int64_t rows);

#endif
