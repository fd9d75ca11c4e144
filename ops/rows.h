/*
 * Sums over rows, such as the gradient of a bias, are split into slabs of a fixed number of rows.
 * Each slab has a partial sum, and partial sums are added in order. The slabs depend on the shape
 * alone, so the bits do not depend on the number of threads; shorter sums also round less.
 */
#ifndef SOFTBACK_OPS_ROWS_H
#define SOFTBACK_OPS_ROWS_H

#include "ops/kernel.h"

enum { SLAB_ROWS = 64, LEAST_SLAB_ROWS = 4, ENOUGH_SLABS = 512 };

/* A power of two, 2^-100 or 2^-600. Squares of finite numbers times it do not overflow, and those
   whose own squares do are not rounded to 0. */
#define ROW_SHRINK(real)                                                                           \
    ((real)(sizeof(real) == sizeof(float) ? 7.888609052210118e-31 : 2.409919865102884e-181))

static inline int64_t slab_count(int64_t rows)
{
    return (rows + SLAB_ROWS - 1) / SLAB_ROWS;
}

/* On a device a norm's slab is the work of one block: if there are few rows, its slabs are shorter,
   so that there are enough blocks. */
KERNEL_INLINE int64_t device_slab_rows(int64_t rows)
{
    int64_t in_slab = SLAB_ROWS;
    while (in_slab > LEAST_SLAB_ROWS && rows / in_slab < ENOUGH_SLABS)
        in_slab /= 2;
    return in_slab;
}

KERNEL_INLINE int64_t device_slab_count(int64_t rows)
{
    return (rows + device_slab_rows(rows) - 1) / device_slab_rows(rows);
}

static inline int64_t norm_slab_count(bool on_cpu, int64_t rows)
{
    return on_cpu ? slab_count(rows) : device_slab_count(rows);
}

#endif
