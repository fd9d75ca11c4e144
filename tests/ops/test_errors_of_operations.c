/*
 * Bad calls of every operation, and the message of each: golden/errors_of_operations.txt. The
 * driver is tests/support/errors.h.
 */
#include "tests/support/errors.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdint.h>

static void bad_arithmetic(struct errors *f)
{
    CALL(sb_add(NULL, f->x));
    CALL(sb_add(f->x, NULL));
    CALL(sb_add(f->x, f->y));
    CALL(sb_add(f->x, f->d));
    CALL(sb_add(f->x, f->i2));
    CALL(sb_add(f->i2, f->i2));
    CALL(sb_subtract(f->x, f->y));
    CALL(sb_subtract(NULL, NULL));
    CALL(sb_subtract(f->d, f->x));
    CALL(sb_multiply(f->x, f->v4));
    CALL(sb_multiply(f->b, f->x));
    CALL(sb_multiply(NULL, f->x));
    CALL(sb_divide(f->x, f->y));
    CALL(sb_divide(f->x, NULL));
    CALL(sb_divide(f->d, f->v3));
    CALL(sb_where(f->x, f->x, f->x));
    CALL(sb_where(NULL, f->x, f->x));
    CALL(sb_where(f->b, NULL, f->x));
    CALL(sb_where(f->b, f->x, f->y));
    CALL(sb_where(f->b, f->x, f->d));
    CALL(sb_where(f->b, f->x, f->b));
    CALL(sb_divide(zeros(SB_F32, SB_SHAPE(2, 2)), f->v3));
    CALL(sb_where(zeros(SB_BOOL, SB_SHAPE(3)), f->v4, f->v4));
    CALL(sb_add(zeros(SB_BF16, SB_SHAPE(2, 3)), f->x));
    CALL(sb_add(f->x, zeros(SB_BF16, SB_SHAPE(2, 3))));
}

static void bad_elementwise(struct errors *f)
{
    CALL(sb_negate(NULL));
    CALL(sb_negate(f->i2));
    CALL(sb_scale(NULL, 2));
    CALL(sb_scale(f->b, 2));
    CALL(sb_sqrt(NULL));
    CALL(sb_sqrt(f->i2));
    CALL(sb_exp(NULL));
    CALL(sb_exp(f->b));
    CALL(sb_log(NULL));
    CALL(sb_log(f->i2));
    CALL(sb_tanh(NULL));
    CALL(sb_tanh(f->b));
    CALL(sb_sigmoid(NULL));
    CALL(sb_sigmoid(f->i2));
    CALL(sb_relu(NULL));
    CALL(sb_relu(f->b));
    CALL(sb_gelu(NULL));
    CALL(sb_gelu(f->i2));
    CALL(sb_gelu_tanh(NULL));
    CALL(sb_gelu_tanh(f->b));
    CALL(sb_silu(NULL));
    CALL(sb_silu(f->i2));
    CALL(sb_abs(NULL));
    CALL(sb_clamp(NULL, 0, 1));
    CALL(sb_clamp(f->x, 1, 0));
    CALL(sb_maximum(f->x, f->y));
    CALL(sb_variance(NULL, 0, 0, false));
    CALL(sb_variance(f->x, 7, 0, false));
    CALL(sb_variance(f->x, 0, 100, false));
    CALL(sb_topk(f->x, 0, NULL));
    CALL(sb_topk(f->i2, 1, NULL));
    CALL(sb_detach(NULL));
    CALL(sb_cast(NULL, SB_F64));
    CALL(sb_cast(f->x, (sb_dtype)42));
    CALL(sb_tanh(sb_exp(sb_softmax(f->s))));
    CALL(sb_exp(f->i2));
    CALL(sb_gelu_tanh(NULL));
    CALL(sb_topk(f->x, -1, NULL));
    CALL(sb_topk(f->x, 4, NULL));
    ALONE(sb_variance(f->x, 1, 0, false));
    ALONE(sb_variance(f->x, SB_ALL, 0, false));
    CALL(sb_variance(f->v3, -1, 3, false));
    CALL(sb_variance(f->v3, -1, -1, false));
    CALL(sb_variance(f->v3, -1, NAN, false));
}

