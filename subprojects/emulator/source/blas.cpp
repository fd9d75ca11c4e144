/*
 * cuBLAS's products on the host. Matrices are column-major: element (i, j) lies at i + j stride.
 * Every operand is first copied out, element by element through its stride, so that the address
 * sanitizer checks every access that cuBLAS would make; OpenBLAS or three loops multiply the
 * copies.
 */
#include "blas.h"
#include "emulator.h"
#ifdef SOFTBACK_EMULATOR_BLAS
#include <cblas.h>
#endif

using namespace emulator;

struct cublasContext {
    cudaStream_t stream;
};

static size_t size_of(cudaDataType type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static char *element(const Matrix &matrix, int item, int row, int column)
{
    long long index = item * matrix.step + static_cast<long long>(column) * matrix.stride + row;
    char *data = static_cast<char *>(const_cast<void *>(matrix.data));
    return data + index * static_cast<long long>(size_of(matrix.type));
}

template <class Real> static Real load(const char *address, cudaDataType type)
{
    if (type == CUDA_R_64F)
        return static_cast<Real>(*reinterpret_cast<const double *>(address));
    if (type == CUDA_R_32F)
        return *reinterpret_cast<const float *>(address);
    return static_cast<float>(*reinterpret_cast<const __nv_bfloat16 *>(address));
}

template <class Real> static void store(char *address, cudaDataType type, Real value)
{
    if (type == CUDA_R_64F)
        *reinterpret_cast<double *>(address) = static_cast<double>(value);
    else if (type == CUDA_R_32F)
        *reinterpret_cast<float *>(address) = static_cast<float>(value);
    else
        *reinterpret_cast<__nv_bfloat16 *>(address) = __nv_bfloat16(value);
}

/* To the nearest number with 10 bits of the fraction. */
static void round_to_tf32(std::vector<float> &numbers)
{
    for (float &x : numbers)
        if (std::isfinite(x))
            x = __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu);
}

/* op(matrix), of rows x columns, without gaps. */
template <class Real>
static std::vector<Real> copy_out(const Matrix &matrix, int item, int rows, int columns)
{
    std::vector<Real> copy(static_cast<size_t>(rows) * static_cast<size_t>(columns));
    int inner = matrix.transposed ? columns : rows, outer = matrix.transposed ? rows : columns;
    size_t across = matrix.transposed ? static_cast<size_t>(rows) : 1;
    size_t along = matrix.transposed ? 1 : static_cast<size_t>(rows);
    for (int j = 0; j < outer; j++)
        for (int i = 0; i < inner; i++)
            copy[static_cast<size_t>(i) * across + static_cast<size_t>(j) * along] =
                load<Real>(element(matrix, item, i, j), matrix.type);
    return copy;
}

#ifdef SOFTBACK_EMULATOR_BLAS
static void multiply(int m, int n, int k, const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, m, b, k, 0, c, m);
}
static void multiply(int m, int n, int k, const double *a, const double *b, double *c)
{
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, m, b, k, 0, c, m);
}
#else
template <class Real>
static void multiply(int m, int n, int k, const Real *a, const Real *b, Real *c)
{
    for (int j = 0; j < n; j++)
        for (int l = 0; l < k; l++) {
            Real factor = b[static_cast<ptrdiff_t>(j) * k + l];
            const Real *column = a + static_cast<ptrdiff_t>(l) * m;
            Real *sum = c + static_cast<ptrdiff_t>(j) * m;
            for (int i = 0; i < m; i++)
                sum[i] += column[i] * factor;
        }
}
#endif

/* bf16 products, in blocks of 16 terms. */
template <class Real>
static void multiply_on_tensor_cores(int m, int n, int k, const Real *a, const Real *b, Real *c)
{
    if constexpr (std::is_same_v<Real, float>)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                for (int l = 0; l < k; l += 16)
                    c[static_cast<ptrdiff_t>(j) * m + i] = tensor_core_sum(
                        c[static_cast<ptrdiff_t>(j) * m + i], a + static_cast<ptrdiff_t>(l) * m + i,
                        m, b + static_cast<ptrdiff_t>(j) * k + l, 1, std::min(16, k - l));
}

/* The value as stored in this type. */
template <class Real> static Real rounded(Real value, cudaDataType type)
{
    char bytes[sizeof(double)];
    store(bytes, type, value);
    return load<Real>(bytes, type);
}

/* The sums of terms begin to end of op(A) op(B). */
template <class Real>
static std::vector<Real> sums_of(const Product &product, int item, int begin, int end)
{
    Matrix a = product.a, b = product.b;
    a.data = element(a, item, a.transposed ? begin : 0, a.transposed ? 0 : begin);
    b.data = element(b, item, b.transposed ? 0 : begin, b.transposed ? begin : 0);
    std::vector<Real> sum(static_cast<size_t>(product.m) * static_cast<size_t>(product.n));
    if (begin == end || product.alpha == 0)
        return sum;
    std::vector<Real> left = copy_out<Real>(a, 0, product.m, end - begin);
    std::vector<Real> right = copy_out<Real>(b, 0, end - begin, product.n);
    if constexpr (std::is_same_v<Real, float>)
        if (product.tf32) {
            round_to_tf32(left);
            round_to_tf32(right);
        }
    if (settings().rounding && a.type == CUDA_R_16BF)
        multiply_on_tensor_cores(product.m, product.n, end - begin, left.data(), right.data(),
                                 sum.data());
    else
        multiply(product.m, product.n, end - begin, left.data(), right.data(), sum.data());
    return sum;
}

