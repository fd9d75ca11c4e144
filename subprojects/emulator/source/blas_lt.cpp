/*
 * cublasLt's product with an epilogue. Incomplete or wrong descriptions are rejected, and so is one
 * product in four, as cublasLt may: which ones depends on the seed. Where the caller allows it,
 * sums are split and their parts added in the type of the result, which the heuristic may choose
 * too.
 */
#include "blas.h"
#include "emulator.h"
#include <cublasLt.h>

using namespace emulator;

struct cublasLtContext {
};

struct cublasLtMatmulDescOpaque {
    cublasComputeType_t compute;
    cublasOperation_t a, b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    int64_t bias_step;
    void *aux;
    int64_t aux_stride;
};

struct cublasLtMatrixLayoutOpaque {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t stride;
    int32_t batch;
    int64_t step;
};

/* Indexed by attribute; alignments are 256 by default. */
struct cublasLtMatmulPreferenceOpaque {
    uint64_t workspace;
    uint32_t alignment[4];
    uint32_t reductions;
};

/* The promises of the heuristic query, stored in the algorithm's data. */
enum { ALIGNMENT = 0, PROMISED = 4, WORKSPACE = 5, SPLIT = 6 };

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = nullptr;
    if (!settings().devices || lasting_error)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasLtContext;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    if ((compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) ||
        scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *desc = new cublasLtMatmulDescOpaque{
        compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, 0, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    delete desc;
    return CUBLAS_STATUS_SUCCESS;
}

template <class T> static cublasStatus_t take(T &field, const void *value, size_t bytes)
{
    if (!value || bytes != sizeof field)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&field, value, sizeof field);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(desc->a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(desc->b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(desc->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
        return take(desc->bias_step, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return take(desc->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return take(desc->aux_stride, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride)
{
    *layout = new cublasLtMatrixLayoutOpaque{type, rows, columns, stride, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    return attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? take(layout->batch, value, bytes)
                                                           : take(layout->step, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference =
        new cublasLtMatmulPreferenceOpaque{0, {256, 256, 256, 256}, CUBLASLT_REDUCTION_SCHEME_MASK};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return take(preference->workspace, value, bytes);
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return take(preference->reductions, value, bytes);
    return take(preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                value, bytes);
}

/* Whether there is no algorithm for a product of this size: always the same answer in a process. */
static bool refused(const cublasLtMatrixLayoutOpaque &a, const cublasLtMatrixLayoutOpaque &d)
{
    uint64_t mixed = settings().seed;
    for (uint64_t part : {a.rows, a.columns, d.rows, d.columns, static_cast<uint64_t>(d.type)})
        mixed = (mixed ^ part) * 0x9E3779B97F4A7C15;
    return settings().order == Order::random && mixed >> 62 == 0;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *found)
{
    *found = 0;
    if (!handle || !desc || !preference || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (refused(*a, *d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0] = {};
    for (int i = 0; i < 4; i++)
        results[0].algo.data[ALIGNMENT + i] = preference->alignment[i];
    results[0].algo.data[PROMISED] = 1;
    results[0].algo.data[SPLIT] =
        (preference->reductions & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE) != 0;
    results[0].algo.data[WORKSPACE] = results[0].workspaceSize = preference->workspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static bool promises_hold(const cublasLtMatmulAlgo_t &algorithm, const void *const operands[4],
                          const void *workspace, size_t bytes)
{
    for (int i = 0; i < 4; i++)
        if (reinterpret_cast<uintptr_t>(operands[i]) % algorithm.data[ALIGNMENT + i] != 0)
            return false;
    return algorithm.data[PROMISED] == 1 && bytes >= algorithm.data[WORKSPACE] &&
           (workspace || bytes == 0);
}

static Matrix matrix(const void *data, const cublasLtMatrixLayoutOpaque &layout, bool turned)
{
    return {data, layout.type, static_cast<int>(layout.stride), layout.step, turned};
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
                              cudaStream_t stream)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    const void *const operands[] = {a, b, c, d};
    if (!desc || !alpha || !beta || !algorithm || c != d ||
        !promises_hold(*algorithm, operands, workspace, bytes) ||
        (desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT) != (desc->bias == nullptr) ||
        (desc->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) != (desc->aux != nullptr))
        return CUBLAS_STATUS_INVALID_VALUE;
    const bool a_turned = desc->a != CUBLAS_OP_N, b_turned = desc->b != CUBLAS_OP_N;
    const uint64_t m = a_turned ? a_layout->columns : a_layout->rows;
    const uint64_t k = a_turned ? a_layout->rows : a_layout->columns;
    const uint64_t n = b_turned ? b_layout->rows : b_layout->columns;
    if ((b_turned ? b_layout->columns : b_layout->rows) != k || d_layout->rows != m ||
        d_layout->columns != n || c_layout->rows != m || c_layout->columns != n ||
        a_layout->batch != d_layout->batch || b_layout->batch != d_layout->batch ||
        c_layout->batch != d_layout->batch || c_layout->step != d_layout->step)
        return CUBLAS_STATUS_INVALID_VALUE;
    const Product product = {
        static_cast<int>(m),
        static_cast<int>(n),
        static_cast<int>(k),
        d_layout->batch,
        *static_cast<const float *>(alpha),
        *static_cast<const float *>(beta),
        matrix(a, *a_layout, a_turned),
        matrix(b, *b_layout, b_turned),
        matrix(d, *d_layout, false),
        desc->bias,
        desc->bias_step,
        algorithm->data[SPLIT] == 1,
        {desc->aux, d_layout->type, static_cast<int>(desc->aux_stride), 0, false}};
    return submit(stream, product, desc->compute);
}
