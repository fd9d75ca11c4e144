/* Values and gradients of operations agree with PyTorch's: tests/golden/references/operations.py
   has the same groups and cases. */
#include "tests/support/reference.h"

FUNCTION(add, sb_add(x[0], x[1]))
FUNCTION(subtract, sb_subtract(x[0], x[1]))
FUNCTION(multiply, sb_multiply(x[0], x[1]))
FUNCTION(divide, sb_divide(x[0], x[1]))
FUNCTION(where, sb_where(x[0], x[1], x[2]))

TEST(reference_operations, arithmetic_is_as_in_pytorch)
{
    static const struct reference_case cases[] = {CASE(add),      {"add_broadcast", add},
                                                  CASE(subtract), CASE(multiply),
                                                  CASE(divide),   CASE(where)};
    COMPARE("operations", "arithmetic", cases);
}

FUNCTION(negate, sb_negate(x[0]))
FUNCTION(scale, sb_scale(x[0], -1.7))
FUNCTION(exponential, sb_exp(x[0]))
FUNCTION(hyperbolic_tangent, sb_tanh(x[0]))
FUNCTION(sigmoid, sb_sigmoid(x[0]))
FUNCTION(relu, sb_relu(x[0]))
FUNCTION(gelu, sb_gelu(x[0]))
FUNCTION(gelu_tanh, sb_gelu_tanh(x[0]))
FUNCTION(silu, sb_silu(x[0]))
FUNCTION(square_root, sb_sqrt(x[0]))
FUNCTION(logarithm, sb_log(x[0]))
FUNCTION(cast, sb_cast(sb_cast(x[0], SB_F32), sb_tensor_dtype(x[0])))

TEST(reference_operations, elementwise_functions_are_as_in_pytorch)
{
    static const struct reference_case cases[] = {
        CASE(negate),         CASE(scale),
        {"exp", exponential}, {"tanh", hyperbolic_tangent},
        CASE(sigmoid),        CASE(relu),
        CASE(gelu),           CASE(gelu_tanh),
        CASE(silu),           {"sqrt", square_root},
        {"log", logarithm},   CASE(cast)};
    COMPARE("operations", "elementwise", cases);
}

FUNCTION(absolute, sb_abs(x[0]))
FUNCTION(sine, sb_sin(x[0]))
FUNCTION(cosine, sb_cos(x[0]))
FUNCTION(expm1_of, sb_expm1(x[0]))
FUNCTION(log1p_of, sb_log1p(x[0]))
FUNCTION(erf_of, sb_erf(x[0]))
FUNCTION(clamp, sb_clamp(x[0], -0.75, 1.25))
FUNCTION(pow_3, sb_pow(x[0], 3))
FUNCTION(pow_half, sb_pow(x[0], 2.5))
FUNCTION(maximum, sb_maximum(x[0], x[1]))
FUNCTION(minimum, sb_minimum(x[0], x[1]))
FUNCTION(variance, sb_variance(x[0], -1, 1, false))
FUNCTION(variance_first, sb_variance(x[0], 0, 0, true))
FUNCTION(topk, sb_topk(x[0], 3, NULL))
FUNCTION(unfold, sb_unfold(x[0], 3, NULL))
FUNCTION(unfold_far,
         sb_unfold(x[0], 3,
                   &(sb_unfold_options){.stride = 2, .dilation = 3, .left = 4, .right = 4}))
FUNCTION(convolution,
         sb_linear(sb_unfold(x[0], 3, &(sb_unfold_options){.stride = 2, .left = 1, .right = 1}),
                   x[1], x[2]))

TEST(reference_operations, small_operations_are_as_in_pytorch)
{
    static const struct reference_case cases[] = {
        {"abs", absolute},   {"sin", sine},        {"cos", cosine}, {"expm1", expm1_of},
        {"log1p", log1p_of}, {"erf", erf_of},      CASE(clamp),     CASE(pow_3),
        CASE(pow_half),      CASE(maximum),        CASE(minimum),   {"maximum_equal", maximum},
        CASE(variance),      CASE(variance_first), CASE(topk),      CASE(unfold),
        CASE(unfold_far),    CASE(convolution)};
    COMPARE("small_operations", "functions", cases);
}

