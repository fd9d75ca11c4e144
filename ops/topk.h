/* The kernels of topk. */
#ifndef SOFTBACK_OPS_TOPK_H
#define SOFTBACK_OPS_TOPK_H

#include "ops/kernel.h"

struct topk_kernels {
    /* x is (rows, C), y and ids are (rows, k). */
    bool (*forward)(int64_t rows, int64_t C, int64_t k, const void *x, void *y, int32_t *ids);
    /* Adds to dx. */
    bool (*backward)(int64_t rows, int64_t C, int64_t k, const int32_t *ids, const void *dy,
                     void *dx);
};

#endif
