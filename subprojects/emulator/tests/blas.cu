/*
 * cuBLAS's products, compared with plain loops, in every type and orientation, and with strides
 * larger than a column.
 */
#include "check.cuh"
#include <cublasLt.h>
#include <cublas_v2.h>

struct Shape {
    int m, n, k;
    bool a_transposed, b_transposed;
};

static size_t at(int row, int column, int stride, bool transposed)
{
    return transposed ? static_cast<size_t>(row) * stride + column
                      : static_cast<size_t>(column) * stride + row;
}

template <class In, class Out> struct Problem {
    Shape shape;
    int a_stride, b_stride, c_stride;
    std::vector<In> a, b;
    std::vector<Out> c;
};

template <class In, class Out> static Problem<In, Out> problem_of(const Shape &s)
{
    auto numbers = [](int count, unsigned seed) {
        std::vector<float> all = some_numbers(count, seed);
        return std::vector<In>(all.begin(), all.end());
    };
    int a_stride = (s.a_transposed ? s.k : s.m) + 3, b_stride = (s.b_transposed ? s.n : s.k) + 1;
    int c_stride = s.m + 2;
    return {s,
            a_stride,
            b_stride,
            c_stride,
            numbers(a_stride * (s.a_transposed ? s.m : s.k), 1),
            numbers(b_stride * (s.b_transposed ? s.k : s.n), 2),
            std::vector<Out>(static_cast<size_t>(c_stride) * s.n, Out(NAN))};
}

template <class In, class Out>
static std::vector<Out> expected(const Problem<In, Out> &p, double alpha)
{
    std::vector<Out> c = p.c;
    for (int row = 0; row < p.shape.m; row++)
        for (int column = 0; column < p.shape.n; column++) {
            double sum = 0;
            for (int l = 0; l < p.shape.k; l++)
                sum += static_cast<double>(p.a[at(row, l, p.a_stride, p.shape.a_transposed)]) *
                       static_cast<double>(p.b[at(l, column, p.b_stride, p.shape.b_transposed)]);
            c[at(row, column, p.c_stride, false)] = static_cast<Out>(alpha * sum);
        }
    return c;
}

/* The elements between the columns of C must stay NaN. */
template <class Out>
static void compare(const std::vector<Out> &met, const std::vector<Out> &c, double tolerance)
{
    std::vector<double> a, b;
    for (size_t i = 0; i < c.size(); i++) {
        bool untouched = isnan(static_cast<double>(c[i]));
        a.push_back(untouched ? isnan(static_cast<double>(met[i])) : static_cast<double>(met[i]));
        b.push_back(untouched ? 1 : static_cast<double>(c[i]));
    }
    check_close(a, b, tolerance, "a product");
}

template <class In, class Out, class Scalar>
static void try_types(cublasHandle_t handle, const Shape &shape, cudaDataType in, cudaDataType out,
                      cublasComputeType_t compute, double tolerance)
{
    Problem<In, Out> p = problem_of<In, Out>(shape);
    Array<In> a(p.a), b(p.b);
    Array<Out> c(p.c);
    Scalar alpha = 0.5f, beta = 0;
    cublasStatus_t status = cublasGemmEx(
        handle, shape.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        shape.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, shape.m, shape.n, shape.k, &alpha, a, in,
        p.a_stride, b, in, p.b_stride, &beta, c, out, p.c_stride, compute, CUBLAS_GEMM_DEFAULT);
    check(status == CUBLAS_STATUS_SUCCESS, cublasGetStatusString(status));
    alpha = 7; /* the scalars are read at the call */
    compare(c.read(), expected(p, 0.5), tolerance);
}

/* Two products that share B (its stride is 0), added to C. */
static void try_batch(cublasHandle_t handle)
{
    std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8}, b = {1, 0, 1, 1};
    std::vector<float> c = {1, 1, 1, 1, 1, 1, 1, 1};
    Array<float> on_a(a), on_b(b), on_c(c);
    float alpha = 1, beta = 10;
    cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &alpha, on_a, CUDA_R_32F,
                               2, 4, on_b, CUDA_R_32F, 2, 0, &beta, on_c, CUDA_R_32F, 2, 4, 2,
                               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    check_close(on_c.read(), {11, 12, 14, 16, 15, 16, 22, 24}, 0, "a batch");
}

