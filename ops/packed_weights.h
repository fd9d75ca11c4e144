/*
 * Weights packed in the order in which products read them.
 *
 * Decoding multiplies a few rows with the same weights in every step, and most of its time goes
 * into reading them and transposing (out, in) into vectors along out. On a tape whose context has
 * packed weights this is done once: linear keeps a packed copy of each weight from its second use
 * on, which doubles the memory of weights. Results are the same to the bit.
 */
#ifndef SOFTBACK_OPS_PACKED_WEIGHTS_H
#define SOFTBACK_OPS_PACKED_WEIGHTS_H

#include "autograd/node.h"
#include "ops/linear.h"

/* An empty set of packed weights. No parameter may change before it is freed. */
struct packed_weights *packed_weights_new(void);
void packed_weights_free(struct packed_weights *packed_weights);

/* Sets *packed to the packed weight, or to NULL if the weight is not packed. */
bool packed_weights_find(struct packed_weights *packed_weights,
                         const struct linear_kernels *kernels, sb_tensor *weight,
                         const void **packed);

#endif
