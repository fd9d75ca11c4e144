#include "ops/gemm.h"
#include <stdatomic.h>
#include <string.h>
#ifdef SOFTBACK_BLAS
#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#endif

KERNEL_ROWS(gemm);

/* Kernels of OpenBLAS that the built-in product beats for large matrices: by 1.1 to 1.4 in f32, on
   a Zen 4 (tests/bench/tried.md). In f64, and with AVX2, they are equal within a tenth. */
static const struct slower_blas {
    const char *kernels;
    int from, to; /* of its versions 0.3.x */
    enum kernel_set set;
    bool f32, f64;
} slower_blas[] = {
    {"Cooperlake", 21, 34, KERNELS_CPU_V4, true, false},
    {"SkylakeX", 21, 34, KERNELS_CPU_V4, true, false},
    {"Haswell", 21, 34, KERNELS_CPU_V4, true, false},
    {"Zen", 21, 34, KERNELS_CPU_V4, true, false},
};

bool gemm_table_prefers_builtin(const char *blas_kernels, int version, enum kernel_set set,
                                sb_dtype dtype)
{
    for (size_t i = 0; i < sizeof slower_blas / sizeof *slower_blas; i++) {
        const struct slower_blas *s = &slower_blas[i];
        if (strcmp(blas_kernels, s->kernels) == 0 && s->from <= version && version <= s->to &&
            s->set == set)
            return dtype == SB_F64 ? s->f64 : s->f32;
    }
    return false;
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

/* Copied once: OpenBLAS writes its names into static buffers on every call, which is not
   thread-safe. */
static struct {
    char name[80], kernels[32];
    int version; /* x of 0.3.x; -1: another */
    /* gemm_library's answers where the table prefers the built-in product: for f32, for both */
    char f64_alone[128], slower[128];
} blas;

static void gemm_ask_blas(void)
{
    char version[16] = "";
    snprintf(blas.kernels, sizeof blas.kernels, "%s", openblas_get_corename());
    sscanf(openblas_get_config(), "OpenBLAS %15s", version);
    if (sscanf(version, "0.3.%d", &blas.version) != 1)
        blas.version = -1;
    snprintf(blas.name, sizeof blas.name, "OpenBLAS %s, kernels for %s", version, blas.kernels);
    snprintf(blas.f64_alone, sizeof blas.f64_alone, "the built-in product, large ones of f64 by %s",
             blas.name);
    snprintf(blas.slower, sizeof blas.slower, "the built-in product, faster here than %s",
             blas.name);
}

const char *gemm_blas(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!gemm_has_blas())
        return NULL;
    pthread_once(&once, gemm_ask_blas);
    return blas.name;
}

bool gemm_builtin_is_faster(sb_dtype dtype)
{
    return gemm_blas() &&
           gemm_table_prefers_builtin(blas.kernels, blas.version, kernel_cpu_set(), dtype);
}

const char *gemm_library(void)
{
    if (!gemm_blas())
        return "the built-in product, since this OpenBLAS cannot be called by several threads";
    return !gemm_builtin_is_faster(SB_F32)  ? blas.name
           : gemm_builtin_is_faster(SB_F64) ? blas.slower
                                            : blas.f64_alone;
}
#else
bool gemm_has_blas(void)
{
    return false;
}

bool gemm_builtin_is_faster(sb_dtype dtype)
{
    (void)dtype;
    return false;
}

const char *gemm_blas(void)
{
    return NULL;
}

const char *gemm_library(void)
{
    return "the built-in product";
}
#endif
