#include "ops/gemm.h"
#include <stdatomic.h>
#ifdef SOFTBACK_BLAS
#include <cblas.h>
#endif

KERNEL_ROWS(gemm);

#ifdef SOFTBACK_BLAS
/* The library cuts the work itself. An OpenBLAS on OpenMP sets the caller's number of threads too,
   which is not meant. */
static void limit_blas_to_one_thread(void)
{
    int threads = sb_threads();
    openblas_set_num_threads(1);
    sb_set_threads(threads);
}

bool gemm_has_blas(void)
{
    enum { UNKNOWN, NO, YES };
    static atomic_int answer;
    int known = atomic_load_explicit(&answer, memory_order_acquire);
    if (known == UNKNOWN) {
        known = openblas_get_parallel() == OPENBLAS_SEQUENTIAL ? NO : YES;
        if (known == YES)
            limit_blas_to_one_thread();
        atomic_store_explicit(&answer, known, memory_order_release);
    }
    return known == YES;
}
#else
bool gemm_has_blas(void)
{
    return false;
}
#endif

const char *gemm_library(void)
{
#ifdef SOFTBACK_BLAS
    if (gemm_has_blas())
        return openblas_get_config();
    return "the built-in product, since this OpenBLAS is not made to be called by several threads";
#else
    return "the built-in product";
#endif
}
