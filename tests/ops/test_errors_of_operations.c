/* The message of each bad call of an operation. */
#include "tests/support/errors.h"
#include "tests/support/test.h"

/*
 * Bad calls of every operation, and the message of each: golden/errors_of_operations.txt. The
 * driver is tests/support/errors.h.
 */

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

/* Bad calls of attention, its masks and its biases: golden/errors_of_attention.txt. */

#define ATTEND(...) sb_attention(f->q, f->k, f->k, &(sb_attention_options){__VA_ARGS__})

static void bad_masks(struct errors *f)
{
    CALL(sb_mask_allow(NULL));
    CALL(sb_mask_allow(f->x));
    CALL(sb_mask_block(NULL));
    CALL(sb_mask_block(f->i2));
    CALL(sb_mask_lengths(NULL));
    CALL(sb_mask_lengths(f->x));
    CALL(sb_mask_lengths(f->i22));
    CALL(sb_mask_window(-1, 0));
    CALL(sb_mask_window(0, -5));
    CALL(sb_mask_and(NULL, sb_mask_causal()));
    CALL(sb_mask_and(sb_mask_causal(), NULL));
    CALL(sb_mask_and(sb_mask_causal(), sb_mask_window(-1, 2)));
    CALL(sb_mask_text(NULL, 0, 0, 2, 2));
    CALL(sb_mask_text(sb_mask_causal(), 0, 0, -1, 2));
    CALL(sb_mask_text(sb_mask_lengths(f->len), 5, 0, 7, 7));
    CALL(sb_mask_block(zeros(SB_BOOL, SB_SHAPE(1, 1, 1, 1, 2))));
    CALL(sb_mask_text(sb_mask_lengths(f->len), 2, 0, 1, 1));
    CALL(sb_mask_text(sb_mask_allow(zeros(SB_BOOL, SB_SHAPE(3, 5, 5))), 0, 3, 1, 1));
    CALL(sb_mask_from_bias(NULL));
    CALL(sb_mask_from_bias(f->i2));
    CALL(sb_mask_blocks(NULL, 2));
    CALL(sb_mask_blocks(f->b, 0));
    CALL(sb_mask_local(6, 0, 2, 1));
    CALL(sb_mask_local(6, 6, 2, -1));
    CALL(sb_mask_strided(6, 6, 2, 0, 0));
    CALL(sb_mask_global(6, 6, 2, 0, -3));
    CALL(sb_mask_block_list(6, 6, 2, 1, (const int64_t[][2]){{1, 3}}));
    CALL(sb_mask_block_list(6, 6, 2, 1, NULL));
    CALL(sb_masked_softmax(f->q, sb_mask_blocks(zeros(SB_BOOL, SB_SHAPE(3, 4)), 2), 1));
}

static void bad_positions(struct errors *f)
{
    CALL(sb_sinusoidal(SB_F32, 0, 4, 3));
    CALL(sb_sinusoidal(SB_F32, -1, 4, 6));
    CALL(sb_sinusoidal(SB_F32, 0, -4, 6));
    CALL(sb_sinusoidal(SB_I32, 0, 4, 6));
    CALL(sb_sinusoidal(SB_F32, 0, 4, 0));
    CALL(sb_sinusoidal(SB_F32, INT64_MAX, 1, 2));
    CALL(sb_rotary(NULL, 0, 0));
    CALL(sb_rotary(f->x, 0, 0));
    CALL(sb_rotary(f->kd, 0, 0));
    CALL(sb_rotary(f->q, -1, 0));
    CALL(sb_rotary(f->q, 0, -3));
    CALL(sb_rotary(f->q, INT64_MAX - 4, 0));
    CALL(sb_rotary(f->q, 0, NAN));
    CALL(sb_alibi(SB_F32, 0, 3, 3));
    CALL(sb_alibi(SB_BOOL, 2, 3, 3));
    CALL(sb_alibi(SB_F32, 2, -1, 3));
    CALL(sb_relative_bias(NULL, 3, 3));
    CALL(sb_relative_bias(f->y, 3, 3));
    CALL(sb_relative_bias(f->v3, 3, 3));
    CALL(sb_relative_bias(f->x, -1, 3));
    ALONE(sb_sinusoidal(SB_F32, 0, 1, 4));
    CALL(sb_sinusoidal(SB_F32, 0, -2, 4));
    CALL(sb_rotary(f->i22, 0, 0));
    CALL(sb_rotary(zeros(SB_F32, SB_SHAPE(2, 3, 4)), 0, 0));
    CALL(sb_rotary(f->q, 0, -1));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.scaling = -2}));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.scaling = NAN}));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.original = -1}));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.low_factor = 4}));
    CALL(sb_relative_bias(f->i22, 1, 1));
    CALL(sb_relative_bias(zeros(SB_F32, SB_SHAPE(2, 4)), 1, 1));
    CALL(sb_relative_bias(zeros(SB_F32, SB_SHAPE(2, 3, 4)), 1, 1));
    CALL(sb_relative_bias(f->x, 1, -1));
}

