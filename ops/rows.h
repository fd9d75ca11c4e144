/*
 * Sums over rows, such as the gradient of a bias, are split into slabs of a fixed number of rows.
 * Each slab has a partial sum, and partial sums are added in order. The slabs depend on the shape
 * alone, so the bits do not depend on the number of threads; shorter sums also round less.
 */
#ifndef SOFTBACK_OPS_ROWS_H
#define SOFTBACK_OPS_ROWS_H

#include <stdint.h>

enum { SLAB_ROWS = 64 };

/* A power of two, 2^-100 or 2^-600. Squares of finite numbers times it do not overflow, and those
   whose own squares do are not rounded to 0. */
#define ROW_SHRINK(real)                                                                           \
    ((real)(sizeof(real) == sizeof(float) ? 7.888609052210118e-31 : 2.409919865102884e-181))

static inline int64_t slab_count(int64_t rows)
{
    return (rows + SLAB_ROWS - 1) / SLAB_ROWS;
}

#endif
