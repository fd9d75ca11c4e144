/* The kernels of rms_norm. */
#ifndef SOFTBACK_OPS_RMS_NORM_H
#define SOFTBACK_OPS_RMS_NORM_H

#include "ops/kernel.h"
#include "ops/rows.h"

/* A gradient: written when fresh, else added to; `to` is NULL when it is not needed. */
struct rms_norm_gradient {
    void *to;
    bool fresh;
};

struct rms_norm_kernels {
    /* x and y are (rows, C), gain (C), scale (rows): 1 / s of each row, for backward. */
    bool (*forward)(int64_t rows, int64_t C, double epsilon, const void *x, const void *gain,
                    void *y, void *scale);
    /* partial is scratch (slabs, C) for dgain. */
    bool (*backward)(int64_t rows, int64_t C, const void *x, const void *gain, const void *scale,
                     const void *dy, struct rms_norm_gradient dx, struct rms_norm_gradient dgain,
                     void *partial);
};

#endif
