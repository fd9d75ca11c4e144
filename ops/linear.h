/*
 * The kernels of linear and linear_activation; linear_cross_entropy runs them too.
 *
 * BLAS chooses how it sums by the size of the whole product, so the bits of a row would depend on
 * how many rows stand beside it. On a tape that does not record, as in decoding, linear and the
 * matmuls therefore ask for `by_row`: the built-in product, in which a row of the result depends
 * on that row of x and on the weight alone. A sentence's result then does not depend on its batch.
 */
#ifndef SOFTBACK_OPS_LINEAR_H
#define SOFTBACK_OPS_LINEAR_H

#include "ops/kernel.h"
#include "ops/ops.h"
#include "ops/rows.h"

struct linear_shape {
    int64_t rows, in, out; /* x (rows, in), weight (out, in), y (rows, out) */
    sb_activation activation;
    bool by_row;
    bool packed; /* weight was packed; by_row only */
    bool wide;   /* z, y and all gradients but dz are of the dtype of sums (ops/kernel.h) */
};

/* Whether the activation's slope is found from y; otherwise backward needs z = x W' + b. */
static inline bool linear_keeps_y(sb_activation activation)
{
    return activation == SB_RELU || activation == SB_TANH || activation == SB_SIGMOID ||
           activation == SB_IDENTITY;
}

struct linear_kernels {
    /* Brings a weight into the order in which products read it; how many numbers that takes, for
       which packed may be NULL. NULL itself where that gains nothing. */
    int64_t (*pack)(int64_t out, int64_t in, const void *weight, void *packed);
    /* bias and z may be NULL; without z it is not kept. */
    bool (*forward)(const struct linear_shape *s, const void *x, const void *weight,
                    const void *bias, void *z, void *y);
    /* dz = dy activation'(z), from z or y as linear_keeps_y says; dz may be `kept` itself. With
       the identity dz is dy, and neither is looked at. */
    bool (*backward_activation)(const struct linear_shape *s, const void *kept, const void *dy,
                                void *dz);
    /* The sum of dz's rows; partial is scratch (slabs, out). */
    bool (*backward_bias)(const struct linear_shape *s, const void *dz, void *partial, bool fresh,
                          void *dbias);
    bool (*backward_x)(const struct linear_shape *s, const void *dz, const void *weight, bool fresh,
                       void *dx);
    bool (*backward_weight)(const struct linear_shape *s, const void *dz, const void *x, bool fresh,
                            void *dweight);
};

extern struct kernel_rows linear_rows;

/* Checks of x, weight and bias (NULL: none), in the name of `op`. */
bool linear_check(const char *op, const sb_tensor *x, const sb_tensor *weight,
                  const sb_tensor *bias);

#endif
