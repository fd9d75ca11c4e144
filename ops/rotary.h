/* Rotary positions by angles that the caller holds (sb_rotary computes them from the position). */
#ifndef SOFTBACK_OPS_ROTARY_H
#define SOFTBACK_OPS_ROTARY_H

#include "ops/ops.h"

/* The cosines and sines of L positions from `start` on, (2, L, D / 2) of f32 or f64, as in
   sb_rotary_scaled. */
sb_tensor *rotary_angles(sb_dtype dtype, int64_t start, int64_t L, int64_t D,
                         const sb_rotary_options *options);

/* x (B, L, H, D) rotated by these angles, which are of the dtype of sums of x. */
sb_tensor *rotary_by_angles(sb_tensor *x, sb_tensor *angles);

#endif
