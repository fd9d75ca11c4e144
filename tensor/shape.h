/* Shapes: at most six dimensions, row-major, the last one contiguous. */
#ifndef SOFTBACK_TENSOR_SHAPE_H
#define SOFTBACK_TENSOR_SHAPE_H

#include "error.h"
#include <stdint.h>

enum { SB_MAX_RANK = 6 };

struct shape_text {
    char text[160];
};

/* The number of elements; -1, without a message, when a dimension is negative or the product
   exceeds 2^56. */
int64_t shape_size(int rank, const int64_t *dim);

/* "(2, 3, 4)"; "()" for a scalar. */
struct shape_text shape_text(int rank, const int64_t *dim);

/* Checks rank and dimensions for a new tensor; `who` opens the message. */
bool shape_check(const char *who, int rank, const int64_t *dim);

bool shape_equal(int rank_a, const int64_t *a, int rank_b, const int64_t *b);

/*
 * Broadcasting as in NumPy: shapes are aligned at their last axes, and dimensions of 1 are
 * repeated. False, without a message, when the shapes do not match.
 */
bool shape_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int *rank,
                     int64_t *dim);

/* The strides in elements with which a tensor of shape `dim` is read as shape `to`; 0 on broadcast
   axes. `dim` must broadcast to `to`. */
void shape_strides(int rank, const int64_t *dim, int to_rank, const int64_t *to, int64_t *stride);

/* Maps negative axes to 0..rank-1; returns -1 when the axis does not exist. */
int shape_axis(int rank, int axis);

#endif
