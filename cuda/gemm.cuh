/*
 * Matrix products for the kernels of other operations: C = op(A) op(B) + beta C, row-major, with
 * leading dimensions in elements; with beta 0, C is not read. See ops/gemm.h.
 *
 * gemm         by cuBLAS, in float without TF32 unless asked; deterministic, but the order of
 *              additions depends on the size of the whole product
 * gemm_by_row  each row of C depends only on that row of op(A), on B and on k, not on m or on the
 *              position of the row (batch invariance), so that a sequence decodes alike in every
 *              batch
 *
 * T is the type of A and B, and C of C: the same, or float, the type of sums, for bf16.
 */
#ifndef SOFTBACK_CUDA_GEMM_CUH
#define SOFTBACK_CUDA_GEMM_CUH

#include "cuda/device.cuh"
#include "ops/linear.h"

/* op(A) is (m, k), op(B) (k, n). */
struct gemm_shape {
    bool transpose_a, transpose_b;
    int64_t m, n, k, lda, ldb, ldc;
    bool tf32; /* gemm rounds operands of float to TF32 */
};

/* The number of products, and the distances between their matrices in elements, which may be 0 for
   A and B. */
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
 * y = x W' + bias for contiguous x (rows, in) and W (out, in), or for a group of them, in one
 * kernel: the epilogue of cublasLt adds the bias, and y is rounded once. With z, it also applies an
 * activation: z = x W' + bias, y = gelu_tanh z. False, without a message, when cublasLt does not
 * support it; then the caller uses gemm and does the rest itself.
 */
template <class T>
bool gemm_with_bias(const struct linear_shape &s, const T *x, const T *weight, const T *bias, T *z,
                    T *y);

/* The workspace of products; NULL, with a message, when out of memory. Products on the stream share
   it. */
void *gemm_workspace(const char *operation, size_t *bytes);

#endif
