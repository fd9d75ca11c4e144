/*
 * Broadcasting as plain numbers: how operands of different shapes are walked together. Neighbouring
 * axes that all operands walk alike are merged, so that same shapes become one long axis, and a
 * bias added to (B, T, C) becomes (B T, C).
 */
#ifndef SOFTBACK_OPS_BROADCAST_H
#define SOFTBACK_OPS_BROADCAST_H

#include "tensor/shape.h"
#include "tensor/tensor.h"

enum { BROADCAST_OPERANDS = 4 };

struct broadcast {
    int rank; /* at least 1 */
    int64_t dim[SB_MAX_RANK];
    /* Of each operand, in elements; 0 where it stretches. Operand 0 has the full shape. */
    int64_t stride[BROADCAST_OPERANDS][SB_MAX_RANK];
};

/* The walk over the shape of operand[0], to which all others broadcast. */
struct broadcast broadcast_plan(int operands, const sb_tensor *const operand[]);

/* The same walk with axes of size 1 dropped and what can be merged merged. */
struct broadcast broadcast_merge(const struct broadcast *walk);

#endif
