/*
 * Checkpointing: a part of a model is run without keeping its intermediates, and run once more in
 * backward. A stack of L layers then holds L boundaries and one layer's intermediates at a time,
 * for about a third more computation. Source: Chen, Xu, Zhang and Guestrin 2016.
 */
#ifndef SOFTBACK_AUTOGRAD_RECOMPUTATION_H
#define SOFTBACK_AUTOGRAD_RECOMPUTATION_H

#include "tape.h"

/*
 * y = f(context, x) of n inputs, any of which may be without gradient, such as ids. The context is
 * copied. Both runs draw the same dropout, and gradients are added in the order of the plain run:
 * they have the same bits. f must compute the same each time, and take what is made on the tape
 * around it, and wants a gradient, from x; parameters and masks it may know from its context. On a
 * tape that does not record, this is f.
 *
 * Fails     f fails; it reads a result of the tape around that is not in x; it returns an input
 */
SB_API sb_tensor *sb_checkpoint(sb_function f, const void *context, size_t context_bytes, int n,
                                sb_tensor *const x[]);

#endif