FUNCTION(matmul, sb_matmul(x[0], x[1]))
FUNCTION(matmul_nt, sb_matmul_nt(x[0], x[1]))
FUNCTION(matmul_tn, sb_matmul_tn(x[0], x[1]))
FUNCTION(linear, sb_linear(x[0], x[1], x[2]))
FUNCTION(linear_relu, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_RELU))
FUNCTION(linear_gelu, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_GELU))
FUNCTION(linear_gelu_tanh, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_GELU_TANH))
FUNCTION(linear_silu, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_SILU))
FUNCTION(linear_tanh, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_TANH))
FUNCTION(linear_sigmoid, sb_linear_activation(x[0], x[1], x[2], SB_ACTIVATION_SIGMOID))

TEST(reference_operations, products_are_as_in_pytorch)
{
    static const struct reference_case cases[] = {CASE(matmul),
                                                  {"matmul_long", matmul},
                                                  {"matmul_broadcast", matmul},
                                                  CASE(matmul_nt),
                                                  CASE(matmul_tn),
                                                  CASE(linear),
                                                  {"linear_without_bias", linear},
                                                  CASE(linear_relu),
                                                  CASE(linear_gelu),
                                                  CASE(linear_gelu_tanh),
                                                  CASE(linear_silu),
                                                  CASE(linear_tanh),
                                                  CASE(linear_sigmoid)};
    COMPARE("operations", "products", cases);
}

FUNCTION(reshape, sb_reshape(x[0], SB_SHAPE(4, -1)))
FUNCTION(permute, sb_permute(x[0], 4, (const int[]){2, 0, 3, 1}))
FUNCTION(transpose, sb_transpose(x[0], 0, 2))
FUNCTION(concatenate, sb_concatenate(x, 3, 1))
FUNCTION(stack, sb_stack(x, 2, 1))
FUNCTION(slice, sb_slice(x[0], 1, 1, 2))
FUNCTION(expand, sb_expand(x[0], SB_SHAPE(2, 3, 4)))

static sb_tensor *split(sb_tensor *const x[])
{
    sb_tensor *part[3];
    bool ok = sb_split(x[0], 1, 3, (const int64_t[]){1, 2, 3}, part);
    return ok ? sb_concatenate((sb_tensor *[]){part[2], part[1], part[0]}, 3, 1) : NULL;
}

TEST(reference_operations, shapes_are_as_in_pytorch)
{
    static const struct reference_case cases[] = {CASE(reshape),     CASE(permute), CASE(transpose),
                                                  CASE(concatenate), CASE(stack),   CASE(slice),
                                                  CASE(split),       CASE(expand)};
    COMPARE("operations", "shapes", cases);
}

FUNCTION(sum, sb_sum(x[0], SB_ALL, false))
FUNCTION(sum_axis, sb_sum(x[0], 1, false))
FUNCTION(sum_last, sb_sum(x[0], -1, true))
FUNCTION(mean, sb_mean(x[0], SB_ALL, false))
FUNCTION(mean_axis, sb_mean(x[0], 0, true))
FUNCTION(max, sb_max(x[0], SB_ALL, false))
FUNCTION(max_axis, sb_max(x[0], 1, false))
FUNCTION(max_first, sb_max(x[0], 0, true))
FUNCTION(argmax, sb_argmax(x[0], -1))

TEST(reference_operations, reductions_are_as_in_pytorch)
{
    static const struct reference_case cases[] = {CASE(sum),      CASE(sum_axis),  CASE(sum_last),
                                                  CASE(mean),     CASE(mean_axis), CASE(max),
                                                  CASE(max_axis), CASE(max_first), CASE(argmax)};
    COMPARE("operations", "reductions", cases);
}

