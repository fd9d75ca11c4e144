/*
 * Gradient (activation) checkpointing: runs a part of a model without storing its activations, and
 * runs it again in backward. A stack of L layers then stores L boundaries and the activations of
 * one layer at a time, for about a third more computation. Source: Chen, Xu, Zhang and Guestrin
 * 2016.
 */
#ifndef SOFTBACK_AUTOGRAD_RECOMPUTATION_H
#define SOFTBACK_AUTOGRAD_RECOMPUTATION_H

#include "tape.h"

/*
 * y = f(context, x) for n inputs; some may have no gradient, such as ids, and real dtypes may
 * differ, as in mixed precision. The context is copied. Both runs use the same dropout masks, and
 * gradients are added in the same order as without checkpointing, so they have the same bits. f
 * must compute the same each time. Tensors of the outer tape that require a gradient must be passed
 * in x; parameters and masks may be in the context. On a tape that does not record, this only calls
 * f.
 *
 * Fails     f fails; f reads a result of the outer tape that is not in x; f returns an input
 */
SB_API sb_tensor *sb_recompute(sb_function f, const void *context, size_t context_bytes, int n,
                               sb_tensor *const x[]);

#endif