static void bad_attention(struct errors *f)
{
    CALL(sb_attention(NULL, f->k, f->k, NULL));
    CALL(sb_attention(f->q, NULL, f->k, NULL));
    CALL(sb_attention(f->q, f->k, NULL, NULL));
    CALL(sb_attention(f->q, f->k3, f->k3, NULL));
    CALL(sb_attention(f->q, f->kd, f->k, NULL));
    CALL(sb_attention(f->q, f->kb, f->kb, NULL));
    CALL(sb_attention(f->q, f->k, f->kl, NULL));
    CALL(sb_attention(f->q, f->k, f->k3, NULL));
    CALL(sb_attention(f->x, f->k, f->k, NULL));
    CALL(sb_attention(f->v3, f->v3, f->v3, NULL));
    CALL(sb_attention(f->d, f->x, f->x, NULL));
    CALL(ATTEND(.dropout = 1));
    CALL(ATTEND(.dropout = -1));
    CALL(ATTEND(.temperature = -1));
    CALL(ATTEND(.temperature = NAN));
    CALL(ATTEND(.scale = NAN));
    CALL(ATTEND(.scale = INFINITY));
    CALL(ATTEND(.score = (sb_score)9));
    CALL(ATTEND(.layout = (sb_layout)9));
    CALL(ATTEND(.bias = f->x));
    CALL(ATTEND(.bias = f->d));
    CALL(ATTEND(.log_temperature = f->x));
    CALL(ATTEND(.log_temperature = f->s, .temperature = 2));
    CALL(ATTEND(.mask = sb_mask_allow(f->b)));
    CALL(ATTEND(.mask = sb_mask_lengths(f->len9)));
    CALL(ATTEND(.mask = sb_mask_allow(NULL)));
    CALL(ATTEND(.bias = sb_softmax(f->s)));
    ALONE(sb_attention(f->q, f->k, f->k, NULL));
    CALL(sb_attention(f->x, zeros(SB_I32, SB_SHAPE(2, 3)), f->x, NULL));
    CALL(sb_attention(f->v4, f->v4, f->v4, NULL));
    CALL(sb_attention(f->x, f->x, zeros(SB_F32, SB_SHAPE(1, 1, 1, 2, 3)), NULL));
    CALL(sb_attention(f->x, zeros(SB_F32, SB_SHAPE(1, 2, 3)), f->x, NULL));
    CALL(sb_attention(f->x, f->y, f->y, NULL));
    CALL(sb_attention(f->e0, f->e0, f->x, NULL));
    CALL(sb_attention(f->q, zeros(SB_F32, SB_SHAPE(2, 7, 0, 6)),
                      zeros(SB_F32, SB_SHAPE(2, 7, 0, 6)), NULL));
    CALL(sb_attention(f->q, f->k, f->kb, NULL));
    CALL(sb_attention(f->x, f->x, f->v3, NULL));
    CALL(sb_attention(zeros(SB_F32, SB_SHAPE(2, 3, 4)), zeros(SB_F32, SB_SHAPE(3, 3, 4)),
                      zeros(SB_F32, SB_SHAPE(3, 3, 4)), NULL));
    CALL(sb_attention(f->x, f->x, zeros(SB_F32, SB_SHAPE(5, 3)), NULL));
    CALL(sb_attention(f->d, f->d, f->x, NULL));
    CALL(ATTEND(.layout = SB_LAYOUT_HEADS_FIRST));
    CALL(ATTEND(.softcap = -1));
    CALL(ATTEND(.softcap = INFINITY));
    CALL(ATTEND(.softcap = 1, .algorithm = SB_ATTENTION_TILED));
    CALL(ATTEND(.bias = sb_alibi(SB_F32, 0, 2, 2)));
    CALL(ATTEND(.bias = sb_relative_bias(f->y, 2, 2)));
    CALL(ATTEND(.bias = zeros(SB_F32, SB_SHAPE(-1))));
    CALL(ATTEND(.scale = -1));
    CALL(ATTEND(.temperature = INFINITY));
    CALL(ATTEND(.dropout = NAN));
    CALL(ATTEND(.log_temperature = zeros(SB_F32, SB_SHAPE(3))));
    CALL(ATTEND(.bias = zeros(SB_F32, SB_SHAPE(4, 3, 2))));
    CALL(ATTEND(.bias = zeros(SB_F32, SB_SHAPE(1, 1, 1, 1, 1))));
    CALL(ATTEND(.bias = zeros(SB_I32, SB_SCALAR)));
    CALL(ATTEND(.bias = zeros(SB_F64, SB_SCALAR)));
}

static void bad_attention_weights(struct errors *f)
{
    sb_tensor *weights;
    sb_attention_options composed = {.algorithm = SB_ATTENTION_COMPOSED},
                         tiled = {.algorithm = SB_ATTENTION_TILED};
    CALL(ATTEND(.algorithm = (sb_attention_algorithm)9));
    CALL(ATTEND(.algorithm = SB_ATTENTION_TILED, .weights = &weights));
    CALL(sb_attention_weights(NULL, 0, 1));
    CALL(sb_attention_weights(f->x, 0, 1));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &composed), 0, 1));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &tiled), 3, 3));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &tiled), -1, 1));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &tiled), 0, 0));
    ALONE(sb_kv_cache_append(NULL, f->k, f->k));
    CALL(sb_attention_cached(f->q, NULL, NULL));
    CALL((weights = f->x,
          ATTEND(.weights = &weights, .mask = sb_mask_block(zeros(SB_BOOL, SB_SHAPE(3, 4))))) ||
         weights);
    CALL((weights = f->x, ATTEND(.weights = &weights, .bias = f->d)) || weights);
    CALL((weights = f->x, ATTEND(.weights = &weights, .mask = sb_mask_lengths(f->len9))) ||
         weights);
}

CPU_TEST(errors, each_bad_call_of_attention_gives_its_message)
{
    struct errors f;
    errors_open(&f, "errors_of_attention");
    bad_masks(&f);
    bad_positions(&f);
    bad_attention(&f);
    bad_attention_weights(&f);
    errors_close(&f);
}