static void bad_products(struct errors *f)
{
    CALL(sb_matmul(NULL, f->y));
    CALL(sb_matmul(f->x, NULL));
    CALL(sb_matmul(f->x, f->x));
    CALL(sb_matmul(f->v3, f->y));
    CALL(sb_matmul(f->x, f->v3));
    CALL(sb_matmul(f->s, f->y));
    CALL(sb_matmul(f->d, f->y));
    CALL(sb_matmul(f->i22, f->x));
    CALL(sb_matmul(f->q, f->kb));
    CALL(sb_matmul_nt(f->x, f->y));
    CALL(sb_matmul_nt(f->v3, f->v3));
    CALL(sb_matmul_nt(NULL, f->x));
    CALL(sb_matmul_nt(f->q, f->kd));
    CALL(sb_matmul_tn(f->x, f->y));
    CALL(sb_matmul_tn(f->v3, f->x));
    CALL(sb_matmul_tn(f->x, NULL));
    CALL(sb_linear(NULL, f->y, NULL));
    CALL(sb_linear(f->x, NULL, NULL));
    CALL(sb_linear(f->x, f->y, NULL));
    CALL(sb_linear(f->x, f->v3, NULL));
    CALL(sb_linear(f->s, f->x, NULL));
    CALL(sb_linear(f->x, f->x, f->v3));
    CALL(sb_linear(f->x, f->x, f->s));
    CALL(sb_linear(f->x, f->d, NULL));
    CALL(sb_linear(f->b, f->x, NULL));
    CALL(sb_linear_activation(f->x, f->x, NULL, (sb_activation)99));
    CALL(sb_linear_activation(f->x, f->x, NULL, (sb_activation)-1));
    CALL(sb_matmul(zeros(SB_F32, SB_SHAPE(32, 10, 64)), zeros(SB_F32, SB_SHAPE(32, 48, 10))));
    CALL(sb_matmul(zeros(SB_F32, SB_SHAPE(2, 5, 3)), zeros(SB_F32, SB_SHAPE(4, 3, 5))));
    CALL(sb_matmul(f->x, f->s));
    CALL(sb_matmul(f->x, zeros(SB_I32, SB_SHAPE(3, 2))));
    CALL(sb_matmul(f->b, f->y));
    CALL(sb_linear(f->x, f->x, zeros(SB_F32, SB_SHAPE(1, 2))));
    CALL(sb_linear(zeros(SB_I32, SB_SHAPE(5, 3)), f->x, NULL));
    CALL(sb_linear(f->x, f->x, zeros(SB_BOOL, SB_SHAPE(2))));
    CALL(sb_linear_activation(f->x, f->x, NULL, (sb_activation)7));
}

