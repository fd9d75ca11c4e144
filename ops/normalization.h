/* The kernels of layer_norm, residual_layer_norm, rms_norm and l2_normalize. */
#ifndef SOFTBACK_OPS_NORMALIZATION_H
#define SOFTBACK_OPS_NORMALIZATION_H

#include "autograd/operation.h"
#include "ops/dropout.h"
#include "ops/kernel.h"
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
struct norm_gradient {
    void *to;
    bool fresh, wide; /* wide: of f32, where x is of bf16 (dgain and dbias) */
};
/* That of input i of a node during backward. */
struct norm_gradient norm_gradient(const sb_node *node, int i);

struct layer_norm_backward {
    int64_t rows, C;
    const void *x; /* the input of the norm: x, or the sum */
    const void *gain, *mean, *scale;
    const void *dy, *dsum;            /* (rows, C); dsum may be NULL */
    struct norm_gradient dx, dbranch; /* (rows, C); they may be the same memory */
    struct dropout dropout;           /* of the branch, as in forward */
    struct norm_gradient dgain, dbias;
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

struct rms_norm_kernels {
    /* x and y are (rows, C), gain (C), scale (rows): 1 / s of each row, for backward. */
    bool (*forward)(int64_t rows, int64_t C, double epsilon, const void *x, const void *gain,
                    void *y, void *scale);
    /* partial is scratch (slabs, C) for dgain. */
    bool (*backward)(int64_t rows, int64_t C, const void *x, const void *gain, const void *scale,
                     const void *dy, struct norm_gradient dx, struct norm_gradient dgain,
                     void *partial);
};

/* Rows with a smaller norm are divided by this instead of their norm. */
#define L2_NORMALIZE_LEAST 1e-12

struct l2_normalize_kernels {
    /* x and y are (rows, C), length (rows) is |x| for backward. A fresh dx is written, not added
       to. */
    bool (*forward)(int64_t rows, int64_t C, const void *x, void *y, void *length);
    bool (*backward)(int64_t rows, int64_t C, const void *y, const void *length, const void *dy,
                     bool fresh, void *dx);
};

#endif
