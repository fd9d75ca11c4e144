/*
 * Broadcasting as plain numbers: how operands of different shapes are traversed together. Adjacent
 * axes are merged where all operands allow it: equal shapes become one long axis, and a bias added
 * to (B, T, C) becomes (B T, C).
 */
#ifndef SOFTBACK_OPS_BROADCAST_H
#define SOFTBACK_OPS_BROADCAST_H

#include "tensor/shape.h"
#include "tensor/tensor.h"

enum { BROADCAST_OPERANDS = 4 };

struct broadcast {
    int rank; /* at least 1 */
    int64_t dim[SB_MAX_RANK];
    /* Of each operand, in elements; 0 on broadcast axes. Operand 0 has the full shape. */
    int64_t stride[BROADCAST_OPERANDS][SB_MAX_RANK];
};

/* The traversal of the shape of operand[0], to which all others broadcast. */
struct broadcast broadcast_plan(int operands, const sb_tensor *const operand[]);

/* The same traversal without axes of size 1 and with adjacent axes merged where possible. */
struct broadcast broadcast_merge(const struct broadcast *walk);

#endif
