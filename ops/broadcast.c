#include "ops/broadcast.h"
#include "tensor/storage.h"

/* Whether the last axis of `walk` and this one are contiguous in every operand. */
static bool broadcast_continues(const struct broadcast *walk, int64_t size,
                                const struct broadcast *from, int axis)
{
    if (walk->rank == 0)
        return false;
    for (int k = 0; k < BROADCAST_OPERANDS; k++)
        if (walk->stride[k][walk->rank - 1] != from->stride[k][axis] * size)
            return false;
    return true;
}

struct broadcast broadcast_merge(const struct broadcast *walk)
{
    struct broadcast merged = {.rank = 0};
    for (int axis = 0; axis < walk->rank; axis++) {
        int64_t size = walk->dim[axis];
        if (size == 1)
            continue;
        if (broadcast_continues(&merged, size, walk, axis))
            merged.dim[merged.rank - 1] *= size;
        else
            merged.dim[merged.rank++] = size;
        for (int k = 0; k < BROADCAST_OPERANDS; k++)
            merged.stride[k][merged.rank - 1] = walk->stride[k][axis];
    }
    if (merged.rank > 0)
        return merged;
    return (struct broadcast){1, {1}, {{1}, {1}, {1}, {1}}}; /* one element */
}

struct broadcast broadcast_plan(int operands, const sb_tensor *const operand[])
{
    const sb_tensor *y = operand[0];
    struct broadcast walk = {.rank = y->rank};
    for (int axis = 0; axis < y->rank; axis++)
        walk.dim[axis] = y->dim[axis];
    for (int k = 0; k < operands; k++)
        shape_strides(operand[k]->rank, operand[k]->dim, y->rank, y->dim, walk.stride[k]);
    return broadcast_merge(&walk);
}