static void bad_shapes(struct errors *f)
{
    CALL(sb_reshape(NULL, SB_SHAPE(6)));
    CALL(sb_reshape(f->x, SB_SHAPE(7)));
    CALL(sb_reshape(f->x, SB_SHAPE(-1, -1)));
    CALL(sb_reshape(f->x, SB_SHAPE(-1, 4)));
    CALL(sb_reshape(f->x, SB_SHAPE(-2, 3)));
    CALL(sb_reshape(f->x, 2, NULL));
    CALL(sb_reshape(f->x, 9, (const int64_t[9]){0}));
    CALL(sb_reshape(f->e, SB_SHAPE(-1, 0)));
    CALL(sb_permute(NULL, 2, (const int[]){0, 1}));
    CALL(sb_permute(f->x, 2, NULL));
    CALL(sb_permute(f->x, 2, (const int[]){0, 0}));
    CALL(sb_permute(f->x, 2, (const int[]){0, 2}));
    CALL(sb_permute(f->x, 2, (const int[]){-1, 1}));
    CALL(sb_permute(f->x, 3, (const int[]){0, 1, 2}));
    CALL(sb_transpose(NULL, 0, 1));
    CALL(sb_transpose(f->x, 0, 2));
    CALL(sb_transpose(f->x, -3, 0));
    CALL(sb_concatenate(NULL, 2, 0));
    CALL(sb_concatenate((sb_tensor *[]){f->x}, 0, 0));
    CALL(sb_concatenate((sb_tensor *[]){f->x, f->y}, 2, 0));
    CALL(sb_concatenate((sb_tensor *[]){f->x, f->x}, 2, 2));
    CALL(sb_concatenate((sb_tensor *[]){f->x, NULL}, 2, 0));
    CALL(sb_concatenate((sb_tensor *[]){f->x, f->d}, 2, 0));
    CALL(sb_concatenate((sb_tensor *[]){f->x, f->v3}, 2, 0));
    CALL(sb_concatenate((sb_tensor *[]){f->s, f->s}, 2, 0));
    CALL(sb_stack(NULL, 1, 0));
    CALL(sb_stack((sb_tensor *[]){f->x}, -1, 0));
    CALL(sb_stack((sb_tensor *[]){f->x, f->y}, 2, 0));
    CALL(sb_stack((sb_tensor *[]){f->x, NULL}, 2, 0));
    CALL(sb_stack((sb_tensor *[]){f->x, f->x}, 2, 3));
    CALL(sb_stack((sb_tensor *[]){f->x, f->d}, 2, 0));
    CALL(sb_reshape(f->x, SB_SHAPE(4)));
    CALL(sb_reshape(f->x, SB_SHAPE(4, -1)));
    CALL(sb_reshape(f->x, SB_SHAPE(0, -1)));
    CALL(sb_reshape(f->x, SB_SHAPE(-2, -3)));
    CALL(sb_reshape(f->x, SB_SHAPE(1L << 40, 1L << 40)));
    CALL(sb_reshape(f->x, 7, (const int64_t[]){1, 1, 1, 1, 1, 2, 3}));
    CALL(sb_reshape(f->x, -1, NULL));
    CALL(sb_permute(f->x, 2, (const int[]){-3, 0}));
    CALL(sb_permute(f->x, 1, (const int[]){0}));
    CALL(sb_transpose(f->x, 0, -3));
    CALL(sb_concatenate((sb_tensor *[]){f->x, zeros(SB_F32, SB_SHAPE(2, 4))}, 2, 0));
    CALL(sb_concatenate((sb_tensor *[]){f->x, zeros(SB_F32, SB_SHAPE(2, 3, 1))}, 2, 0));
    CALL(sb_concatenate((sb_tensor *[]){f->x, zeros(SB_I32, SB_SHAPE(2, 3))}, 2, 0));
    CALL(sb_stack((sb_tensor *[]){f->x, zeros(SB_F32, SB_SHAPE(3, 2))}, 2, 0));
    CALL(sb_stack((sb_tensor *[]){zeros(SB_F32, SB_SHAPE(1, 1, 1, 1, 1, 1))}, 1, 0));
}