template <class Real> static std::vector<Real> all_sums(const Product &product, int item)
{
    if (!product.split_and_rounded && !settings().rounding)
        return sums_of<Real>(product, item, 0, product.k);
    std::vector<Real> sum = sums_of<Real>(product, item, 0, product.k / 2);
    std::vector<Real> rest = sums_of<Real>(product, item, product.k / 2, product.k);
    for (size_t i = 0; i < sum.size(); i++)
        sum[i] = product.split_and_rounded
                     ? rounded(sum[i], product.c.type) + rounded(rest[i], product.c.type)
                     : sum[i] + rest[i]; /* another order of additions */
    return sum;
}

template <class Real> static Real gelu_tanh(Real z)
{
    return z / 2 * (1 + tanh(Real(0.79788456080286536) * (z + Real(0.044715) * z * z * z)));
}

/* With beta = 0, C is not read: it may hold NaN. */
template <class Real> static void run_item(const Product &product, int item)
{
    int m = product.m, n = product.n;
    Real alpha = static_cast<Real>(product.alpha), beta = static_cast<Real>(product.beta);
    std::vector<Real> sum = all_sums<Real>(product, item);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            char *place = element(product.c, item, i, j);
            Real value =
                alpha *
                sum[static_cast<size_t>(j) * static_cast<size_t>(m) + static_cast<size_t>(i)];
            if (beta != 0)
                value += beta * load<Real>(place, product.c.type);
            if (product.bias)
                value += load<Real>(static_cast<const char *>(product.bias) +
                                        (item * product.bias_step + i) *
                                            static_cast<long long>(size_of(product.c.type)),
                                    product.c.type);
            if (product.aux.data) {
                store(element(product.aux, item, i, j), product.aux.type, value);
                value = gelu_tanh(value);
            }
            store(place, product.c.type, value);
        }
}

static void run(const Product &product)
{
    work.kernels++;
    for (int item = 0; item < product.batch; item++) {
        if (product.c.type == CUDA_R_64F)
            run_item<double>(product, item);
        else
            run_item<float>(product, item);
    }
}

static bool types_are_supported(const Product &product, cublasComputeType_t compute)
{
    cudaDataType in = product.a.type, out = product.c.type;
    bool in_double = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
    if (in != product.b.type)
        return false;
    if (in_double)
        return in == CUDA_R_64F && out == CUDA_R_64F;
    return (in == CUDA_R_32F && out == CUDA_R_32F) ||
           (in == CUDA_R_16BF && (out == CUDA_R_16BF || out == CUDA_R_32F));
}

/* Whether results of a batch may overlap, which cuBLAS leaves undefined: they lie one after the
   other, or side by side within the columns' stride. */
static bool results_overlap(const Product &product)
{
    const Matrix &c = product.c;
    const long long length = static_cast<long long>(product.n - 1) * c.stride + product.m;
    return product.batch > 1 && product.n > 0 && c.step < length &&
           (c.step < product.m || product.batch * c.step > c.stride);
}

static bool sizes_are_valid(const Product &product)
{
    auto fits = [](const Matrix &matrix, int rows, int columns) {
        return matrix.stride >= std::max(1, matrix.transposed ? columns : rows);
    };
    return product.m >= 0 && product.n >= 0 && product.k >= 0 && product.batch >= 0 &&
           fits(product.a, product.m, product.k) && fits(product.b, product.k, product.n) &&
           fits(product.c, product.m, product.n) && !results_overlap(product);
}

cublasStatus_t emulator::submit(cudaStream_t stream, const Product &product,
                                cublasComputeType_t compute)
{
    if (!sizes_are_valid(product))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!types_are_supported(product, compute))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (product.m == 0 || product.n == 0 || product.batch == 0)
        return CUBLAS_STATUS_SUCCESS;
    Product queued = product;
    queued.tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32 && product.a.type == CUDA_R_32F;
    return enqueue(stream, [queued] { run(queued); }) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                      : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_operation,
                                          cublasOperation_t b_operation, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type,
                                          int a_stride, long long a_step, const void *b,
                                          cudaDataType b_type, int b_stride, long long b_step,
                                          const void *beta, void *c, cudaDataType c_type,
                                          int c_stride, long long c_step, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    bool in_double = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
    auto scalar = [&](const void *pointer) {
        return load<double>(static_cast<const char *>(pointer),
                            in_double ? CUDA_R_64F : CUDA_R_32F);
    };
    Product product = {m,
                       n,
                       k,
                       batch,
                       scalar(alpha),
                       scalar(beta),
                       {a, a_type, a_stride, a_step, a_operation != CUBLAS_OP_N},
                       {b, b_type, b_stride, b_step, b_operation != CUBLAS_OP_N},
                       {c, c_type, c_stride, c_step, false},
                       nullptr,
                       0,
                       false,
                       {}};
    return submit(handle->stream, product, compute);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_operation,
                            cublasOperation_t b_operation, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int a_stride, const void *b,
                            cudaDataType b_type, int b_stride, const void *beta, void *c,
                            cudaDataType c_type, int c_stride, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(handle, a_operation, b_operation, m, n, k, alpha, a, a_type,
                                      a_stride, 0, b, b_type, b_stride, 0, beta, c, c_type,
                                      c_stride, 0, 1, compute, algorithm);
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    *handle = nullptr;
    if (!settings().devices || lasting_error)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasContext{nullptr};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    delete handle;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

/* The emulator needs no workspace and has one algorithm. */
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *, size_t)
{
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t)
{
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return "unknown";
}
