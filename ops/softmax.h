/* The kernels of softmax, masked_softmax, log_softmax and logsumexp. A fresh dx is written, else it
   is added to. */
#ifndef SOFTBACK_OPS_SOFTMAX_H
#define SOFTBACK_OPS_SOFTMAX_H

#include "ops/kernel.h"
#include "ops/mask_terms.h"

struct softmax_kernels {
    /* x and y are (rows, C). */
    bool (*forward)(int64_t rows, int64_t C, const void *x, void *y);
    /* Writes a fresh dx, else adds to it. */
    bool (*backward)(int64_t rows, int64_t C, const void *y, const void *dy, bool fresh, void *dx);
    /* x and y are (B, H, Lq, Lk). */
    bool (*masked_forward)(struct mask_sizes sizes, const struct mask_terms *mask,
                           double temperature, const void *x, void *y);
    bool (*masked_backward)(struct mask_sizes sizes, const struct mask_terms *mask,
                            double temperature, const void *y, const void *dy, bool fresh,
                            void *dx);
    /* The index of the first length of a mask that is not in 0..Lk, or -1. */
    int64_t (*bad_length)(int64_t B, const int32_t *lengths, int64_t Lk);
    /* Whether each query has a key: seen is (B, H, rows), whose rows begin with the Lq queries. */
    bool (*seen)(struct mask_sizes sizes, const struct mask_terms *mask, int64_t rows,
                 uint8_t *seen);
};

extern struct kernel_rows softmax_rows;

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

struct logsumexp_kernels {
    /* x is (rows, C), y is (rows). A fresh dx is written, not added to. */
    bool (*forward)(int64_t rows, int64_t C, const void *x, void *y);
    bool (*backward)(int64_t rows, int64_t C, const void *x, const void *y, const void *dy,
                     bool fresh, void *dx);
};

#endif