static void bad_parts(struct errors *f)
{
    CALL(sb_slice(NULL, 0, 0, 1));
    CALL(sb_slice(f->x, 2, 0, 1));
    CALL(sb_slice(f->x, 0, 1, 2));
    CALL(sb_slice(f->x, 0, -1, 1));
    CALL(sb_slice(f->x, 1, 0, -1));
    CALL(sb_slice(f->x, 1, INT64_MAX, INT64_MAX));
    CALL(sb_slice(f->s, 0, 0, 1));
    CALL(sb_split(NULL, 0, 2, (const int64_t[]){1, 1}, (sb_tensor *[2]){0}));
    CALL(sb_split(f->x, 0, 2, (const int64_t[]){1, 2}, (sb_tensor *[2]){0}));
    CALL(sb_split(f->x, 0, 2, NULL, (sb_tensor *[2]){0}));
    CALL(sb_split(f->x, 0, 2, (const int64_t[]){1, 1}, NULL));
    CALL(sb_split(f->x, 0, 0, (const int64_t[]){1, 1}, (sb_tensor *[2]){0}));
    CALL(sb_split(f->x, 5, 2, (const int64_t[]){1, 1}, (sb_tensor *[2]){0}));
    CALL(sb_split(f->x, 0, 2, (const int64_t[]){3, -1}, (sb_tensor *[2]){0}));
    CALL(sb_expand(NULL, SB_SHAPE(2, 3)));
    CALL(sb_expand(f->x, SB_SHAPE(3, 3)));
    CALL(sb_expand(f->x, SB_SHAPE(3)));
    CALL(sb_expand(f->x, 3, NULL));
    CALL(sb_expand(f->x, SB_SHAPE(-1, 2, 3)));
    CALL(sb_expand(f->v3, SB_SHAPE(1L << 40, 1L << 40, 3)));
    CALL(sb_slice(f->x, 1, 2, 2));
    CALL(sb_slice(f->x, 1, -1, 1));
    CALL(sb_slice(f->x, 0, 0, -1));
    CALL(sb_slice(f->x, 0, INT64_MAX, INT64_MAX));
    CALL(sb_split(f->x, 1, 2, (const int64_t[]){1, 1}, (sb_tensor *[2]){0}));
    CALL(sb_split(f->x, 1, 2, (const int64_t[]){2, 2}, (sb_tensor *[2]){0}));
    CALL(sb_split(f->x, 1, 2, (const int64_t[]){4, -1}, (sb_tensor *[2]){0}));
    CALL(sb_split(f->x, 1, 2, (const int64_t[]){-1, 4}, (sb_tensor *[2]){0}));
    CALL(sb_split(f->x, -3, 1, (const int64_t[]){2}, (sb_tensor *[2]){0}));
    CALL(sb_expand(zeros(SB_F32, SB_SHAPE(1, 3)), SB_SHAPE(2, 4)));
    CALL(sb_expand(zeros(SB_F32, SB_SHAPE(1, 3)), SB_SHAPE(2, 1)));
    CALL(sb_expand(zeros(SB_F32, SB_SHAPE(1, 3)), 7, (const int64_t[]){1, 1, 1, 1, 1, 1, 3}));
}

static void bad_reductions(struct errors *f)
{
    CALL(sb_sum(NULL, 0, false));
    CALL(sb_sum(f->x, 2, false));
    CALL(sb_sum(f->x, -3, true));
    CALL(sb_sum(f->i2, 0, false));
    CALL(sb_mean(NULL, 0, false));
    CALL(sb_mean(f->x, 9, false));
    CALL(sb_mean(f->e, 0, false));
    CALL(sb_mean(f->e, SB_ALL, false));
    CALL(sb_max(NULL, 0, false));
    CALL(sb_max(f->e, 0, false));
    CALL(sb_max(f->x, 5, false));
    CALL(sb_max(f->b, 0, false));
    CALL(sb_argmax(NULL, 0));
    CALL(sb_argmax(f->x, 2));
    CALL(sb_argmax(f->e, 0));
    CALL(sb_argmax(f->i2, 0));
    CALL(sb_mean(f->x, -3, false));
    CALL(sb_mean(f->e0, 1, false));
    CALL(sb_mean(f->i2, 0, false));
    CALL(sb_max(f->e, SB_ALL, false));
    CALL(sb_argmax(f->s, 0));
    CALL(sb_argmax(zeros(SB_F32, SB_SHAPE(0, 1L << 31)), 1));
    CALL(sb_softmax_over(f->q, 4));
    CALL(sb_rms_norm_over(NULL, -4, NULL, 0));
}

