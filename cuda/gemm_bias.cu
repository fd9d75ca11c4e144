/*
 * A product whose epilogue adds a bias, and may apply gelu_tanh, by cublasLt, which saves passes
 * over y. The descriptors and the algorithm for given sizes are cached. If cublasLt rejects a
 * product, the caller computes it in two steps.
 */
#include "cuda/gemm.cuh"
#include <cublasLt.h>
#include <stdint.h>

namespace
{

enum { PLANS = 64, ALIGNMENT = 16 };

/* Sizes, and the descriptors and the algorithm of their product. */
struct plan {
    int64_t rows, in, out, pitch;
    struct linear_group group;
    cudaDataType_t type;
    cublasLtEpilogue_t epilogue;
    cublasComputeType_t sums;
    bool tried, usable;
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t x, weight, y;
    cublasLtMatmulAlgo_t algorithm;
};

cublasLtHandle_t handle;
plan plans[PLANS];

template <class T> struct lt_type;
template <> struct lt_type<float> {
    static const cudaDataType_t name = CUDA_R_32F;
};
template <> struct lt_type<bf16> {
    static const cudaDataType_t name = CUDA_R_16BF;
};

bool done(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS;
}

template <class Value>
bool set(cublasLtMatmulDesc_t what, cublasLtMatmulDescAttributes_t attribute, Value value)
{
    return done(cublasLtMatmulDescSetAttribute(what, attribute, &value, sizeof value));
}

template <class Value>
bool prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
            Value value)
{
    return done(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

void forget(plan &p)
{
    if (p.what)
        cublasLtMatmulDescDestroy(p.what);
    for (cublasLtMatrixLayout_t layout : {p.x, p.weight, p.y})
        if (layout)
            cublasLtMatrixLayoutDestroy(layout);
    p = {};
}

/* A layout's place in a group: as many matrices, `step` elements apart. */
bool repeat(const plan &p, cublasLtMatrixLayout_t layout, int64_t step)
{
    const int32_t count = (int32_t)p.group.count;
    return done(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                 sizeof count)) &&
           done(cublasLtMatrixLayoutSetAttribute(
               layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step));
}

/* All linears of a group have the same x. */
bool describe_group(plan &p)
{
    return p.group.count == 0 ||
           (set(p.what, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, p.group.bias) &&
            repeat(p, p.weight, p.group.weight) && repeat(p, p.x, 0) && repeat(p, p.y, p.group.y));
}

/* The leading dimension of the epilogue's second result, where it has one. */
bool describe_epilogue(plan &p)
{
    return set(p.what, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue) &&
           (p.epilogue == CUBLASLT_EPILOGUE_BIAS ||
            set(p.what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.pitch));
}

/* cublasLt matrices are column-major, so it computes y' = W x' + bias, with one bias for each row
   of y'. */
bool describe(plan &p)
{
    return done(cublasLtMatmulDescCreate(&p.what, p.sums, CUDA_R_32F)) &&
           set(p.what, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T) &&
           set(p.what, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) && describe_epilogue(p) &&
           done(cublasLtMatrixLayoutCreate(&p.weight, p.type, (uint64_t)p.in, (uint64_t)p.out,
                                           p.in)) &&
           done(cublasLtMatrixLayoutCreate(&p.x, p.type, (uint64_t)p.in, (uint64_t)p.rows, p.in)) &&
           done(cublasLtMatrixLayoutCreate(&p.y, p.type, (uint64_t)p.out, (uint64_t)p.rows,
                                           p.pitch)) &&
           describe_group(p);
}

/* Selects the algorithm by cublasLt's heuristic, for this workspace and operands aligned to
   ALIGNMENT. If it splits the sums, the parts are added in float: in the type of y each part would
   be rounded. */
bool choose(plan &p, size_t workspace)
{
    const uint32_t alignment = ALIGNMENT, reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint64_t bytes = workspace;
    cublasLtMatmulPreference_t preference;
    if (!done(cublasLtMatmulPreferenceCreate(&preference)))
        return false;
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    const bool ok = prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes) &&
                    prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions) &&
                    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment) &&
                    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment) &&
                    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment) &&
                    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment) &&
                    done(cublasLtMatmulAlgoGetHeuristic(handle, p.what, p.weight, p.x, p.y, p.y,
                                                        preference, 1, &best, &found)) &&
                    found > 0 && done(best.state);
    cublasLtMatmulPreferenceDestroy(preference);
    p.algorithm = best.algo;
    return ok;
}

bool same_group(const struct linear_group &a, const struct linear_group &b)
{
    return a.count == b.count && a.weight == b.weight && a.bias == b.bias && a.y == b.y;
}

/* The plan for these sizes, made if it is not in the cache, where it replaces an older one. */
plan &plan_for(const struct linear_shape &s, cudaDataType_t type, cublasLtEpilogue_t epilogue,
               size_t workspace)
{
    const bool tf32 = s.tf32 && type == CUDA_R_32F;
    const cublasComputeType_t sums = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const uint64_t mixed = ((uint64_t)s.rows * 31 + (uint64_t)s.in) * 31 + (uint64_t)s.out;
    const int64_t pitch = s.pitch ? s.pitch : s.out;
    plan &p = plans[(mixed * 31 + (uint64_t)s.group.count + (uint64_t)type + (uint64_t)sums +
                     (uint64_t)epilogue) %
                    PLANS];
    if (p.tried && p.rows == s.rows && p.in == s.in && p.out == s.out && p.pitch == pitch &&
        p.type == type && p.sums == sums && p.epilogue == epilogue && same_group(p.group, s.group))
        return p;
    forget(p);
    p.rows = s.rows;
    p.in = s.in;
    p.out = s.out;
    p.pitch = pitch;
    p.group = s.group;
    p.type = type;
    p.epilogue = epilogue;
    p.sums = sums;
    p.tried = true;
    p.usable = describe(p) && choose(p, workspace);
    return p;
}

/* Whether all matrices of a group begin at a multiple of ALIGNMENT. */
template <class T> bool aligned(const T *x, int64_t step)
{
    return reinterpret_cast<uintptr_t>(x) % ALIGNMENT == 0 &&
           step * (int64_t)sizeof(T) % ALIGNMENT == 0;
}

} // namespace

template <class T>
bool gemm_with_bias(const struct linear_shape &s, const T *x, const T *weight, const T *bias, T *z,
                    T *y)
{
    size_t bytes;
    if (s.rows == 0 || s.in == 0 || s.out == 0 || !aligned(x, 0) ||
        !aligned(weight, s.group.weight) || !aligned(bias, s.group.bias) ||
        !aligned(y, s.group.y) || !aligned(z, 0) || (!handle && !done(cublasLtCreate(&handle))))
        return false;
    void *workspace = gemm_workspace("linear", &bytes);
    if (!workspace)
        return false;
    plan &p = plan_for(s, lt_type<T>::name,
                       z ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_BIAS, bytes);
    const float one = 1, none = 0;
    return p.usable && set(p.what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias) &&
           (!z || set(p.what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, z)) &&
           done(cublasLtMatmul(handle, p.what, &one, weight, p.weight, x, p.x, &none, y, p.y, y,
                               p.y, &p.algorithm, workspace, bytes, stream));
}

template bool gemm_with_bias<float>(const struct linear_shape &, const float *, const float *,
                                    const float *, float *, float *);
template bool gemm_with_bias<bf16>(const struct linear_shape &, const bf16 *, const bf16 *,
                                   const bf16 *, bf16 *, bf16 *);
