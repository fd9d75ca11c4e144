/*
 * Some three hundred bad calls, and the message of each one.
 *
 * The messages are in golden/errors.txt, as a caller reads them. Each call runs on a separate tape,
 * with arguments that all calls share: a call that damages one makes later calls fail.
 * SOFTBACK_GOLDEN=write rewrites the file.
 */
#include "tests/support/errors.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdint.h>

/* A call without a tape, on a recording one, and on one whose backward has freed a tensor. */
#define ALONE(...) MAKE(NO_TAPE, #__VA_ARGS__, __VA_ARGS__)
#define CALL(...) MAKE(RECORDING, #__VA_ARGS__, __VA_ARGS__)
#define FREED(...) MAKE(AFTER_BACKWARD, #__VA_ARGS__, __VA_ARGS__)
#define MAKE(tape, text, ...) errors_check(f, errors_begin(f, text, tape) && (__VA_ARGS__))

static void bad_tensors(struct errors *f)
{
    ALONE(sb_tensor_zeros(SB_F32, -1, NULL));
    ALONE(sb_tensor_zeros(SB_F32, 7, (const int64_t[]){1, 1, 1, 1, 1, 1, 1}));
    ALONE(sb_tensor_zeros(SB_F32, 2, NULL));
    ALONE(sb_tensor_zeros(SB_F32, SB_SHAPE(2, -3)));
    ALONE(sb_tensor_zeros(SB_F32, SB_SHAPE(INT64_MAX, 2)));
    ALONE(sb_tensor_zeros(SB_F32, SB_SHAPE(1 << 30, 1 << 30)));
    ALONE(sb_tensor_zeros(SB_F64, SB_SHAPE(1 << 20, 1 << 20, 1 << 15)));
    ALONE(sb_tensor_zeros((sb_dtype)99, SB_SHAPE(2)));
    ALONE(sb_tensor_full((sb_dtype)-1, SB_SHAPE(2), 1));
    ALONE(sb_tensor_from(SB_F32, SB_SHAPE(2), NULL));
    ALONE(sb_tensor_from_doubles(SB_F32, SB_SHAPE(2), NULL));
    ALONE(sb_tensor_from(SB_F32, SB_SHAPE(-2), f));
    ALONE(sb_tensor_scalar((sb_dtype)7, 1));
    ALONE(sb_tensor_data(NULL));
    ALONE(sb_tensor_set(f->x, -1, 0));
    ALONE(sb_tensor_set(f->x, 6, 0));
    ALONE(sb_tensor_set(NULL, 0, 0));
    ALONE(!isnan(sb_tensor_get(f->x, 6)));
    ALONE(!isnan(sb_tensor_get(f->e, 0)));
    ALONE(!isnan(sb_tensor_get(NULL, 0)));
    ALONE(!isnan(sb_tensor_value(f->x)));
    ALONE(!isnan(sb_tensor_value(NULL)));
    ALONE(!isnan(sb_tensor_value(f->e)));
    ALONE(sb_tensor_read(NULL, (double[]){0}));
    ALONE(sb_tensor_read(f->x, NULL));
    ALONE(sb_tensor_write(f->x, NULL));
    ALONE(sb_tensor_write(NULL, (double[]){0}));
    ALONE(sb_tensor_requires_grad(NULL));
    ALONE(sb_tensor_requires_grad(f->i2));
    ALONE(sb_tensor_requires_grad(f->b));
    ALONE(sb_tensor_text(NULL));
    ALONE(sb_set_threads(0));
    ALONE(sb_set_threads(100000));
}

