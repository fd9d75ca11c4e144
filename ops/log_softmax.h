/* The kernels of log_softmax. */
#ifndef SOFTBACK_OPS_LOG_SOFTMAX_H
#define SOFTBACK_OPS_LOG_SOFTMAX_H

#include "ops/kernel.h"

struct log_softmax_kernels {
    /* x and y are (rows, C). With `fresh`, dx holds nothing yet. */
    bool (*forward)(int64_t rows, int64_t C, const void *x, void *y);
    bool (*backward)(int64_t rows, int64_t C, const void *y, const void *dy, bool fresh, void *dx);
};

#endif
