/*
 * Weights in the order in which products read them.
 *
 * Decoding multiplies a few rows with the same weights again and again, and most of its time goes
 * into reading them and turning (out, in) into vectors along out. A tape that keeps packed weights
 * does that once: linear has a second copy of each weight that it meets for the second time, which
 * costs as much memory as the weights. Results are the same, bit by bit.
 */
#ifndef SOFTBACK_OPS_PACKED_WEIGHTS_H
#define SOFTBACK_OPS_PACKED_WEIGHTS_H

#include "autograd/node.h"
#include "ops/linear.h"

/* From here on, and on tapes inside, until this tape, the innermost one, ends; no parameter may
   change before. */
bool packed_weights_keep(sb_tape *tape);

/* *packed becomes the weight in that order, or NULL: it is to be read as it is. */
bool packed_weights_find(struct packed_weights *packed_weights,
                         const struct linear_kernels *kernels, sb_tensor *weight,
                         const void **packed);

#endif