static void bad_tapes(struct errors *f)
{
    ALONE(sb_softmax(f->x));
    ALONE(sb_add(f->x, f->x));
    ALONE(sb_tape_own(NULL));
    ALONE(sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2))));
    ALONE(sb_keep(NULL));
    ALONE(sb_backward(f->s));
    ALONE(sb_backward(NULL));
    ALONE(sb_tape_end(&(sb_tape){0}));
    ALONE(sb_tape_end(NULL));
    ALONE(sb_mask_causal());
    ALONE(sb_sinusoidal(SB_F32, 0, 4, 6));
    CALL(sb_backward(NULL));
    CALL(sb_backward(f->x));
    CALL(sb_backward(f->s));
    CALL(sb_backward(sb_sum(f->b, SB_ALL, false)));
    CALL(sb_backward(sb_tanh(f->x)));
    CALL(sb_backward_from(f->x, NULL));
    CALL(sb_backward_from(NULL, f->x));
    CALL(sb_backward_from(sb_tanh(f->x), f->y));
    CALL(sb_backward_from(sb_tanh(f->x), f->d));
    CALL(sb_backward(sb_detach(sb_sum(f->x, SB_ALL, false))));
    CALL(sb_tensor_requires_grad(sb_tanh(f->x)));
    FREED(sb_backward(sb_sum(f->x, SB_ALL, false)));
    FREED(sb_keep(f->freed));
    FREED(sb_softmax(f->freed));
    FREED(sb_add(f->x, f->freed));
    FREED(sb_tensor_data(f->freed));
    FREED(!isnan(sb_tensor_get(f->freed, 0)));
    FREED(sb_tensor_read(f->freed, (double[6]){0}));
    FREED(sb_tensor_text(f->freed));
    FREED(sb_reshape(f->freed, SB_SHAPE(6)));
}

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
}

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
}

static void bad_norms(struct errors *f)
{
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
}

static void bad_positions(struct errors *f)
{
    CALL(sb_sinusoidal(SB_F32, 0, 4, 3));
    CALL(sb_sinusoidal(SB_F32, -1, 4, 6));
    CALL(sb_sinusoidal(SB_F32, 0, -4, 6));
    CALL(sb_sinusoidal(SB_I32, 0, 4, 6));
    CALL(sb_sinusoidal(SB_F32, 0, 4, 0));
    CALL(sb_rotary(NULL, 0, 0));
    CALL(sb_rotary(f->x, 0, 0));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.scaling = -2}));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.scaling = NAN}));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.original = -1}));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.low_factor = 4}));
    CALL(sb_alibi(SB_F32, 0, 3, 3));
    CALL(sb_alibi(SB_BOOL, 2, 3, 3));
    CALL(sb_alibi(SB_F32, 2, -1, 3));
    CALL(sb_relative_bias(NULL, 3, 3));
    CALL(sb_relative_bias(f->y, 3, 3));
    CALL(sb_relative_bias(f->v3, 3, 3));
    CALL(sb_relative_bias(f->x, -1, 3));
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
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.dropout = 1}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.dropout = -1}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.temperature = -1}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.temperature = NAN}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.scale = NAN}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.scale = INFINITY}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.score = (sb_score)9}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.layout = (sb_layout)9}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.bias = f->x}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.bias = f->d}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.log_temperature = f->x}));
    CALL(sb_attention(f->q, f->k, f->k,
                      &(sb_attention_options){.log_temperature = f->s, .temperature = 2}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.mask = sb_mask_allow(f->b)}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.mask = sb_mask_lengths(f->len9)}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.mask = sb_mask_allow(NULL)}));
    CALL(sb_attention(f->q, f->k, f->k, &(sb_attention_options){.bias = sb_softmax(f->s)}));
}

