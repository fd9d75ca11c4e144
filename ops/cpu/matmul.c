#include "ops/matmul.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/real.h"

/* From this many multiplications on, threads share one product; smaller products are distributed
   over threads. */
enum { LARGE_PRODUCT = 1 << 22 };

static int64_t matmul_places(const struct matmul_shape *s, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= s->dim[i];
    return n;
}

/* The offset of index tuple number `place` along the axes from..to-1. */
static int64_t matmul_offset(const struct matmul_shape *s, const int64_t *stride, int from, int to,
                             int64_t place)
{
    int64_t elements = 0;
    for (int i = to - 1; i >= from; i--) {
        elements += place % s->dim[i] * stride[i];
        place /= s->dim[i];
    }
    return elements;
}

/* c (+)= op(a) op(b), summed in order over the axes that c does not have. */
static bool matmul_sum_of_products(const struct matmul_shape *s, bool alone, bool by_row,
                                   const real *a, const real *b, bool fresh, real *c)
{
    const int64_t lda = s->transpose_a ? s->m : s->k, ldb = s->transpose_b ? s->k : s->n;
    const int64_t count = matmul_places(s, s->kept, s->axes);
    for (int64_t i = 0; i < count; i++) {
        const real *a_i = a + matmul_offset(s, s->a, s->kept, s->axes, i);
        const real *b_i = b + matmul_offset(s, s->b, s->kept, s->axes, i);
        gemm_function *gemm = by_row  ? CPU(gemm_builtin)
                              : alone ? CPU(gemm_parallel)
                                      : CPU(gemm_serial);
        if (!gemm(s->transpose_a, s->transpose_b, s->m, s->n, s->k, a_i, lda, b_i, ldb,
                  fresh && i == 0 ? 0 : 1, c, s->n))
            return false;
    }
    return true;
}

static bool matmul_product(const struct matmul_shape *s, const void *a_, const void *b_,
                           bool by_row, bool fresh, void *c_)
{
    const real *a = a_, *b = b_;
    real *c = c_;
    const int64_t count = matmul_places(s, 0, s->kept), work = s->m * s->n * s->k;
    const bool alone = count == 1 || work >= LARGE_PRODUCT;
    bool ok = true;
#pragma omp parallel for schedule(static) reduction(&& : ok) if (!alone && count * work > PARALLEL_WORK)
    for (int64_t i = 0; i < count; i++)
        ok = matmul_sum_of_products(s, alone, by_row, a + matmul_offset(s, s->a, 0, s->kept, i),
                                    b + matmul_offset(s, s->b, 0, s->kept, i), fresh,
                                    c + matmul_offset(s, s->c, 0, s->kept, i)) &&
             ok;
    return ok;
}

KERNELS(matmul) = {matmul_product};
