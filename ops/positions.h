/* The kernels of rotary and relative_bias. */
#ifndef SOFTBACK_OPS_POSITIONS_H
#define SOFTBACK_OPS_POSITIONS_H

#include "ops/kernel.h"
#include "ops/ops.h"

struct positions_kernels {
    /* y = x (B, L, H, D) rotated by angles, or with `backwards` by the opposite angles. The table
       (2, L, D / 2) has their cosines and sines, in the dtype of sums (ops/kernel.h). With `add`, y
       += instead. */
    bool (*turn)(int64_t B, int64_t L, int64_t H, int64_t D, const void *table, bool backwards,
                 bool add, const void *x, void *y);
    /* table (H, 2 R + 1), y (H, Lq, Lk). */
    bool (*relative_forward)(int64_t H, int64_t R, int64_t Lq, int64_t Lk, const void *table,
                             void *y);
    bool (*relative_backward)(int64_t H, int64_t R, int64_t Lq, int64_t Lk, const void *dy,
                              void *dtable);
};

/* For callers that hold the angles of rotary positions (sb_rotary computes them from the position):
   the cosines and sines of L positions from `start` on, (2, L, D / 2) of f32 or f64, as in
   sb_rotary_scaled. */
sb_tensor *rotary_angles(sb_dtype dtype, int64_t start, int64_t L, int64_t D,
                         const sb_rotary_options *options);

/* x (B, L, H, D) rotated by these angles, which are of the dtype of sums of x. */
sb_tensor *rotary_by_angles(sb_tensor *x, sb_tensor *angles);

#endif
