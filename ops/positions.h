/* The kernels of rotary and relative_bias. */
#ifndef SOFTBACK_OPS_POSITIONS_H
#define SOFTBACK_OPS_POSITIONS_H

#include "ops/kernel.h"

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

#endif
