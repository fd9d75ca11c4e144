/* The kernels of layer_norm and residual_layer_norm. */
#ifndef SOFTBACK_OPS_LAYER_NORM_H
#define SOFTBACK_OPS_LAYER_NORM_H

#include "ops/dropout.h"
#include "ops/rows.h"

struct layer_norm_forward {
    int64_t rows, C;
    double epsilon;
    const void *x, *branch;  /* (rows, C); branch may be NULL */
    const void *gain, *bias; /* (C); bias may be NULL */
    struct dropout dropout;  /* of the branch */
    void *sum;               /* x + dropout(branch) (rows, C); NULL without a branch */
    void *y;                 /* (rows, C) */
    void *mean, *scale;      /* (rows): m and 1 / s of each row, for backward */
};

/* A gradient: written when fresh, else added to; `to` is NULL when it is not needed. */
struct layer_norm_gradient {
    void *to;
    bool fresh;
};

struct layer_norm_backward {
    int64_t rows, C;
    const void *x; /* the input of the norm: x, or the sum */
    const void *gain, *mean, *scale;
    const void *dy, *dsum;                  /* (rows, C); dsum may be NULL */
    struct layer_norm_gradient dx, dbranch; /* (rows, C); they may be the same memory */
    struct dropout dropout;                 /* of the branch, as in forward */
    struct layer_norm_gradient dgain, dbias;
    void *partial; /* scratch (slabs, 2, C) for dgain and dbias */
};

struct layer_norm_kernels {
    bool (*forward)(const struct layer_norm_forward *f);
    bool (*backward)(const struct layer_norm_backward *b);
};

/* sb_residual_layer_norm of a tensor whose positions belong to this sequence. */
sb_tensor *residual_layer_norm_along(sb_tensor *x, sb_tensor *branch, double p, sb_sequence along,
                                     sb_tensor *gain, sb_tensor *bias, double epsilon,
                                     sb_tensor **sum);

#endif
