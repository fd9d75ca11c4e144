#include "ops/gemm.h"
#include <stdatomic.h>
#ifdef SOFTBACK_BLAS
#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#endif

KERNEL_ROWS(gemm);

bool gemm_builtin_is_faster(void)
{
#ifdef SOFTBACK_X86_SETS
    return kernel_cpu_set() == KERNELS_CPU_V4 && __builtin_cpu_is("amdfam19h");
#else
    return false;
#endif
}

#ifdef SOFTBACK_BLAS
/* softback distributes the work itself, so each BLAS call uses one thread. OpenBLAS built with
   OpenMP also changes the caller's number of threads, so restore it. */
static void gemm_limit_blas_to_one_thread(void)
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
            gemm_limit_blas_to_one_thread();
        atomic_store_explicit(&answer, known, memory_order_release);
    }
    return known == YES;
}

/* [0]: for f32 and f64 alike; [1]: when only f64 uses BLAS. Copied once: OpenBLAS writes its name
   into a static buffer on every call, which is not thread-safe. */
static char blas_name[2][256];

static void gemm_ask_blas_its_name(void)
{
    const char *name = openblas_get_config();
    snprintf(blas_name[0], sizeof blas_name[0], "%s", name);
    snprintf(blas_name[1], sizeof blas_name[1], "the built-in product, large ones of f64 by %s",
             name);
}

const char *gemm_library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!gemm_has_blas())
        return "the built-in product, since this OpenBLAS cannot be called by several threads";
    pthread_once(&once, gemm_ask_blas_its_name);
    return blas_name[gemm_builtin_is_faster()];
}
#else
bool gemm_has_blas(void)
{
    return false;
}

const char *gemm_library(void)
{
    return "the built-in product";
}
#endif
