/* The kernels of add, subtract, multiply, divide, where, maximum and minimum. */
#ifndef SOFTBACK_OPS_ARITHMETIC_H
#define SOFTBACK_OPS_ARITHMETIC_H

#include "ops/broadcast.h"
#include "ops/kernel.h"

enum arithmetic {
    ARITHMETIC_ADD,
    ARITHMETIC_SUBTRACT,
    ARITHMETIC_MULTIPLY,
    ARITHMETIC_DIVIDE,
    ARITHMETIC_WHERE,
    ARITHMETIC_MAXIMUM,
    ARITHMETIC_MINIMUM,
    ARITHMETIC_KINDS
};

struct arithmetic_kernels {
    /* The operands of the plan are y, a, b and, for where, the condition (else NULL). */
    bool (*forward)(enum arithmetic kind, const struct broadcast *plan, const void *a,
                    const void *b, const void *condition, void *y);
    /* side 1: dx is da; side 2: dx is db. Writes a fresh dx, else adds to it. Operands that the
       formula does not use may be NULL. */
    bool (*backward)(enum arithmetic kind, int side, bool fresh, const struct broadcast *plan,
                     const void *dy, const void *a, const void *b, const void *condition, void *dx);
};

extern struct kernel_rows arithmetic_rows;

#endif
