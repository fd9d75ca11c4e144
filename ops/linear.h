/*
 * The kernels of linear and linear_activation; linear_cross_entropy runs them too.
 *
 * In BLAS, the order of additions depends on the size of the whole product, so the bits of a row
 * depend on the number of rows. On tapes that only evaluate, as in decoding, linear and matmul
 * therefore use `by_row`: the built-in product, where a row of the result depends only on the same
 * row of x and on the weight. So the result of a sequence does not depend on its batch.
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
    bool packed;   /* the weight is packed; by_row only */
    bool wide;     /* z, y and all gradients except dz have the dtype of sums (ops/kernel.h) */
    int64_t pitch; /* elements from row to row of y and dz; 0: out. On the CPU it is out */
};

/* Whether backward computes the activation's derivative from y; otherwise it needs z = x W' + b. */
static inline bool linear_keeps_y(sb_activation activation)
{
    return activation == SB_ACTIVATION_RELU || activation == SB_ACTIVATION_TANH ||
           activation == SB_ACTIVATION_SIGMOID || activation == SB_ACTIVATION_IDENTITY;
}

struct linear_kernels {
    /* Packs a weight in the order in which products read it, and returns the number of bytes that
       this takes; packed may be NULL to ask for that number. NULL if packing has no advantage. */
    int64_t (*pack)(int64_t out, int64_t in, const void *weight, void *packed);
    /* bias and z may be NULL. */
    bool (*forward)(const struct linear_shape *s, const void *x, const void *weight,
                    const void *bias, void *z, void *y);
    /* dz = dy activation'(z), where `kept` is y if linear_keeps_y, else z; dz may be `kept` itself.
       The identity has dz = dy and reads neither. */
    bool (*backward_activation)(const struct linear_shape *s, const void *kept, const void *dy,
                                void *dz);
    /* dbias = the sum of dz's rows; partial is scratch (slabs, out). */
    bool (*backward_bias)(const struct linear_shape *s, const void *dz, void *partial, bool fresh,
                          void *dbias);
    bool (*backward_x)(const struct linear_shape *s, const void *dz, const void *weight, bool fresh,
                       void *dx);
    bool (*backward_weight)(const struct linear_shape *s, const void *dz, const void *x, bool fresh,
                            void *dweight);
};

extern struct kernel_rows linear_rows;

/* Checks x, weight and bias (NULL: none); `op` opens the messages. */
bool linear_check(const char *op, const sb_tensor *x, const sb_tensor *weight,
                  const sb_tensor *bias);

#endif
