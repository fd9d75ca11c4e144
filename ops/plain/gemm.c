#include "ops/gemm.h"
#include "ops/plain/real.h"

/* C = A B + beta C, where A or B may lie transposed */
static bool gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                 int64_t k, const void *a_, int64_t lda, const void *b_,
                 int64_t ldb, double beta, void *c_, int64_t ldc)
{
    const real *a = a_, *b = b_;
    real *c = c_;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            real sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (transpose_a ? a[l * lda + i] : a[i * lda + l]) *
                       (transpose_b ? b[j * ldb + l] : b[l * ldb + j]);
            c[i * ldc + j] =
                sum + (beta != 0 ? (real)beta * c[i * ldc + j] : 0);
        }
    return true;
}

/* x = x 0.999 + 1, two operations a round */
static double gemm_peak(int64_t rounds)
{
    volatile real x = 0;
    for (int64_t i = 0; i < rounds; i++)
        x = x * (real)0.999 + 1;
    return 2 * (double)rounds;
}

KERNELS(gemm) = {gemm, gemm, gemm, NULL, NULL, gemm_peak};