static void bad_softmax(struct errors *f)
{
    CALL(sb_softmax(NULL));
    CALL(sb_softmax(f->s));
    CALL(sb_softmax(f->i2));
    CALL(sb_log_softmax(NULL));
    CALL(sb_log_softmax(f->s));
    CALL(sb_log_softmax(f->b));
    CALL(sb_logsumexp(NULL));
    CALL(sb_logsumexp(f->s));
    CALL(sb_logsumexp(f->i2));
    CALL(sb_masked_softmax(NULL, sb_mask_causal(), 1));
    CALL(sb_masked_softmax(f->x, NULL, 1));
    CALL(sb_masked_softmax(f->x, sb_mask_causal(), 0));
    CALL(sb_masked_softmax(f->x, sb_mask_causal(), -1));
    CALL(sb_masked_softmax(f->x, sb_mask_causal(), NAN));
    CALL(sb_masked_softmax(f->x, sb_mask_causal(), INFINITY));
    CALL(sb_masked_softmax(f->v3, sb_mask_causal(), 1));
    CALL(sb_masked_softmax(f->x, sb_mask_allow(f->x), 1));
    CALL(sb_masked_softmax(f->y, sb_mask_allow(f->b), 1));
    CALL(sb_masked_softmax(f->x, sb_mask_lengths(f->len9), 1));
    CALL(sb_log_softmax(f->i2));
    CALL(sb_masked_softmax(f->i22, sb_mask_causal(), 1));
    CALL(sb_masked_softmax(f->q, sb_mask_allow(zeros(SB_BOOL, SB_SHAPE(3, 5, 5))), 1));
    CALL(sb_masked_softmax(f->q, sb_mask_lengths(ids(SB_SHAPE(2), (int32_t[]){5, 7})), 1));
    CALL(sb_masked_softmax(f->q, sb_mask_lengths(ids(SB_SHAPE(2), (int32_t[]){-1, 5})), 1));
    CALL(sb_masked_softmax(f->q, sb_mask_lengths(zeros(SB_I32, SB_SHAPE(3))), 1));
}

static void bad_norms(struct errors *f)
{
    sb_tensor *sum;
    CALL(sb_layer_norm(NULL, f->v3, f->v3, 0));
    CALL(sb_layer_norm(f->x, NULL, f->v3, 0));
    CALL(sb_layer_norm(f->x, f->v4, NULL, 0));
    CALL(sb_layer_norm(f->x, f->v3, f->v4, 0));
    CALL(sb_layer_norm(f->s, f->v3, NULL, 0));
    CALL(sb_layer_norm(f->x, f->v3, NULL, -1));
    CALL(sb_layer_norm(f->x, f->v3, NULL, NAN));
    CALL(sb_layer_norm(f->d, f->v3, NULL, 0));
    CALL(sb_layer_norm(f->x, f->x, NULL, 0));
    CALL(sb_residual_layer_norm(f->x, f->y, 0, f->v3, NULL, 0, &(sb_tensor *){0}));
    CALL(sb_residual_layer_norm(f->x, f->x, 0, f->v3, NULL, 0, NULL));
    CALL(sb_residual_layer_norm(NULL, f->x, 0, f->v3, NULL, 0, &(sb_tensor *){0}));
    CALL(sb_residual_layer_norm(f->x, NULL, 0, f->v3, NULL, 0, &(sb_tensor *){0}));
    CALL(sb_residual_layer_norm(f->x, f->x, 0, f->v4, NULL, 0, &(sb_tensor *){0}));
    CALL(sb_residual_layer_norm(f->x, f->x, 1, f->v3, NULL, 0, &(sb_tensor *){0}));
    CALL(sb_rms_norm(NULL, f->v3, 0));
    CALL(sb_rms_norm(f->x, NULL, 0));
    CALL(sb_rms_norm(f->x, f->v4, 0));
    CALL(sb_rms_norm(f->s, f->v3, 0));
    CALL(sb_rms_norm(f->x, f->v3, -1));
    CALL(sb_l2_normalize(NULL));
    CALL(sb_l2_normalize(f->s));
    CALL(sb_l2_normalize(f->i2));
    CALL(sb_layer_norm(f->x, zeros(SB_F32, SB_SHAPE(1, 3)), NULL, 0));
    CALL(sb_layer_norm(f->x, zeros(SB_I32, SB_SHAPE(3)), NULL, 0));
    CALL(sb_layer_norm(f->b, f->v3, NULL, 0));
    CALL(sb_layer_norm(f->x, f->v3, NULL, INFINITY));
    CALL((sum = f->x, sb_residual_layer_norm(f->x, f->v3, 0, f->v3, NULL, 0, &sum)) || sum);
    CALL(sb_rms_norm(f->x, f->v3, NAN));
}

