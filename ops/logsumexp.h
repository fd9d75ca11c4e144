/* The kernels of logsumexp. */
#ifndef SOFTBACK_OPS_LOGSUMEXP_H
#define SOFTBACK_OPS_LOGSUMEXP_H

#include "ops/kernel.h"

struct logsumexp_kernels {
    /* x is (rows, C), y is (rows). A fresh dx is written, not added to. */
    bool (*forward)(int64_t rows, int64_t C, const void *x, void *y);
    bool (*backward)(int64_t rows, int64_t C, const void *x, const void *y, const void *dy,
                     bool fresh, void *dx);
};

#endif
