/* The kernels of cast. */
#ifndef SOFTBACK_OPS_CAST_H
#define SOFTBACK_OPS_CAST_H

#include "ops/kernel.h"

struct cast_kernels {
    /* y = x, where y is of this row's dtype and x of any; y += x where it is not fresh. */
    bool (*to_real)(sb_dtype from, bool fresh, int64_t n, const void *x, void *y);
    /* The same for a y of bf16; in the f32 row. */
    bool (*to_bf16)(sb_dtype from, bool fresh, int64_t n, const void *x, void *y);
    /* y = x, where x is of this row's dtype, i32 or bool, and y i32 or bool. */
    bool (*to_whole)(sb_dtype from, sb_dtype to, int64_t n, const void *x, void *y);
};

/* Of the first n elements: y = x, or y += x where it is not fresh; y is real. For other operations,
   on tensors that are on no tape. */
bool cast_elements(bool fresh, int64_t n, const sb_tensor *x, sb_tensor *y);

#endif