FUNCTION(layer_norm, sb_layer_norm(x[0], x[1], x[2], 0))
FUNCTION(layer_norm_epsilon, sb_layer_norm(x[0], x[1], x[2], 0.3))
FUNCTION(rms_norm, sb_rms_norm(x[0], x[1], 0))
FUNCTION(rms_norm_epsilon, sb_rms_norm(x[0], x[1], 0.3))
FUNCTION(l2_normalize, sb_l2_normalize(x[0]))

static sb_tensor *residual_layer_norm(sb_tensor *const x[])
{
    sb_tensor *sum, *y = sb_residual_layer_norm(x[0], x[1], 0, x[2], x[3], 0, &sum);
    return y ? sb_stack((sb_tensor *[]){y, sum}, 2, 0) : NULL;
}

TEST(reference_operations, norms_are_as_in_pytorch)
{
    static const struct reference_case cases[] = {
        CASE(layer_norm),          {"layer_norm_without_bias", layer_norm},
        CASE(layer_norm_epsilon),  {"layer_norm_far_mean", layer_norm},
        CASE(residual_layer_norm), CASE(rms_norm),
        CASE(rms_norm_epsilon),    CASE(l2_normalize)};
    COMPARE("operations", "norms", cases);
}

FUNCTION(embedding, sb_embedding(x[0], x[1]))
FUNCTION(gather, sb_gather(x[0], x[1]))

TEST(reference_operations, lookups_are_as_in_pytorch)
{
    static const struct reference_case cases[] = {CASE(embedding), CASE(gather)};
    COMPARE("operations", "lookup", cases);
}

FUNCTION(softmax, sb_softmax(x[0]))
FUNCTION(log_softmax, sb_log_softmax(x[0]))
FUNCTION(logsumexp, sb_logsumexp(x[0]))
FUNCTION(allowed, sb_masked_softmax(x[0], sb_mask_allow(x[1]), 1))
FUNCTION(blocked, sb_masked_softmax(x[0], sb_mask_block(x[1]), 1))
FUNCTION(causal, sb_masked_softmax(x[0], sb_mask_causal(), 1))
FUNCTION(causal_last, sb_masked_softmax(x[0], sb_mask_causal_last(), 1))
FUNCTION(lengths, sb_masked_softmax(x[0], sb_mask_lengths(x[1]), 1))
FUNCTION(window, sb_masked_softmax(x[0], sb_mask_window(2, 1), 1))
FUNCTION(two_masks_and_temperature,
         sb_masked_softmax(x[0], sb_mask_and(sb_mask_causal(), sb_mask_lengths(x[1])), 0.7))

TEST(reference_operations, softmaxes_are_as_in_pytorch)
{
    static const struct reference_case cases[] = {
        CASE(softmax),     CASE(log_softmax),
        CASE(logsumexp),   CASE(allowed),
        CASE(blocked),     CASE(causal),
        CASE(causal_last), CASE(lengths),
        CASE(window),      CASE(two_masks_and_temperature)};
    COMPARE("operations", "softmax", cases);
}

FUNCTION(sinusoidal, sb_multiply(x[0], sb_sinusoidal(sb_tensor_dtype(x[0]), 3, 6, 10)))
FUNCTION(rotary, sb_rotary(x[0], 0, 0))
FUNCTION(rotary_later, sb_rotary(x[0], 5, 100))
FUNCTION(alibi, sb_add(x[0], sb_alibi(sb_tensor_dtype(x[0]), 4, 3, 5)))
FUNCTION(relative_bias, sb_relative_bias(x[0], 4, 6))

TEST(reference_operations, positions_are_as_written_out_in_pytorch)
{
    static const struct reference_case cases[] = {
        CASE(sinusoidal), CASE(rotary), CASE(rotary_later), CASE(alibi), CASE(relative_bias)};
    COMPARE("operations", "positions", cases);
}
