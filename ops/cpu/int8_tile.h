/*
 * Tiles of products of 8-bit integers: sums of 32 bits, which stay in registers along k.
 *
 * Four integers that are adjacent along k are one group. Those of a weight are stored as q + 128,
 * in 0..255, since instructions multiply unsigned by signed integers; the reader of a sum subtracts
 * 128 times the sum of x's integers.
 */
#ifndef SOFTBACK_OPS_CPU_INT8_TILE_H
#define SOFTBACK_OPS_CPU_INT8_TILE_H

#include "ops/cpu/vector.h"

/* Sums, weights and factors fit in the registers: 32 with AVX-512 and on ARM, 16 otherwise. */
#if VECTOR_BYTES == 64 || defined(__aarch64__)
#define INT8_VECTORS 4
#else
#define INT8_VECTORS 2
#endif
enum {
    INT8_ROWS = 4,
    INT8_GROUP = 4,
    INT8_LANES = VECTOR_BYTES / INT8_GROUP,
    INT8_COLUMNS = INT8_VECTORS * INT8_LANES /* of a panel; the last one may have fewer vectors */
};

/* Sums (rows, INT8_COLUMNS) of rows of integers, row_step bytes apart, and a panel of weights:
   group after group, and in each all its columns. */
struct int8_tile {
    int64_t groups, vectors; /* of the panel */
    const int8_t *x;
    int64_t row_step;
    const uint8_t *weights;
    int32_t *sums;
};

/* 1..INT8_ROWS rows. */
typedef void int8_tile_function(const struct int8_tile *t, int64_t rows);

/* For this instruction set, and with AVX512-VNNI. */
#define INT8(name) CPU_PASTE(name, SET)
int8_tile_function INT8(int8_tile), INT8(int8_tile_native);

#endif
