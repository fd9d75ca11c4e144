/* A product of column-major matrices, for the emulated cuBLAS and cublasLt (blas.cpp). */
#ifndef SOFTBACK_EMULATOR_BLAS_H
#define SOFTBACK_EMULATOR_BLAS_H

#include <cublas_v2.h>

namespace emulator
{

struct Matrix {
    const void *data;
    cudaDataType type;
    int stride;
    long long step; /* from one matrix of the batch to the next */
    bool transposed;
};

/* C = alpha op(A) op(B) + beta C + bias; the bias, if any, has one number for each row. If `aux`
   has data, it receives this and C its gelu_tanh. */
struct Product {
    int m, n, k, batch;
    double alpha, beta;
    Matrix a, b, c;
    const void *bias;       /* of C's type */
    long long bias_step;    /* from one bias of the batch to the next */
    bool split_and_rounded; /* sums are split, and each part is rounded to C's type */
    Matrix aux;
    bool tf32 = false; /* the elements of A and B are rounded to TF32 */
};

/* Queues the product on the stream. */
cublasStatus_t submit(cudaStream_t stream, const Product &product, cublasComputeType_t compute);

} // namespace emulator

#endif
