#include "ops/matmul.h"
#include "ops/plain/real.h"

/* Where the matrix for this place along the batch axes begins. */
static int64_t matrix_at(const struct matmul_shape *s, const int64_t *stride,
                         int64_t place)
{
    int64_t at = 0;
    for (int axis = s->axes - 1; axis >= 0; axis--) {
        at += place % s->dim[axis] * stride[axis];
        place /= s->dim[axis];
    }
    return at;
}

/* c_ij += sum_k a_ik b_kj, where a or b may lie transposed */
static void matmul_add(const struct matmul_shape *s, const real *a,
                       const real *b, real *c)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            real sum = 0;
            for (int64_t k = 0; k < s->k; k++)
                sum += (s->transpose_a ? a[k * s->m + i] : a[i * s->k + k]) *
                       (s->transpose_b ? b[j * s->k + k] : b[k * s->n + j]);
            c[i * s->n + j] += sum;
        }
}

/* y = a b for every place along the batch axes, and backward, which is products
   too: da = dy b', db = a' dy. An operand that stretches is read again and
   again, and one that is a gradient is added to. */
static bool matmul_product(const struct matmul_shape *s, const void *a_,
                           const void *b_, bool by_row, bool fresh, void *c_)
{
    const real *a = a_, *b = b_;
    real *c = c_;
    int64_t places = 1;
    (void)by_row;
    for (int axis = 0; axis < s->axes; axis++)
        places *= s->dim[axis];
    for (int64_t place = 0; place < places; place++)
        zero_if_fresh(fresh, s->m * s->n, c + matrix_at(s, s->c, place));
    for (int64_t place = 0; place < places; place++)
        matmul_add(s, a + matrix_at(s, s->a, place),
                   b + matrix_at(s, s->b, place),
                   c + matrix_at(s, s->c, place));
    return true;
}

KERNELS(matmul) = {matmul_product};
