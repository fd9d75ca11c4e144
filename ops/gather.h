/* The kernels of gather. */
#ifndef SOFTBACK_OPS_GATHER_H
#define SOFTBACK_OPS_GATHER_H

#include "ops/kernel.h"

struct gather_kernels {
    /* The position of the first of `rows` ids that is not in 0..C-1, or -1. */
    int64_t (*first_bad)(int64_t rows, int64_t C, const void *ids);
    /* x is (rows, C), y (rows). */
    bool (*forward)(int64_t rows, int64_t C, const void *x, const void *ids, void *y);
    bool (*backward)(int64_t rows, int64_t C, const void *ids, const void *dy, void *dx);
};

#endif