static void try_refusals(cublasHandle_t handle)
{
    Array<float> x(std::vector<float>(16, 1));
    float one = 1;
    auto multiply = [&](int stride, cudaDataType type) {
        return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, x, type, stride, x,
                            CUDA_R_32F, 4, &one, x, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F,
                            CUBLAS_GEMM_DEFAULT);
    };
    check(multiply(3, CUDA_R_32F) == CUBLAS_STATUS_INVALID_VALUE, "a short stride is refused");
    check(multiply(4, CUDA_R_16BF) == CUBLAS_STATUS_NOT_SUPPORTED, "types must match");
}

/* Y' = W X' + bias by cublasLt: W (2, 3) and X (2, 3) row by row, which it reads as transposed. */
static cublasStatus_t multiply_with_bias(const float *w, const float *x, const float *bias,
                                         float *y)
{
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t of_w, of_y;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t best = {};
    const cublasOperation_t turned = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const uint32_t alignment = 16;
    const float one = 1, none = 0;
    int found = 0;
    cublasLtCreate(&handle);
    cublasLtMatmulDescCreate(&what, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned);
    cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    cublasLtMatrixLayoutCreate(&of_w, CUDA_R_32F, 3, 2, 3);
    cublasLtMatrixLayoutCreate(&of_y, CUDA_R_32F, 2, 2, 2);
    cublasLtMatmulPreferenceCreate(&preference);
    for (auto operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
        cublasLtMatmulPreferenceSetAttribute(preference, operand, &alignment, sizeof alignment);
    cublasLtMatmulAlgoGetHeuristic(handle, what, of_w, of_w, of_y, of_y, preference, 1, &best,
                                   &found);
    const cublasStatus_t status =
        found == 0 ? CUBLAS_STATUS_NOT_SUPPORTED
                   : cublasLtMatmul(handle, what, &one, w, of_w, x, of_w, &none, y, of_y, y, of_y,
                                    &best.algo, nullptr, 0, nullptr);
    cudaDeviceSynchronize();
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(of_w);
    cublasLtMatrixLayoutDestroy(of_y);
    cublasLtMatmulDescDestroy(what);
    cublasLtDestroy(handle);
    return status;
}

static void try_bias()
{
    Array<float> w(std::vector<float>{1, 2, 3, 4, 5, 6, 0, 0}), bias(std::vector<float>{10, 20});
    Array<float> x(std::vector<float>{1, 0, 0, 0, 1, 1, 0, 0}), y(std::vector<float>(4, NAN));
    const cublasStatus_t status = multiply_with_bias(w, x, bias, y);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED)
        return; /* one seed in four has no algorithm for this size */
    check(status == CUBLAS_STATUS_SUCCESS, "a product with a bias");
    check_close(y.read(), {11, 24, 15, 31}, 0, "a product with a bias");
    const float *odd = static_cast<float *>(w) + 1;
    check(multiply_with_bias(odd, x, bias, y) == CUBLAS_STATUS_INVALID_VALUE,
          "a misaligned operand is refused");
    check(multiply_with_bias(w, x, nullptr, y) == CUBLAS_STATUS_INVALID_VALUE, "it needs a bias");
}

int main()
{
    cublasHandle_t handle;
    cudaStream_t stream;
    cublasCreate(&handle);
    cudaStreamCreate(&stream);
    cublasSetStream(handle, stream);
    for (int orientation = 0; orientation < 4; orientation++) {
        Shape shape = {5, 3, 7, (orientation & 1) != 0, (orientation & 2) != 0};
        try_types<float, float, float>(handle, shape, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F,
                                       1e-6);
        try_types<double, double, double>(handle, shape, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F,
                                          1e-14);
        try_types<__nv_bfloat16, float, float>(handle, shape, CUDA_R_16BF, CUDA_R_32F,
                                               CUBLAS_COMPUTE_32F, 1e-6);
        try_types<__nv_bfloat16, __nv_bfloat16, float>(handle, shape, CUDA_R_16BF, CUDA_R_16BF,
                                                       CUBLAS_COMPUTE_32F, 1e-2);
    }
    try_batch(handle);
    try_refusals(handle);
    try_bias();
    cublasDestroy(handle);
    cudaStreamDestroy(stream);
    return check_report();
}
