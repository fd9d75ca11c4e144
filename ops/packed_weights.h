/*
 * Weights packed in the order in which products read them.
 *
 * Decoding multiplies a few rows with the same weights in every step, and most of its time goes
 * into reading them and transposing (out, in) into vectors along out. On a tape whose context has
 * packed weights this is done once: linear keeps a packed copy of each weight from its second use
 * on, which doubles the memory of weights. Results are the same to the bit.
 *
 * With SB_WEIGHTS_INT8 the copy has 8 bits a number (ops/linear_int8.h), and linear uses it from
 * the first use on: a quarter of the bytes, and results that are close to the others. The CPU has
 * it for f32 and f64; rows of more than LINEAR_INT8_LONGEST numbers are packed as they are.
 */
#ifndef SOFTBACK_OPS_PACKED_WEIGHTS_H
#define SOFTBACK_OPS_PACKED_WEIGHTS_H

#include "autograd/node.h"
#include "ops/context.h"
#include "ops/linear.h"

/* An empty set of packed weights. No parameter may change before it is freed. */
struct packed_weights *packed_weights_new(sb_weight_format format);
void packed_weights_free(struct packed_weights *packed_weights);

/* A packed weight, and the kernels that multiply by it if it has 8 bits a number, else NULL. */
struct packed_weight {
    const void *data; /* NULL: the weight is not packed */
    const struct linear_int8_kernels *int8;
};

/* NULL for `packed_weights` finds nothing. */
bool packed_weights_find(struct packed_weights *packed_weights,
                         const struct linear_kernels *kernels, sb_tensor *weight,
                         struct packed_weight *packed);

#endif
