/* The kernels of cross_entropy and mean_squared_error. */
#ifndef SOFTBACK_OPS_LOSS_H
#define SOFTBACK_OPS_LOSS_H

#include "autograd/operation.h"
#include "ops/broadcast.h"
#include "ops/kernel.h"
#include "ops/ops.h"

struct cross_entropy_targets {
    int64_t rows, V;
    int64_t pitch;          /* elements from row to row of x and dx; 0: V. On the CPU it is V */
    bool probabilities;     /* targets are (rows, V) real; otherwise ids (rows) */
    double label_smoothing; /* e: t_v becomes (1 - e) t_v + e / V */
    const void *targets;
    const void *class_weight; /* (V), or NULL: all 1 */
};

/*
 * Results for each row, (rows) each. Backward needs max and inverse: softmax(x)_v = exp(x_v - max)
 * inverse. An ignored row has loss 0 and weight 0.
 */
struct cross_entropy_found {
    void *max, *inverse;
    void *loss;
    void *weight; /* of the target: sum_v w_v t_v without smoothing; w_id for an id */
};

/* The gradient of row r's loss is dy[r step] / *divisor; divisor may be NULL: 1. */
struct cross_entropy_dy {
    const void *dy;
    int64_t step;
    const void *divisor;
};

struct cross_entropy_kernels {
    /* The position of the first id >= V, and of the first class weight that is negative or not
       finite; -1: none. */
    int64_t (*first_bad_id)(int64_t rows, int64_t V, const void *ids);
    int64_t (*first_bad_weight)(int64_t V, const void *class_weight);
    /* x is (rows, V). */
    bool (*forward)(const struct cross_entropy_targets *t, const void *x,
                    const struct cross_entropy_found *found);
    /* *divisor = the sum of the weights (NULL: the number of rows), or 1 if `mean` is false; *y =
       the sum of the losses / *divisor; *counted: whether the divisor is not 0. */
    bool (*reduce)(int64_t rows, bool mean, const void *loss, const void *weight, void *divisor,
                   void *y, bool *counted);
    /* With `fresh`, dx is written and may be x itself; otherwise it is added to. */
    bool (*backward)(const struct cross_entropy_targets *t, const void *x,
                     const struct cross_entropy_found *found, const struct cross_entropy_dy *dy,
                     bool fresh, void *dx);
};

extern struct kernel_rows cross_entropy_rows;

/* A cross entropy during forward or backward. */
struct cross_entropy {
    const struct cross_entropy_kernels *kernels;
    struct cross_entropy_targets targets;
    struct cross_entropy_found found;
    struct cross_entropy_dy dy;
    sb_reduction reduction;
    sb_dtype dtype; /* of sums; the logits may be narrower */
};

enum { CROSS_ENTROPY_DIVISOR = 1 }; /* index of the saved tensor with the mean's divisor */

/* The node options of both operations. */
struct cross_entropy_options {
    double label_smoothing;
    sb_reduction reduction;
    bool weighted;  /* the third saved tensor is the class weights */
    unsigned early; /* linear_cross_entropy only; bit i: the last saved tensor holds the gradient of
                       input i */
};
struct cross_entropy_options cross_entropy_defaults(const sb_cross_entropy_options *options);

/*
 * Checks targets, class_weight (NULL: none) and the node's options against logits of this dtype and
 * shape. Makes the node's output and the saved tensors that backward needs. All but the logits and
 * their gradient are of the dtype of sums (ops/kernel.h).
 */
bool cross_entropy_begin(struct cross_entropy *loss, sb_node *node, sb_dtype logits, int rank,
                         const int64_t *dim, const sb_tensor *targets, sb_tensor *class_weight);

/* The node's output, from the losses of all rows. */
sb_tensor *cross_entropy_finish(const struct cross_entropy *loss, sb_node *node);

/* Restores the loss in backward. */
bool cross_entropy_resume(struct cross_entropy *loss, const sb_node *node, sb_dtype logits,
                          int rank, const int64_t *dim, const sb_tensor *targets);

/* The part of the loss with `rows` rows from `start` on. */
struct cross_entropy cross_entropy_part(const struct cross_entropy *loss, int64_t start,
                                        int64_t rows);

/* The most logits that linear_cross_entropy holds on a device other than the CPU, unless one slab
   of rows has more. Tests lower it. */
extern int64_t linear_cross_entropy_logits;

struct mean_squared_error_kernels {
    /* y = sum of (x - target)^2 / divisor, summed along the axes on which y is broadcast. The
       operands of the plan are x, y and target. */
    bool (*forward)(const struct broadcast *plan, double divisor, const void *x, const void *target,
                    void *y);
    /* dx = factor (x - target) dy. Writes a fresh dx, else adds to it. */
    bool (*backward)(const struct broadcast *plan, double factor, bool fresh, const void *x,
                     const void *target, const void *dy, void *dx);
};

#endif
