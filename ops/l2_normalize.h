/* The kernels of l2_normalize. */
#ifndef SOFTBACK_OPS_L2_NORMALIZE_H
#define SOFTBACK_OPS_L2_NORMALIZE_H

#include "ops/kernel.h"

/* Rows that are shorter than this are divided by it instead of by their length. */
#define L2_NORMALIZE_LEAST 1e-12

struct l2_normalize_kernels {
    /* x and y are (rows, C), length (rows): |x|, for backward. With `fresh`, dx holds nothing
       yet. */
    bool (*forward)(int64_t rows, int64_t C, const void *x, void *y, void *length);
    bool (*backward)(int64_t rows, int64_t C, const void *y, const void *length, const void *dy,
                     bool fresh, void *dx);
};

#endif
