/* The kernels of cast. */
#ifndef SOFTBACK_OPS_CAST_H
#define SOFTBACK_OPS_CAST_H

#include "ops/kernel.h"

struct cast_kernels {
    /* y = x, or y += x if not fresh; y has this row's dtype, x any. */
    bool (*to_real)(sb_dtype from, bool fresh, int64_t n, const void *x, void *y);
    /* The same with y of bf16; in the f32 row only. */
    bool (*to_bf16)(sb_dtype from, bool fresh, int64_t n, const void *x, void *y);
    /* y = x; x has this row's dtype or is i32 or bool, y is i32 or bool. */
    bool (*to_whole)(sb_dtype from, sb_dtype to, int64_t n, const void *x, void *y);
};

/* For other operations, outside the tape: y = x for the first n elements, or y += x if not fresh. y
   is real. */
bool cast_elements(bool fresh, int64_t n, const sb_tensor *x, sb_tensor *y);

#endif
