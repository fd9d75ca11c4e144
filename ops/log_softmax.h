/* The kernels of log_softmax. */
#ifndef SOFTBACK_OPS_LOG_SOFTMAX_H
#define SOFTBACK_OPS_LOG_SOFTMAX_H

#include "ops/kernel.h"

struct log_softmax_kernels {
    /* x and y are (rows, C). A fresh dx is written, not added to. */
    bool (*forward)(int64_t rows, int64_t C, const void *x, void *y);
    bool (*backward)(int64_t rows, int64_t C, const void *y, const void *dy, bool fresh, void *dx);
    /* For each row of x (rows, C > 0), with y = log_softmax(x) and a bias (C) without NaN: index =
       the first c with the largest y_c + bias_c, where NaN is the largest; value = y_c. NULL if the
       device has no such kernel. */
    bool (*best)(int64_t rows, int64_t C, const void *x, const void *bias, int32_t *index,
                 double *value);
};

/* The same for tensors x and bias of one dtype and device, outside the tape. Returns false, without
   a message, if there is no such kernel. */
bool log_softmax_best(const sb_tensor *x, const sb_tensor *bias, int32_t *index, double *value);

#endif
