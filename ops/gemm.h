/*
 * Matrix products, for the kernels of other operations: C = A B + beta C, row-major, with A (m, k),
 * B (k, n) or their transposes and leading dimensions in elements. With beta 0, C is not read.
 */
#ifndef SOFTBACK_OPS_GEMM_H
#define SOFTBACK_OPS_GEMM_H

#include "ops/kernel.h"

typedef bool gemm_function(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                           const void *a, int64_t lda, const void *b, int64_t ldb, double beta,
                           void *c, int64_t ldc);

/* For tests and benchmarks; kernels call the functions of their own instruction set
   (ops/cpu/gemm.h). */
struct gemm_kernels {
    gemm_function *parallel, *serial, *builtin;
    gemm_function *bf16; /* A and B of bf16, C of f32; NULL in f64's rows and the
                            plain ones */
    /* Multiplies and adds in registers on the calling thread, and returns the number of operations:
       an upper bound for the speed of a product. */
    double (*peak)(int64_t rounds);
};

extern struct kernel_rows gemm_rows;

/*
 * Whether large products use BLAS. An OpenBLAS built for one thread ("SINGLE_THREADED") is not
 * used: it allocates work memory without a lock, so concurrent calls may give wrong results.
 */
bool gemm_has_blas(void);

/*
 * Whether the built-in f32 product is faster than BLAS for matrices of any size. It is on Zen 4,
 * where OpenBLAS 0.3.21 uses kernels of another processor (one thread, 1,024 x 512 x 2,048: 103
 * against 90 GFLOP/s).
 */
bool gemm_builtin_is_faster(void);

/* The library that computes products: "OpenBLAS ..." or "the built-in product". */
const char *gemm_library(void);

#endif
