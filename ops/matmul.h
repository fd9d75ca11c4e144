/* The kernel of matmul, matmul_nt and matmul_tn, forward and backward. */
#ifndef SOFTBACK_OPS_MATMUL_H
#define SOFTBACK_OPS_MATMUL_H

#include "ops/kernel.h"
#include "tensor/shape.h"

enum { MATMUL_AXES = SB_MAX_RANK - 2 };

/*
 * Products c = op(a) op(b) for every index along the batch axes. Along the first `kept` axes each
 * index has its own c; along the others, products are summed in order into the same c. Strides are
 * in elements, 0 on axes where an operand is broadcast. None of m, n, k and dim is 0.
 */
struct matmul_shape {
    bool transpose_a, transpose_b; /* a is (k, m), b is (n, k); never both */
    bool tf32;                     /* a GPU rounds f32 operands to TF32 */
    int64_t m, n, k;
    int axes, kept;
    int64_t dim[MATMUL_AXES], a[MATMUL_AXES], b[MATMUL_AXES], c[MATMUL_AXES];
};

struct matmul_kernels {
    /* With `fresh`, c is written; otherwise the products are added to it. With `by_row`, the bits
       of a row of c depend only on that row of op(a) and on b, not on m. */
    bool (*product)(const struct matmul_shape *shape, const void *a, const void *b, bool by_row,
                    bool fresh, void *c);
};

#endif
