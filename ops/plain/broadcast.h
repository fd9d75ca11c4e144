/* Walking operands of different shapes together (ops/broadcast.h). */
#ifndef SOFTBACK_OPS_PLAIN_BROADCAST_H
#define SOFTBACK_OPS_PLAIN_BROADCAST_H

#include "ops/broadcast.h"
#include "ops/plain/real.h"

/* How many places the walk has. */
static inline int64_t walk_size(const struct broadcast *plan)
{
    int64_t n = 1;
    for (int axis = 0; axis < plan->rank; axis++)
        n *= plan->dim[axis];
    return n;
}

/* Where an operand's element for this place lies. */
static inline int64_t walk_at(const struct broadcast *plan, int operand,
                              int64_t place)
{
    int64_t at = 0;
    for (int axis = plan->rank - 1; axis >= 0; axis--) {
        at += place % plan->dim[axis] * plan->stride[operand][axis];
        place /= plan->dim[axis];
    }
    return at;
}

/* How many elements an operand has: along axes where it stretches, one. */
static inline int64_t walk_elements(const struct broadcast *plan, int operand)
{
    int64_t n = 1;
    for (int axis = 0; axis < plan->rank; axis++)
        n *= plan->stride[operand][axis] ? plan->dim[axis] : 1;
    return n;
}

#endif
