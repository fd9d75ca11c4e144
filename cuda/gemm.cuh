/*
 * Matrix products for the kernels of other operations: C = op(A) op(B) + beta C, row-major, with
 * leading dimensions in elements; with beta 0, C is not read. See ops/gemm.h.
 *
 * gemm         by cuBLAS, in float without TF32; deterministic, but how it sums depends on the size
 *              of the whole product
 * gemm_by_row  each row of C depends on that row of op(A), on B and on k alone, not on m or on
 * where the row stands, so that a sentence decodes alike in every batch
 *
 * T is the type of A and B, and C of C: the same, or of bf16 the float that its sums are taken in.
 */
#ifndef SOFTBACK_CUDA_GEMM_CUH
#define SOFTBACK_CUDA_GEMM_CUH

#include "cuda/device.cuh"
#include "ops/kernel.h"

/* op(A) is (m, k), op(B) (k, n). */
struct gemm_shape {
    bool transpose_a, transpose_b;
    int64_t m, n, k, lda, ldb, ldc;
};

/* So many products, whose matrices lie these steps apart, in elements; those of A and B may be 0.
 */
struct gemm_batch {
    int64_t count, a, b, c;
};

const gemm_batch gemm_single = {1, 0, 0, 0};

template <class T, class C = T>
bool gemm(const char *operation, const gemm_shape &s, const gemm_batch &batch, const T *a,
          const T *b, double beta, C *c);

template <class T, class C = T>
bool gemm_by_row(const char *operation, const gemm_shape &s, const gemm_batch &batch, const T *a,
                 const T *b, double beta, C *c);

/*
 * y = x W' + bias for x (rows, in), W (out, in) and y (rows, out) that lie together, in one pass:
 * the bias is added by cublasLt's epilogue, and y rounded once. False, without a message, where
 * cublasLt has no way for it; then gemm and a pass of one's own have to do.
 */
template <class T>
bool gemm_with_bias(int64_t rows, int64_t in, int64_t out, const T *x, const T *weight,
                    const T *bias, T *y);

/* Memory for what products need beside the matrices; NULL, with a message, when there is none. The
   stream's products use it one after the other. */
void *gemm_workspace(const char *operation, size_t *bytes);

#endif
