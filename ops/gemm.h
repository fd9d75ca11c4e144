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
    gemm_function *blas; /* NULL without BLAS and in the plain rows */
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
 * Whether the built-in product is used for matrices of any size, since it is faster than this
 * OpenBLAS. A table says so, by the name and the version of OpenBLAS's kernels and by the vector
 * width of softback's: never a clock, since the two products differ in the last bits. `softback
 * bench products` prints what the table should say.
 */
bool gemm_builtin_is_faster(sb_dtype dtype);

/* The table itself: OpenBLAS's name of its kernels ("Cooperlake"), Y of its version 0.3.Y. */
bool gemm_table_prefers_builtin(const char *blas_kernels, int version, enum kernel_set set,
                                sb_dtype dtype);

/* OpenBLAS's name and version, "OpenBLAS 0.3.21, kernels for Cooperlake"; NULL without BLAS. */
const char *gemm_blas(void);

/* The library that computes products: "OpenBLAS ..." or "the built-in product". */
const char *gemm_library(void);

#endif
