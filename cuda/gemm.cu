#include "cuda/gemm.cuh"
#include "cuda/gemm_tile.cuh"
#include "ops/gemm.h"
#include <cublas_v2.h>
#include <limits.h>
#include <type_traits>

namespace
{

bool blas_ok(cublasStatus_t status, const char *operation)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    return host->fail("%s: cuBLAS: %s", operation, cublasGetStatusString(status)) != nullptr;
}

cublasHandle_t handle;
void *workspace;

/* The workspace of cuBLAS. With its own, cuBLAS would allocate during work, which a captured graph
   does not allow. NVIDIA recommends this size for compute 9.0. */
const size_t WORKSPACE_BYTES = 32 << 20;

/* Float products without TF32, except by their compute type; and bf16 products with split sums keep
   partial sums in float. */
const cublasMath_t MATH_MODE =
    (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);

/* Makes the handle, once. */
bool ready(const char *operation)
{
    if (handle)
        return true;
    cublasHandle_t made;
    size_t bytes;
    if (!gemm_workspace(operation, &bytes))
        return false;
    if (!blas_ok(cublasCreate(&made), operation))
        return false;
    if (!blas_ok(cublasSetStream(made, stream), operation) ||
        !blas_ok(cublasSetWorkspace(made, workspace, WORKSPACE_BYTES), operation) ||
        !blas_ok(cublasSetMathMode(made, MATH_MODE), operation)) {
        cublasDestroy(made);
        return false;
    }
    handle = made;
    return true;
}

/* The cuBLAS name of a type and of its compute type; alpha and beta are of type `real`. */
template <class T> struct blas_type;
template <> struct blas_type<float> {
    typedef float real;
    static const cudaDataType_t name = CUDA_R_32F;
    static const cublasComputeType_t sums = CUBLAS_COMPUTE_32F;
};
template <> struct blas_type<double> {
    typedef double real;
    static const cudaDataType_t name = CUDA_R_64F;
    static const cublasComputeType_t sums = CUBLAS_COMPUTE_64F;
};

template <> struct blas_type<bf16> {
    typedef float real;
    static const cudaDataType_t name = CUDA_R_16BF;
    static const cublasComputeType_t sums = CUBLAS_COMPUTE_32F;
};

bool fits_int(const gemm_shape &s, const gemm_batch &batch)
{
    for (int64_t size : {s.m, s.n, s.k, s.lda, s.ldb, s.ldc, batch.count})
        if (size > INT_MAX)
            return false;
    return true;
}

} // namespace

void *gemm_workspace(const char *operation, size_t *bytes)
{
    *bytes = WORKSPACE_BYTES;
    if (!workspace && !cuda_ok(cudaMalloc(&workspace, WORKSPACE_BYTES), operation))
        return nullptr;
    return workspace;
}

template <class T, class C>
bool gemm_by_row(const char *operation, const gemm_shape &s, const gemm_batch &batch, const T *a,
                 const T *b, double beta, C *c)
{
    if (batch.count == 0 || s.m == 0 || s.n == 0)
        return true;
    const by_row_arguments<T, C> f = {s, batch, a, b, (real_of<T>)beta, c};
    if constexpr (std::is_same<T, bf16>::value) {
        return gemm_on_tensor_cores(operation, f);
    } else {
        const bool many =
            s.m > 2 * strip_tile::ROWS && tiles_of<wide_tile>(s, batch) >= ENOUGH_TILES;
        if constexpr (std::is_same<T, float>::value) {
            if (gemm_float_takes(f))
                return gemm_float(operation, f);
            if (!many && gemv_takes(f))
                return gemv(operation, f);
        }
        if (many)
            LAUNCH((multiply_by_row<T, C, wide_tile>), dim3(tile_blocks<wide_tile>(s, batch)),
                   dim3(TILE_THREADS), 0, stream, f);
        else /* more tiles */
            LAUNCH((multiply_by_row<T, C, strip_tile>), dim3(tile_blocks<strip_tile>(s, batch)),
                   dim3(TILE_THREADS), 0, stream, f);
        return launched(operation);
    }
}

/* cuBLAS matrices are column-major, so ours are transposed there: it computes C' = op(B)'
   op(A)'. */
template <class T, class C>
bool gemm(const char *operation, const gemm_shape &s, const gemm_batch &batch, const T *a,
          const T *b, double beta, C *c)
{
    if (batch.count == 0 || s.m == 0 || s.n == 0 || s.k == 0)
        return gemm_by_row(operation, s, batch, a, b, beta, c); /* which handles empty sums */
    if (!fits_int(s, batch))
        return host->fail("%s: cuda: a product (%lld, %lld) by (%lld, %lld), %lld times, is too "
                          "large for cuBLAS",
                          operation, (long long)s.m, (long long)s.k, (long long)s.k, (long long)s.n,
                          (long long)batch.count) != nullptr;
    if (!ready(operation))
        return false;
    typedef blas_type<T> type;
    const typename type::real one = 1, factor = (typename type::real)beta;
    const cublasOperation_t op_a = s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_b = s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int m = (int)s.m, n = (int)s.n, k = (int)s.k, count = (int)batch.count;
    const int lda = (int)s.lda, ldb = (int)s.ldb, ldc = (int)s.ldc;
    const cublasComputeType_t sums =
        s.tf32 && std::is_same<T, float>::value ? CUBLAS_COMPUTE_32F_FAST_TF32 : type::sums;
    if (count == 1)
        return blas_ok(cublasGemmEx(handle, op_b, op_a, n, m, k, &one, b, type::name, ldb, a,
                                    type::name, lda, &factor, c, blas_type<C>::name, ldc, sums,
                                    CUBLAS_GEMM_DEFAULT),
                       operation);
    return blas_ok(cublasGemmStridedBatchedEx(handle, op_b, op_a, n, m, k, &one, b, type::name, ldb,
                                              batch.b, a, type::name, lda, batch.a, &factor, c,
                                              blas_type<C>::name, ldc, batch.c, count, sums,
                                              CUBLAS_GEMM_DEFAULT),
                   operation);
}

#define GEMM_OF(T, C)                                                                              \
    template bool gemm<T, C>(const char *, const gemm_shape &, const gemm_batch &, const T *,      \
                             const T *, double, C *);                                              \
    template bool gemm_by_row<T, C>(const char *, const gemm_shape &, const gemm_batch &,          \
                                    const T *, const T *, double, C *);

GEMM_OF(float, float)
GEMM_OF(double, double)
GEMM_OF(bf16, bf16)
GEMM_OF(bf16, float)

namespace
{

template <class T>
bool by_blas(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const void *a,
             int64_t lda, const void *b, int64_t ldb, double beta, void *c, int64_t ldc)
{
    return gemm("gemm", {transpose_a, transpose_b, m, n, k, lda, ldb, ldc, false}, gemm_single,
                (const T *)a, (const T *)b, beta, (T *)c);
}

template <class T>
bool by_row(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const void *a,
            int64_t lda, const void *b, int64_t ldb, double beta, void *c, int64_t ldc)
{
    return gemm_by_row("gemm", {transpose_a, transpose_b, m, n, k, lda, ldb, ldc, false},
                       gemm_single, (const T *)a, (const T *)b, beta, (T *)c);
}

} // namespace

/* The peak of the device is not measured, hence nullptr. */
KERNELS(gemm, by_blas<T>, by_blas<T>, by_row<T>, nullptr, nullptr, nullptr);
