/*
 * Operations on bf16. A device may have kernels of its own for it, which load bf16, compute in f32
 * and round what they store; where it has none, an operation computes in f32: it widens what it is
 * given and rounds what it returns, each by a cast on the tape, so that gradients are rounded too.
 * On the CPU that is so for all operations but linear, whose products read bf16.
 *
 * Losses, like all sums, are f32 in any case.
 */
#ifndef SOFTBACK_OPS_BF16_H
#define SOFTBACK_OPS_BF16_H

#include "ops/kernel.h"

/* Whether x is of bf16 and its device has no kernels of these rows for it. */
bool bf16_needs_f32(struct kernel_rows *rows, const sb_tensor *x);

/* x in f32, on the tape. Fails, in the name of `who`, when x is real but not of bf16: operands of
   two dtypes do not mix. Integers, booleans and NULL stay what they are. */
sb_tensor *bf16_widened(const char *who, sb_tensor *x);

/* y in bf16, on the tape; NULL stays NULL. */
sb_tensor *bf16_rounded(sb_tensor *y);

#endif