static void bad_lookup(struct errors *f)
{
    CALL(sb_embedding(NULL, f->i2));
    CALL(sb_embedding(f->y, NULL));
    CALL(sb_embedding(f->y, f->i9));
    CALL(sb_embedding(f->y, f->in));
    CALL(sb_embedding(f->y, f->x));
    CALL(sb_embedding(f->v3, f->i2));
    CALL(sb_gather(NULL, f->i2));
    CALL(sb_gather(f->x, NULL));
    CALL(sb_gather(f->x, f->i9));
    CALL(sb_gather(f->x, f->in));
    CALL(sb_gather(f->y, f->i2));
    CALL(sb_gather(f->s, f->i2));
    CALL(sb_gather(f->x, f->v3));
    CALL(sb_embedding_padded(f->y, f->i2, 3));
    CALL(sb_embedding(zeros(SB_F32, SB_SHAPE(2, 3, 4)), f->i2));
    CALL(sb_embedding(f->s, f->i2));
    CALL(sb_embedding(f->i22, f->i2));
    CALL(sb_embedding(f->y, zeros(SB_I32, SB_SHAPE(1, 1, 1, 1, 1, 1))));
    CALL(sb_embedding(f->e, f->i2));
    CALL(sb_gather(f->x, zeros(SB_I32, SB_SHAPE(3))));
    CALL(sb_gather(f->v3, f->i2));
    CALL(sb_gather(f->e0, f->i2));
    CALL(
        sb_gather(zeros(SB_F32, SB_SHAPE(2, 2, 3)), ids(SB_SHAPE(2, 2), (int32_t[]){0, 1, -1, 9})));
    CALL(sb_gather(zeros(SB_F32, SB_SHAPE(2, 2, 3)), ids(SB_SHAPE(2, 2), (int32_t[]){0, 1, 3, 9})));
}

static void bad_noise(struct errors *f)
{
    CALL(sb_dropout(NULL, 0.5));
    CALL(sb_dropout(f->x, 1));
    CALL(sb_dropout(f->x, -0.1));
    CALL(sb_dropout(f->x, NAN));
    CALL(sb_dropout(f->i2, 0.5));
    CALL(sb_residual_dropout(NULL, f->x, 0.5));
    CALL(sb_residual_dropout(f->x, NULL, 0.5));
    CALL(sb_residual_dropout(f->x, f->y, 0.5));
    CALL(sb_residual_dropout(f->x, f->x, 2));
    CALL(sb_residual_dropout(f->x, f->d, 0.5));
    ALONE(sb_dropout(f->x, 0.5));
    CALL(sb_dropout(f->x, 2));
    CALL(sb_dropout(f->x, -INFINITY));
    CALL(sb_dropout(NULL, 0));
    CALL(sb_dropout(f->i2, 0));
    CALL(sb_residual_dropout(f->x, f->x, -0.1));
    CALL(sb_residual_dropout(f->x, f->x, 1));
    CALL(sb_residual_dropout(f->x, f->x, NAN));
    CALL(sb_residual_dropout(f->x, zeros(SB_I32, SB_SHAPE(2, 3)), 0.5));
}

