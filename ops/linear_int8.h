/*
 * linear with weights of 8 bits, for decoding.
 *
 * Row o of a weight becomes integers q_o in -127..127 and one scale, s_o = max |w_o| / 127; so does
 * each row of x. With x' and w' the rows of integers times their scales,
 *
 *     y_o = activation(x' w_o' + b_o),    x' w_o' = s_x s_o sum_i q_x,i q_o,i
 *
 * The sum of integers is exact, and a row of y depends on no other row. An element of x' or w' is
 * off by at most half a scale. A row with an infinite value or NaN has the scale NaN, and so gives
 * NaN. Source: Bhandare et al. 2019, "Efficient 8-bit quantization of transformer neural machine
 * language translation model".
 */
#ifndef SOFTBACK_OPS_LINEAR_INT8_H
#define SOFTBACK_OPS_LINEAR_INT8_H

#include "ops/linear.h"

/* The longest row: sums of products with integers in 0..255 (ops/cpu/int8_tile.h) have 31 bits. */
enum { LINEAR_INT8_LONGEST = 1 << 16 };

struct linear_int8_kernels {
    /* Writes the integers and scales of a weight (out, in) in the order in which products read
       them, and returns their number of bytes; packed may be NULL to ask for that number. */
    int64_t (*pack)(int64_t out, int64_t in, const void *weight, void *packed);
    /* bias may be NULL. False when out of memory. */
    bool (*forward)(const struct linear_shape *s, const void *x, const void *packed,
                    const void *bias, void *y);
};

extern struct kernel_rows linear_int8_rows;

#endif
