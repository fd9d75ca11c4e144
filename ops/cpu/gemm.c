#include "ops/gemm.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/gemm_builtin.h"
#ifdef SOFTBACK_BLAS
#include <cblas.h>
#endif

/* Whether to use BLAS: it may be faster for large matrices. (On a Xeon of 2023, one thread,
   OpenBLAS 0.3.21 is 10 % faster for these, and 20 % slower for 512 x 128 x 128.) */
static bool gemm_is_for_blas(const struct product *s)
{
    const int64_t least = 512, most = INT32_MAX;
    const double large = 0x1p30;
    return s->m >= least && s->n >= least && s->k >= least && s->m <= most && s->n <= most &&
           s->k <= most && s->lda <= most && s->ldb <= most && s->ldc <= most &&
           (double)s->m * (double)s->n * (double)s->k >= large && gemm_has_blas() &&
           !gemm_builtin_is_faster(REAL_IS_FLOAT ? SB_F32 : SB_F64);
}

#ifdef SOFTBACK_BLAS
static void gemm_multiply_by_blas(const struct product *s)
{
    enum CBLAS_TRANSPOSE ta = s->transpose_a ? CblasTrans : CblasNoTrans;
    enum CBLAS_TRANSPOSE tb = s->transpose_b ? CblasTrans : CblasNoTrans;
    int m = (int)s->m, n = (int)s->n, k = (int)s->k;
    int lda = (int)s->lda, ldb = (int)s->ldb, ldc = (int)s->ldc;
#if REAL_IS_FLOAT
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, s->a, lda, s->b, ldb, s->beta, s->c, ldc);
#else
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, s->a, lda, s->b, ldb, s->beta, s->c, ldc);
#endif
}
#else
static void gemm_multiply_by_blas(const struct product *s)
{
    (void)s;
}
#endif

/* The bits of BLAS depend on the number and the position of rows in a call. The shape alone
   determines the slabs of rows, so the number of threads changes nothing. */
static void gemm_multiply_slabs(const struct product *s)
{
    int64_t slabs = s->m < 512 ? 1 : s->m < 4096 ? s->m / 256 : 16;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < slabs; i++) {
        int64_t first = i * s->m / slabs;
        struct product slab = *s;
        slab.m = (i + 1) * s->m / slabs - first;
        slab.a = (const real *)s->a + (s->transpose_a ? first : first * s->lda);
        slab.c += first * s->ldc;
        gemm_multiply_by_blas(&slab);
    }
}

/* The head of a gemm_function. */
#define GEMM(name)                                                                                 \
    bool name(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const void *a,  \
              int64_t lda, const void *b, int64_t ldb, double beta, void *c, int64_t ldc)

GEMM(CPU(gemm_parallel))
{
    const struct product s = {transpose_a, transpose_b, m,   n,          k, a,
                              lda,         b,           ldb, (real)beta, c, .ldc = ldc};
    if (!gemm_is_for_blas(&s))
        return CPU(gemm_multiply)(&s, true);
    gemm_multiply_slabs(&s);
    return true;
}

GEMM(CPU(gemm_serial))
{
    const struct product s = {transpose_a, transpose_b, m,   n,          k, a,
                              lda,         b,           ldb, (real)beta, c, .ldc = ldc};
    if (!gemm_is_for_blas(&s))
        return CPU(gemm_multiply)(&s, false);
    gemm_multiply_by_blas(&s);
    return true;
}

GEMM(CPU(gemm_builtin))
{
    const struct product s = {transpose_a, transpose_b, m,   n,          k, a,
                              lda,         b,           ldb, (real)beta, c, .ldc = ldc};
    return CPU(gemm_multiply)(&s, true);
}

bool CPU(gemm_weight)(int64_t m, int64_t n, int64_t k, const real *a, const real *packed, real *c)
{
    const struct product s = {false, true, m, n, k, a, k, packed, k, 0, c, n, .packed = true};
    return CPU(gemm_multiply)(&s, true);
}

#ifdef SOFTBACK_BLAS
static GEMM(blas)
{
    const struct product s = {transpose_a, transpose_b, m,   n,          k, a,
                              lda,         b,           ldb, (real)beta, c, .ldc = ldc};
    gemm_multiply_slabs(&s);
    return true;
}
#else
#define blas NULL
#endif

#if REAL_IS_FLOAT
#define BF16 CPU(gemm_bf16)
#else
#define BF16 NULL
#endif

KERNELS(gemm) = {CPU(gemm_parallel), CPU(gemm_serial), CPU(gemm_builtin), blas, BF16,
                 CPU(gemm_peak)};