static void bad_losses(struct errors *f)
{
    CALL(sb_cross_entropy(NULL, f->i2, NULL));
    CALL(sb_cross_entropy(f->x, NULL, NULL));
    CALL(sb_cross_entropy(f->x, f->i9, NULL));
    CALL(sb_cross_entropy(f->x, f->in, NULL));
    CALL(sb_cross_entropy(f->x, f->i22, NULL));
    CALL(sb_cross_entropy(f->x, f->y, NULL));
    CALL(sb_cross_entropy(f->x, f->d, NULL));
    CALL(sb_cross_entropy(f->x, f->b, NULL));
    CALL(sb_cross_entropy(f->s, f->i2, NULL));
    CALL(sb_cross_entropy(f->x, f->i2, &(sb_cross_entropy_options){.label_smoothing = 1}));
    CALL(sb_cross_entropy(f->x, f->i2, &(sb_cross_entropy_options){.label_smoothing = NAN}));
    CALL(sb_cross_entropy(f->x, f->i2, &(sb_cross_entropy_options){.class_weight = f->v4}));
    CALL(sb_cross_entropy(f->x, f->i2, &(sb_cross_entropy_options){.reduction = (sb_reduction)9}));
    CALL(sb_linear_cross_entropy(NULL, f->x, NULL, f->i2, NULL));
    CALL(sb_linear_cross_entropy(f->x, NULL, NULL, f->i2, NULL));
    CALL(sb_linear_cross_entropy(f->x, f->x, NULL, NULL, NULL));
    CALL(sb_linear_cross_entropy(f->x, f->y, NULL, f->i2, NULL));
    CALL(sb_linear_cross_entropy(f->x, f->x, f->v3, f->i2, NULL));
    CALL(sb_linear_cross_entropy(f->x, f->x, NULL, f->i9, NULL));
    CALL(sb_linear_cross_entropy(f->x, f->x, NULL, f->in, NULL));
    CALL(sb_linear_cross_entropy(f->x, f->x, NULL, f->i22, NULL));
    CALL(sb_linear_cross_entropy(f->x, f->x, NULL, f->x, NULL));
    CALL(sb_mean_squared_error(NULL, f->x, SB_REDUCE_MEAN));
    CALL(sb_mean_squared_error(f->x, NULL, SB_REDUCE_MEAN));
    CALL(sb_mean_squared_error(f->x, f->y, SB_REDUCE_MEAN));
    CALL(sb_mean_squared_error(f->x, f->d, SB_REDUCE_MEAN));
    CALL(sb_mean_squared_error(f->e, f->e, SB_REDUCE_MEAN));
    CALL(sb_mean_squared_error(f->x, f->x, (sb_reduction)-1));
    CALL(sb_cross_entropy(f->x, zeros(SB_I32, SB_SHAPE(3)), NULL));
    CALL(sb_cross_entropy(f->x, zeros(SB_F32, SB_SHAPE(2)), NULL));
    CALL(sb_cross_entropy(f->x, f->i2, &(sb_cross_entropy_options){.class_weight = f->i2}));
    CALL(sb_cross_entropy(f->x, f->i2,
                          &(sb_cross_entropy_options){.class_weight = zeros(SB_I32, SB_SHAPE(3))}));
    CALL(sb_cross_entropy(f->x, f->i2,
                          &(sb_cross_entropy_options){
                              .class_weight = sb_negate(sb_exp(zeros(SB_F32, SB_SHAPE(3))))}));
    CALL(sb_cross_entropy(f->x, f->i2, &(sb_cross_entropy_options){.label_smoothing = -0.1}));
    CALL(sb_cross_entropy(f->x, f->i2, &(sb_cross_entropy_options){.reduction = (sb_reduction)3}));
    CALL(sb_cross_entropy(f->e, zeros(SB_I32, SB_SHAPE(0)), NULL));
    CALL(sb_cross_entropy(zeros(SB_F32, SB_SHAPE(2, 3, 4)),
                          ids(SB_SHAPE(2, 3), (int32_t[]){0, -7, 3, 1, 4, 9}), NULL));
    CALL(sb_linear_cross_entropy(f->s, f->x, NULL, f->i2, NULL));
    CALL(sb_linear_cross_entropy(f->x, f->v3, NULL, f->i2, NULL));
    CALL(sb_linear_cross_entropy(f->x, f->x, NULL, zeros(SB_I32, SB_SHAPE(3)), NULL));
    CALL(sb_linear_cross_entropy(f->e, f->x, NULL, zeros(SB_I32, SB_SHAPE(0)), NULL));
    CALL(sb_mean_squared_error(f->v3, zeros(SB_F32, SB_SHAPE(1, 3)), SB_REDUCE_MEAN));
    CALL(sb_mean_squared_error(f->b, f->b, SB_REDUCE_MEAN));
    CALL(sb_mean_squared_error(f->x, f->x, (sb_reduction)7));
}

CPU_TEST(errors, each_bad_call_of_an_operation_gives_its_message)
{
    struct errors f;
    errors_open(&f, "errors_of_operations");
    bad_arithmetic(&f);
    bad_elementwise(&f);
    bad_products(&f);
    bad_shapes(&f);
    bad_parts(&f);
    bad_reductions(&f);
    bad_softmax(&f);
    bad_norms(&f);
    bad_lookup(&f);
    bad_noise(&f);
    bad_losses(&f);
    errors_close(&f);
}
