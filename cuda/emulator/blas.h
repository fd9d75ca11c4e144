/* A product of column-major matrices, as the emulated cuBLAS and cublasLt hand it on (blas.cpp). */
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

/* C = alpha op(A) op(B) + beta C + bias, a number for each row, if there is one. */
struct Product {
    int m, n, k, batch;
    double alpha, beta;
    Matrix a, b, c;
    const void *bias; /* of C's type */
};

/* Puts it into the stream. */
cublasStatus_t submit(cudaStream_t stream, const Product &product, cublasComputeType_t compute);

} // namespace emulator

#endif
