/*
 * Weights in the order in which products read them.
 *
 * Decoding multiplies a few rows with the same weights again and again, and most of its time goes
 * into reading them and turning (out, in) into vectors along out. On a tape whose context has
 * packed weights that is done once: linear keeps a second copy of each weight that it meets for the
 * second time, which costs as much memory as the weights. Results are the same, bit by bit.
 */
#ifndef SOFTBACK_OPS_PACKED_WEIGHTS_H
#define SOFTBACK_OPS_PACKED_WEIGHTS_H

#include "autograd/node.h"
#include "ops/linear.h"

/* None so far. No parameter may change before they are freed. */
struct packed_weights *packed_weights_new(void);
void packed_weights_free(struct packed_weights *packed_weights);

/* *packed becomes the weight in that order, or NULL: it is to be read as it is. */
bool packed_weights_find(struct packed_weights *packed_weights,
                         const struct linear_kernels *kernels, sb_tensor *weight,
                         const void **packed);

#endif
