/* The kernels of cast. */
#ifndef SOFTBACK_OPS_CAST_H
#define SOFTBACK_OPS_CAST_H

#include "ops/kernel.h"

/* Several tensors of f32 that one launch casts to bf16, y = x. */
enum { CAST_LIST = 64 };
struct cast_item {
    const void *x;
    void *y;
    int64_t n;
};
struct cast_list {
    int count;
    struct cast_item item[CAST_LIST];
};

struct cast_kernels {
    /* y = x, or y += x if not fresh; y has this row's dtype, x any. */
    bool (*to_real)(sb_dtype from, bool fresh, int64_t n, const void *x, void *y);
    /* The same with y of bf16; in the f32 row only. */
    bool (*to_bf16)(sb_dtype from, bool fresh, int64_t n, const void *x, void *y);
    /* y = x; x has this row's dtype or is i32 or bool, y is i32 or bool. */
    bool (*to_whole)(sb_dtype from, sb_dtype to, int64_t n, const void *x, void *y);
    /* All of a list; in f32's row only, NULL on the CPU. */
    bool (*list)(const struct cast_list *list);
};

/* For other operations, outside the tape: y = x for the first n elements, or y += x if not fresh. y
   is real. */
bool cast_elements(bool fresh, int64_t n, const sb_tensor *x, sb_tensor *y);

/* sb_cast to bf16 of n tensors of f32, at most CAST_LIST, which all differ: one node, one
   launch forward, and one block, in which parameters that are at equal distances stay at
   equal distances. An output without a gradient gives its input none. */
bool cast_all(int n, sb_tensor *const x[], sb_tensor *y[]);

#endif