static void bad_attention_weights(struct errors *f)
{
    sb_tensor *weights;
    sb_attention_options composed = {.algorithm = SB_ATTENTION_COMPOSED},
                         tiled = {.algorithm = SB_ATTENTION_TILED};
    CALL(sb_attention(f->q, f->k, f->k,
                      &(sb_attention_options){.algorithm = (sb_attention_algorithm)9}));
    CALL(sb_attention(
        f->q, f->k, f->k,
        &(sb_attention_options){.algorithm = SB_ATTENTION_TILED, .weights = &weights}));
    CALL(sb_attention_weights(NULL, 0, 1));
    CALL(sb_attention_weights(f->x, 0, 1));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &composed), 0, 1));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &tiled), 3, 3));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &tiled), -1, 1));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &tiled), 0, 0));
    ALONE(sb_kv_cache_append(NULL, f->k, f->k));
    CALL(sb_attention_cached(f->q, NULL, NULL));
}

static void bad_layers(struct errors *f)
{
    ALONE(sb_parameters_of(SB_I32, 1));
    ALONE(sb_parameters_add(NULL, "a", SB_SHAPE(2), (sb_initial){0}));
    ALONE(sb_parameters_add(f->set, NULL, SB_SHAPE(2), (sb_initial){0}));
    ALONE(sb_parameters_add(f->set, "", SB_SHAPE(2), (sb_initial){0}));
    ALONE(sb_parameters_add(f->set, "w", SB_SHAPE(2), (sb_initial){0}));
    ALONE(sb_parameters_add(f->set, "a", SB_SHAPE(-2), (sb_initial){0}));
    ALONE(sb_parameters_add(f->set, "a", SB_SHAPE(2), (sb_initial){(sb_initial_kind)9, 0}));
    ALONE(sb_parameters_add(f->set, "a", SB_SHAPE(2), (sb_initial){SB_INITIAL_NORMAL, NAN}));
    ALONE(sb_parameters_vector(NULL, NULL));
    ALONE(sb_parameters_hvp(NULL, NULL, NULL, f->set));
    ALONE(sb_parameters_hvp(f->set, NULL, NULL, NULL));
    ALONE(sb_parameters_hvp(f->set, NULL, NULL, f->set));
    ALONE(sb_encoder_new(NULL, "e", 9, NULL));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.width = -1}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.width = 10, .heads = 3}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.heads = 4, .key_heads = 3}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.dropout = 1}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.dropout = NAN}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.encoder_layers = 5000}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.positions = (sb_positions)77}));
    ALONE(sb_encoder_new(f->set, "e", 9,
                         &(sb_transformer_options){.width = 12, .positions = SB_POSITIONS_ROTARY}));
}

static void bad_optimisers(struct errors *f)
{
    ALONE(sb_adam_new(NULL, NULL));
    ALONE(sb_adam_new(f->set, &(sb_optimiser_options){.beta1 = 1}));
    ALONE(sb_adam_new(f->set, &(sb_optimiser_options){.beta2 = NAN}));
    ALONE(sb_adam_new(f->set, &(sb_optimiser_options){.epsilon = -1}));
    ALONE(sb_adamw_new(f->set, &(sb_optimiser_options){.weight_decay = -1}));
    ALONE(sb_sgd_new(f->set, &(sb_optimiser_options){.momentum = 1}));
    ALONE(sb_sgd_new(f->set, &(sb_optimiser_options){.learning_rate = NAN}));
    ALONE(sb_sgd_new(f->set,
                     &(sb_optimiser_options){.schedule = {.kind = SB_SCHEDULE_COSINE, .rate = 1}}));
    ALONE(sb_optimiser_step(NULL));
    ALONE(sb_parameters_freeze(f->set, "x.*", true));
    ALONE(sb_lora_freeze(f->set));
    ALONE(sb_average_new(NULL, 0.9));
    ALONE(sb_average_new(f->set, 1));
    ALONE(sb_average_new(f->set, NAN));
    ALONE(sb_average_update(NULL));
}

