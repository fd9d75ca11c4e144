/* The kernels of l2_normalize. */
#ifndef SOFTBACK_OPS_L2_NORMALIZE_H
#define SOFTBACK_OPS_L2_NORMALIZE_H

#include "ops/kernel.h"

/* Rows with a smaller norm are divided by this instead of their norm. */
#define L2_NORMALIZE_LEAST 1e-12

struct l2_normalize_kernels {
    /* x and y are (rows, C), length (rows) is |x| for backward. A fresh dx is written, not added
       to. */
    bool (*forward)(int64_t rows, int64_t C, const void *x, void *y, void *length);
    bool (*backward)(int64_t rows, int64_t C, const void *y, const void *length, const void *dy,
                     bool fresh, void *dx);
};

#endif