static void bad_models(struct errors *f)
{
    ALONE(sb_data_task("rewind", 1));
    ALONE(sb_data_task(NULL, 1));
    ALONE(sb_data_next(NULL));
    ALONE(sb_data_new(NULL, NULL, NULL, NULL));
    ALONE(sb_seq2seq_new(NULL, NULL, NULL));
    ALONE(sb_seq2seq_new(f->set, NULL, NULL));
    ALONE(sb_seq2seq_for(f->set, NULL, NULL, NULL));
    ALONE(sb_seq2seq_new(f->set, sb_data_task("rewind", 1), NULL));
    ALONE(sb_adam_new(sb_parameters_of(SB_BOOL, 1), NULL));
    ALONE(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(2, -3))));
    ALONE(sb_seq2seq_loss(NULL, NULL));
    ALONE(sb_seq2seq_save(NULL, "model.safetensors"));
    ALONE(sb_seq2seq_load(NULL, "model.safetensors"));
    ALONE(sb_seq2seq_load(f->set, NULL));
    ALONE(sb_seq2seq_load(f->set, "model.safetensors"));
    ALONE(sb_trainer_new(NULL, NULL, NULL));
    ALONE(sb_trainer_step(NULL, NULL));
    ALONE(sb_pairs_read("no/such/file.tsv", NULL));
    ALONE(sb_pairs_parse("pairs.tsv", "", 0, NULL));
    ALONE(sb_pairs_parse("pairs.tsv", "no tab\n", 7, NULL));
    ALONE(sb_vocabulary_new(NULL, 0, NULL));
    ALONE(sb_vocabulary_encode(NULL, "a", &(int64_t){0}, NULL));
    ALONE(sb_safetensors_open("no/such/file.safetensors"));
    ALONE(sb_safetensors_open(NULL));
    ALONE(sb_gradcheck(NULL, NULL, &f->d, 1, NULL, NULL));
}

static void bad_kinds(struct errors *f)
{
    const sb_model_kind kind = {.name = "mine"};
    const sb_model model = {&kind, f, f->set};
    const sb_source source = {.object = f};
    sb_model other;
    sb_evaluation evaluation;
    ALONE(sb_model_kind_find("diffusion"));
    ALONE(sb_description_new(NULL));
    ALONE(sb_description_set(NULL, "width", "8"));
    ALONE(sb_description_vocabulary(NULL, "source"));
    ALONE(sb_model_build(&other, NULL, f->set, NULL));
    ALONE(sb_model_save(NULL, "model.safetensors"));
    ALONE(sb_model_load(&other, NULL, f->set, "model.safetensors"));
    ALONE(sb_batch_get(&(sb_batch){.parts = 0}, "source"));
    ALONE(sb_batch_get(&(sb_batch){.parts = 9}, "source"));
    ALONE(sb_trainer_for(NULL, NULL, NULL));
    ALONE(sb_trainer_for(&model, &source, NULL));
    ALONE(sb_checkpoint_save(NULL, "model.safetensors"));
    ALONE(sb_checkpoint_resume(NULL, "model.safetensors"));
    ALONE(sb_evaluate(NULL, &source, NULL, NULL, &evaluation));
}

CPU_TEST(errors, each_bad_call_gives_its_message)
{
    struct errors f;
    errors_open(&f);
    bad_tensors(&f);
    bad_tapes(&f);
    bad_arithmetic(&f);
    bad_elementwise(&f);
    bad_products(&f);
    bad_shapes(&f);
    bad_parts(&f);
    bad_reductions(&f);
    bad_softmax(&f);
    bad_masks(&f);
    bad_norms(&f);
    bad_lookup(&f);
    bad_noise(&f);
    bad_losses(&f);
    bad_positions(&f);
    bad_attention(&f);
    bad_attention_weights(&f);
    bad_layers(&f);
    bad_optimisers(&f);
    bad_models(&f);
    bad_kinds(&f);
    cr_expect(f.count >= 300, "only %d bad calls", f.count);
    sb_tape tape; /* the arguments are unchanged */
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(sb_backward(sb_sum(sb_matmul(f.x, f.y), SB_ALL, false)), "%s", sb_error());
    sb_tape_end(&tape);
    errors_close(&f);
}
