/*
 * All operations: their shapes, the formulas of their backward passes, and their sources.
 *
 * Unless stated otherwise, the arguments of an operation are tensors of one real dtype (f32, f64 or
 * bf16) on one device, and gradients flow to all of them. The open tape owns the result. Axes may
 * be negative: -1 is the last axis. A dimension may be 0 where the result is defined.
 *
 * An operation that fails returns NULL and leaves a message in sb_error(). It fails when no tape is
 * open or the open tape has failed, when an argument is NULL or backward has freed its data, when
 * dtypes or devices differ, and when memory runs out. "Fails" lists further causes.
 *
 * On tapes that do not record, the bits of a sequence's result do not depend on its batch: always
 * on the CPU, and on a GPU in decoding (batch_invariant of sb_context).
 *
 * Gradients add up in the dtype of their tensor, one term after the other: the sum of equal terms
 * stops growing at 256 of them in bf16, and at 2^24 in f32. A tensor that is used more often is f32
 * or f64, and its casts are used.
 *
 * In option structs zero is the default, and a NULL pointer stands for all defaults. Where a number
 * has a default that is not 0, SB_ZERO is the number 0 itself (tensor/option.h).
 */
#ifndef SOFTBACK_OPS_OPS_H
#define SOFTBACK_OPS_OPS_H

#include "../tensor/communicator.h"
#include "../tensor/option.h"
#include "../tensor/random.h"
#include "../tensor/tensor.h"
#include "context.h"
#include "mask.h"

/* ---- Arithmetic. Shapes broadcast as in NumPy; gradients are summed over broadcast axes. ---- */

/*
 * Elementwise arithmetic of two tensors.
 *
 * Shape     a, b broadcastable to each other -> y of the common shape
 * Backward  add:      da = dy          db = dy
 *           subtract: da = dy          db = -dy
 *           multiply: da = dy b        db = dy a
 *           divide:   da = dy / b      db = -dy a / b^2
 *           maximum:  the larger one gets dy; where both are equal, each gets dy / 2
 *           minimum:  the smaller one gets dy; where both are equal, each gets dy / 2
 * NaN       maximum and minimum of NaN and a number are NaN, without a gradient
 * Fails     the shapes do not broadcast
 */
SB_API sb_tensor *sb_add(sb_tensor *a, sb_tensor *b);
SB_API sb_tensor *sb_subtract(sb_tensor *a, sb_tensor *b);
SB_API sb_tensor *sb_multiply(sb_tensor *a, sb_tensor *b);
SB_API sb_tensor *sb_divide(sb_tensor *a, sb_tensor *b);
SB_API sb_tensor *sb_maximum(sb_tensor *a, sb_tensor *b);
SB_API sb_tensor *sb_minimum(sb_tensor *a, sb_tensor *b);

/*
 * y = a where the condition is true, else b.
 *
 * Shape     condition (bool), a, b broadcastable to each other -> y of the common shape
 * Backward  da = condition ? dy : 0     db = condition ? 0 : dy
 * Fails     the shapes do not broadcast; condition is not bool
 */
SB_API sb_tensor *sb_where(sb_tensor *condition, sb_tensor *a, sb_tensor *b);

/* ---- Elementwise functions: x of any shape -> y of the same. ---- */

/*
 * negate:  y = -x                          dx = -dy
 * scale:   y = factor x                    dx = factor dy
 * sqrt:    y = sqrt x                      dx = dy / (2 y)
 * exp:     y = e^x                         dx = dy y
 *          fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
 * log:     y = ln x                        dx = dy / x
 * tanh:    y = tanh x                      dx = dy (1 - y^2)
 * sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
 * relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
 * gelu:    y = x Phi(x), Phi the normal distribution function, by erf
 *                                          dx = dy (Phi(x) + x phi(x)), phi its density
 * gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
 *                                          dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
 * silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)
 * abs:     y = |x|                         dx = dy sign x, which is 0 at 0
 * sin:     y = sin x                       dx = dy cos x
 * cos:     y = cos x                       dx = -dy sin x
 * expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
 * log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
 * erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
 *                                          dx = dy 2 / sqrt(pi) e^-x^2
 * pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
 * clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
 *                                          dx = dy where low <= x <= high, else 0
 *
 * Fails     clamp: low is above high, or one of them is NaN
 * Paper     gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017
 */
SB_API sb_tensor *sb_negate(sb_tensor *x);
SB_API sb_tensor *sb_scale(sb_tensor *x, double factor);
SB_API sb_tensor *sb_sqrt(sb_tensor *x);
SB_API sb_tensor *sb_exp(sb_tensor *x);
SB_API sb_tensor *sb_log(sb_tensor *x);
SB_API sb_tensor *sb_tanh(sb_tensor *x);
SB_API sb_tensor *sb_sigmoid(sb_tensor *x);
SB_API sb_tensor *sb_relu(sb_tensor *x);
SB_API sb_tensor *sb_gelu(sb_tensor *x);
SB_API sb_tensor *sb_gelu_tanh(sb_tensor *x);
SB_API sb_tensor *sb_silu(sb_tensor *x);
SB_API sb_tensor *sb_abs(sb_tensor *x);
SB_API sb_tensor *sb_sin(sb_tensor *x);
SB_API sb_tensor *sb_cos(sb_tensor *x);
SB_API sb_tensor *sb_expm1(sb_tensor *x);
SB_API sb_tensor *sb_log1p(sb_tensor *x);
SB_API sb_tensor *sb_erf(sb_tensor *x);
SB_API sb_tensor *sb_pow(sb_tensor *x, double exponent);
SB_API sb_tensor *sb_clamp(sb_tensor *x, double low, double high);

/*
 * y = x without a gradient; shares x's data.
 */
SB_API sb_tensor *sb_detach(sb_tensor *x);

/*
 * y = x in another dtype. Between real dtypes the gradient is cast back; casts to and from integers
 * and booleans have no gradient. A real number outside the range of i32 becomes the nearest i32,
 * and NaN becomes 0.
 */
SB_API sb_tensor *sb_cast(sb_tensor *x, sb_dtype dtype);

/* ---- Products ---- */

/*
 * Matrix product. Leading axes are batch axes and broadcast. matmul_nt reads b transposed and
 * matmul_tn reads a transposed, without a copy.
 *
 * Shape     matmul:    a (..., M, K), b (..., K, N) -> y (..., M, N)
 *           matmul_nt: a (..., M, K), b (..., N, K) -> y (..., M, N)     y = a b'
 *           matmul_tn: a (..., K, M), b (..., K, N) -> y (..., M, N)     y = a' b
 * Backward  matmul:    da = dy b'       db = a' dy
 *           matmul_nt: da = dy b        db = dy' a
 *           matmul_tn: da = b dy'       db = a dy
 * Fails     a rank is below 2; inner sizes differ; batch axes do not broadcast
 */
SB_API sb_tensor *sb_matmul(sb_tensor *a, sb_tensor *b);
SB_API sb_tensor *sb_matmul_nt(sb_tensor *a, sb_tensor *b);
SB_API sb_tensor *sb_matmul_tn(sb_tensor *a, sb_tensor *b);

typedef enum {
    SB_ACTIVATION_IDENTITY,
    SB_ACTIVATION_RELU,
    SB_ACTIVATION_GELU,
    SB_ACTIVATION_GELU_TANH,
    SB_ACTIVATION_SILU,
    SB_ACTIVATION_TANH,
    SB_ACTIVATION_SIGMOID,
} sb_activation;

/*
 * A fully connected layer: y = activation(x W' + b), in one kernel. linear has no activation.
 *
 * Shape     x (..., in), weight (out, in), bias (out) or NULL -> y (..., out)
 * Backward  dz = dy activation'(z), z = x W' + b;  dx = dz W   dW = dz' x   db = sum of dz's rows
 * Fails     x is a scalar; sizes differ; the activation is unknown
 */
SB_API sb_tensor *sb_linear(sb_tensor *x, sb_tensor *weight, sb_tensor *bias);
SB_API sb_tensor *sb_linear_activation(sb_tensor *x, sb_tensor *weight, sb_tensor *bias,
                                       sb_activation activation);

/* ---- Shape ---- */

/*
 * The elements in another shape; shares x's data. One dimension may be -1: it is inferred.
 *
 * Backward  dx = dy in x's shape
 * Fails     the number of elements differs; two dimensions are -1
 */
SB_API sb_tensor *sb_reshape(sb_tensor *x, int rank, const int64_t *dim);

/*
 * Reorders axes: axis i of y is axis order[i] of x. transpose swaps two axes.
 *
 * Backward  dx = dy with its axes in x's order
 * Fails     rank, the length of order, is not x's; order does not name each axis once
 */
SB_API sb_tensor *sb_permute(sb_tensor *x, int rank, const int *order);
SB_API sb_tensor *sb_transpose(sb_tensor *x, int axis_a, int axis_b);

/*
 * Joins tensors along an existing axis (concatenate) or along a new axis (stack). Any dtype.
 *
 * Shape     concatenate: x_i of one shape except in `axis` -> y, whose size there is their sum
 *           stack: x_i of one shape -> y with a new axis of size n before x's `axis`
 * Backward  dx_i = the part of dy that x_i became
 * Fails     n < 1; shapes differ in another axis
 */
SB_API sb_tensor *sb_concatenate(sb_tensor *const x[], int n, int axis);
SB_API sb_tensor *sb_stack(sb_tensor *const x[], int n, int axis);

typedef struct {
    int64_t stride, dilation; /* steps between windows, and between elements of one; 0: 1 */
    int64_t left, right;      /* zeros before and after x */
} sb_unfold_options;

/*
 * Windows of a sequence: y[b, t, k C + c] = x[b, t stride + k dilation - left, c] for k =
 * 0..width-1. With sb_linear it is a convolution along the sequence.
 *
 * Shape     x (B, L, C) -> y (B, L', width C),
 *           L' = (L + left + right - dilation (width - 1) - 1) / stride + 1, rounded down
 * Backward  dx[b, s, c] = sum of dy over the windows that contain position s
 * Fails     x is not of rank 3; it is shorter than a window; a number is out of range
 */
SB_API sb_tensor *sb_unfold(sb_tensor *x, int64_t width, const sb_unfold_options *options);

/*
 * Parts of a tensor along an axis: slice returns `length` elements from `start` on; split returns
 * n parts of the given lengths. Any dtype. A slice along the first axis shares x's data.
 *
 * Backward  dx = dy in the range of the slice, 0 elsewhere
 * Fails     the range exceeds the axis; the lengths do not add up to the axis
 */
SB_API sb_tensor *sb_slice(sb_tensor *x, int axis, int64_t start, int64_t length);
SB_API bool sb_split(sb_tensor *x, int axis, int n, const int64_t *lengths, sb_tensor *parts[]);

/*
 * Broadcasts x to a shape: repeats axes of size 1, and adds leading axes.
 *
 * Backward  dx = dy summed over the broadcast axes
 * Fails     x does not broadcast to the shape
 */
SB_API sb_tensor *sb_expand(sb_tensor *x, int rank, const int64_t *dim);

/* ---- Reductions over one axis, or all with SB_ALL. `keep` keeps the axis, with size 1. ---- */

enum { SB_ALL = 1000 };

/*
 * sum:  y = sum_i x_i                dx_i = dy
 * mean: y = sum_i x_i / n            dx_i = dy / n
 * max:  y = max_i x_i                dx_i = dy / m for the m elements equal to the maximum, else 0
 *       NaN counts as the maximum
 * argmax: the index (i32) of the first maximum; not differentiable
 *
 * Fails     the axis does not exist; mean, max or argmax of no elements
 */
SB_API sb_tensor *sb_sum(sb_tensor *x, int axis, bool keep);
SB_API sb_tensor *sb_mean(sb_tensor *x, int axis, bool keep);
SB_API sb_tensor *sb_max(sb_tensor *x, int axis, bool keep);
SB_API sb_tensor *sb_argmax(sb_tensor *x, int axis);

/*
 * The variance over an axis or SB_ALL: y = sum_i (x_i - m)^2 / (n - correction), m the mean. A
 * correction of 1 gives the unbiased estimate (Bessel), 0 that of the elements themselves, as norms
 * have it.
 *
 * Backward  dx_i = 2 dy (x_i - m) / (n - correction)
 * Fails     the axis does not exist; correction is negative or not below n
 */
SB_API sb_tensor *sb_variance(sb_tensor *x, int axis, double correction, bool keep);

/*
 * The k largest elements of each row, the largest first, and their places in it. Equal elements
 * come in the order of their places; NaN counts as the largest.
 *
 * Shape     x (..., C) -> y (..., k), *indices (..., k) of i32 unless `indices` is NULL
 * Backward  dx_i = dy_j for the i that is in place j of the indices, else 0
 * Fails     x is a scalar; k is not in 1..C
 */
SB_API sb_tensor *sb_topk(sb_tensor *x, int64_t k, sb_tensor **indices);

/* ---- Softmax ---- */

/*
 * Softmax over the last axis: y_i = exp(x_i - max x) / sum_j exp(x_j - max x). The max cancels.
 *
 * Shape     x (..., C) -> y (..., C), over the last axis or `axis` (in C, of sb_softmax_over)
 * Backward  dx_i = y_i (dy_i - sum_j dy_j y_j); it keeps y, and x may be freed
 * Fails     x is a scalar
 * Paper     Bridle 1990
 */
SB_API sb_tensor *sb_softmax(sb_tensor *x);

/*
 * Softmax over the entries that the mask allows, after division by the temperature:
 * y_i = exp(x_i / T - max) / sum over the allowed j; blocked entries are exactly 0. A fully masked
 * row has y = 0 and dx = 0. The mask alone decides, never the values: NaN in a blocked entry has no
 * effect, NaN in an allowed entry makes its row NaN.
 *
 * Shape     x (..., Lq, Lk), aligned from the right with the mask's (B, H, Lq, Lk) -> y as x
 * Backward  dx_i = y_i (dy_i - sum_j dy_j y_j) / T, which is 0 where blocked
 * Fails     x has fewer than 2 or more than 4 axes; the mask does not fit; mask is NULL; T is not
 *           a positive number
 */
SB_API sb_tensor *sb_masked_softmax(sb_tensor *x, sb_mask *mask, double temperature);

/*
 * log_softmax: y_i = x_i - logsumexp(x), over the last axis or `axis` (in C: sb_log_softmax_over).
 *
 * Backward  dx_i = dy_i - exp(y_i) sum_j dy_j
 * Fails     x is a scalar
 */
SB_API sb_tensor *sb_log_softmax(sb_tensor *x);

/*
 * logsumexp: y = max x + ln sum_j exp(x_j - max x), over the last axis or `axis`.
 *
 * Shape     x (..., C) -> y (...)
 * Backward  dx_i = dy exp(x_i - y)
 * Fails     x is a scalar
 */
SB_API sb_tensor *sb_logsumexp(sb_tensor *x);

/* ---- Normalisation over the last axis ---- */

/*
 * y = gain (x - m) / sqrt(v + epsilon) + bias, with m and v the mean and the (biased) variance of
 * a row of x. epsilon 0 stands for 1e-5. With SB_ZERO it is 0, and a row without variance NaN. As m
 * is rounded, (x - m) / s is off by up to 1.2e-7 |m| / s in f32: by 0.04 where m is 1e6 and s 1.
 *
 * Shape     x (..., C), gain (C), bias (C) or NULL -> y (..., C)
 * Backward  with h = (x - m) / s, s = sqrt(v + epsilon), u = gain dy:
 *           dx = (u - mean u - h mean(u h)) / s   dgain = sum of dy h   dbias = sum of dy
 * Fails     x is a scalar; sizes differ; epsilon is negative or not finite
 * Paper     Ba, Kiros and Hinton 2016
 */
SB_API sb_tensor *sb_layer_norm(sb_tensor *x, sb_tensor *gain, sb_tensor *bias, double epsilon);

/*
 * A residual connection and its layer norm in one pass: *sum = x + dropout(branch, p), which the
 * next residual connection reads, and y = layer_norm(*sum).
 *
 * Shape     x, branch (..., C) -> y, *sum (..., C)
 * Backward  with g = layer_norm's dx + the gradient of *sum:
 *           dx = g   dbranch = dropped ? 0 : g / (1 - p)
 *           dgain and dbias as layer_norm's
 * Fails     p is not in [0, 1); otherwise as layer_norm
 */
SB_API sb_tensor *sb_residual_layer_norm(sb_tensor *x, sb_tensor *branch, double p, sb_tensor *gain,
                                         sb_tensor *bias, double epsilon, sb_tensor **sum);

/*
 * Root mean square norm: y = gain x / sqrt(mean(x^2) + epsilon). epsilon 0 stands for 1e-6,
 * and SB_ZERO for 0, with which a row of zeros is NaN.
 *
 * Shape     x (..., C), gain (C) -> y (..., C)
 * Backward  with s = sqrt(mean(x^2) + epsilon), h = x / s, u = gain dy:
 *           dx = (u - h mean(u h)) / s   dgain = sum of dy h
 * Paper     Zhang and Sennrich 2019
 */
SB_API sb_tensor *sb_rms_norm(sb_tensor *x, sb_tensor *gain, double epsilon);

/*
 * y = x / max(|x|, 1e-12), where |x| is the L2 norm of a row.
 *
 * Backward  dx = (dy - y (y . dy)) / |x|; at x = 0: dx = 0
 */
SB_API sb_tensor *sb_l2_normalize(sb_tensor *x);

/* ---- Softmax and norms over another axis ---- */

/*
 * The operations above over any one axis, which is -1 for the last. For the last axis they are
 * those operations, to the bit; for another one x is permuted before, and y after.
 *
 * Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
 *           logsumexp_over: x -> y without the axis
 *           layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
 *           size of the axis: the channels of images (B, C, height, width) are axis 1
 * Backward  as of the operation over the last axis, for each row along the axis
 * Fails     x has no such axis; otherwise as the operation
 */
SB_API sb_tensor *sb_softmax_over(sb_tensor *x, int axis);
SB_API sb_tensor *sb_log_softmax_over(sb_tensor *x, int axis);
SB_API sb_tensor *sb_logsumexp_over(sb_tensor *x, int axis);
SB_API sb_tensor *sb_layer_norm_over(sb_tensor *x, int axis, sb_tensor *gain, sb_tensor *bias,
                                     double epsilon);
SB_API sb_tensor *sb_rms_norm_over(sb_tensor *x, int axis, sb_tensor *gain, double epsilon);
SB_API sb_tensor *sb_l2_normalize_over(sb_tensor *x, int axis);

/* ---- Lookup ---- */

/*
 * Rows of a table: y[i] = table[ids[i]].
 *
 * Shape     table (V, C), ids (...) of i32 -> y (..., C)
 * Backward  dtable[v] = sum of dy[i] over the i with ids[i] = v, in the order of i
 * Fails     an id is not in 0..V-1 (the message names its index and value)
 */
SB_API sb_tensor *sb_embedding(sb_tensor *table, sb_tensor *ids);

/*
 * Rows of a table, where one id stands for padding: its row of the table gets no gradient, so that
 * it stays what it was made, usually zeros.
 *
 * Shape     as embedding
 * Backward  dtable[v] = sum of dy[i] over the i with ids[i] = v; dtable[padding_id] = 0
 * Fails     padding_id is not in 0..V-1; otherwise as embedding
 */
SB_API sb_tensor *sb_embedding_padded(sb_tensor *table, sb_tensor *ids, int64_t padding_id);

/*
 * One entry of each row: y[i] = x[i, ids[i]].
 *
 * Shape     x (..., C), ids (...) of i32 -> y (...)
 * Backward  dx[i, ids[i]] = dy[i]
 * Fails     an id is not in 0..C-1; shapes differ
 */
SB_API sb_tensor *sb_gather(sb_tensor *x, sb_tensor *ids);

/* ---- Dropout ---- */

/*
 * Each element is 0 with probability p, else x / (1 - p). Random bits come from the open tape's
 * stream (sb_tape_random); with p = 0, a NULL stream, or on a tape that does not record and
 * has none, y = x. Element i of a call at stream
 * position P is dropped when 16 bits of Philox4x32-10 at counter (i / 8, P), word (i % 8) / 2, low
 * half first, are below p 2^16. Backward recomputes the mask, which is never stored. Where x is
 * part of a batch (sb_partition), i is the index in the unsharded tensor.
 *
 * Backward  dx = dropped ? 0 : dy / (1 - p)
 * Fails     p is not in [0, 1); p > 0, and the tape records and was given no stream
 * Paper     Srivastava et al. 2014
 */
SB_API sb_tensor *sb_dropout(sb_tensor *x, double p);

/*
 * x + dropout(branch, p), in one pass.
 *
 * Shape     x, branch of one shape -> y
 * Backward  dx = dy   dbranch = dropped ? 0 : dy / (1 - p)
 */
SB_API sb_tensor *sb_residual_dropout(sb_tensor *x, sb_tensor *branch, double p);

/* ---- Losses ---- */

typedef enum { SB_REDUCE_MEAN, SB_REDUCE_SUM, SB_REDUCE_NONE } sb_reduction;

typedef struct {
    double label_smoothing;  /* e: targets become (1 - e) target + e / V; in [0, 1) */
    sb_tensor *class_weight; /* (V), constant: the weight of each class; NULL: all 1 */
    sb_reduction reduction;  /* MEAN divides by the sum of the class weights of the targets that
                                are not ignored; with probabilities, by the number of rows */
} sb_cross_entropy_options;

/*
 * -sum_v t_v log softmax(x)_v for each row, where t is the one-hot target or a distribution.
 *
 * Shape     x (..., V); targets (...) of i32, where a negative id is ignored, or real (..., V):
 *           probabilities -> a scalar, or (...) with SB_REDUCE_NONE
 * Backward  dx_v = dy (w softmax(x)_v - w_v t_v), with the smoothed t and w = sum_v w_v t_v,
 *           divided by the divisor of the mean; targets have no gradient
 * Fails     an id is >= V; shapes differ; a class weight is negative or not finite; label_smoothing
 *           is not in [0, 1); with SB_REDUCE_MEAN, all targets are ignored or have weight 0 (the
 *           mean would be 0/0 = NaN)
 * Paper     label smoothing: Szegedy et al. 2015
 */
SB_API sb_tensor *sb_cross_entropy(sb_tensor *x, sb_tensor *targets,
                                   const sb_cross_entropy_options *options);

/*
 * cross_entropy(x W' + b, targets) without the full tensor of logits: rows are processed in
 * chunks, and backward recomputes the softmax of each chunk.
 *
 * Shape     x (..., C), weight (V, C), bias (V) or NULL, targets (...) of i32 -> as cross_entropy
 */
SB_API sb_tensor *sb_linear_cross_entropy(sb_tensor *x, sb_tensor *weight, sb_tensor *bias,
                                          sb_tensor *targets,
                                          const sb_cross_entropy_options *options);

/*
 * Mean squared error: (x - target)^2, reduced.
 *
 * Shape     x, target of one shape -> a scalar, or that shape with SB_REDUCE_NONE
 * Backward  dx = 2 (x - target) dy / n, dtarget = -dx   (n = 1 for SUM and NONE)
 */
SB_API sb_tensor *sb_mean_squared_error(sb_tensor *x, sb_tensor *target, sb_reduction reduction);

/* ---- Positional encodings ---- */

/*
 * Sinusoidal encoding, a constant: y[t, 2i] = sin(t / 10000^(2i/C)), y[t, 2i+1] = cos of the same,
 * for t = start .. start + length - 1.
 *
 * Shape     -> (length, C)
 * Fails     C is odd or below 2; length or start is negative; dtype is not f32 or f64
 * Paper     Vaswani et al. 2017, section 3.5
 */
SB_API sb_tensor *sb_sinusoidal(sb_dtype dtype, int64_t start, int64_t length, int64_t C);

/*
 * Rotary position embedding (RoPE): rotates each pair (x_i, x_{i + D/2}) of a head by the angle
 * t base^(-2i/D), where t = start + the index along the length axis. base 0 stands for 10000.
 *
 * Shape     x (B, L, H, D) -> y as x
 * Backward  dx = dy rotated by the opposite angle
 * Fails     x is not of rank 4; D is odd; start is negative
 * Paper     Su et al. 2021
 */
SB_API sb_tensor *sb_rotary(sb_tensor *x, int64_t start, double base);

typedef struct {
    double base;      /* 0: 10000 */
    double scaling;   /* divides the angles (position interpolation); 0: 1 */
    int64_t original; /* positions that a model was first trained on, for scaling by frequency as in
                         Llama 3: angles that turn more than high_factor times in them are not
                         divided, those that turn less than low_factor times are, and those in
                         between are divided in part; 0: all are */
    double low_factor, high_factor; /* 0: 1 and 4 */
} sb_rotary_options;

/*
 * Rotary positions with angles divided by a factor, for more positions than a model was trained on.
 *
 * Fails     as sb_rotary; a number is not positive; low_factor is not below high_factor
 * Paper     Chen et al. 2023; by frequency: Grattafiori et al. 2024 (Llama 3.1)
 */
SB_API sb_tensor *sb_rotary_scaled(sb_tensor *x, int64_t start, const sb_rotary_options *options);

/*
 * ALiBi, a constant attention bias: -m_h |j - (i + Lk - Lq)| with slopes m_h = 2^(-8 (h+1) / H).
 *
 * Shape     -> (1, H, Lq, Lk)
 * Fails     H is below 1; a length is negative; dtype is not f32 or f64
 * Paper     Press, Smith and Lewis 2021 (for H a power of two; the same formula for all others)
 */
SB_API sb_tensor *sb_alibi(sb_dtype dtype, int64_t H, int64_t Lq, int64_t Lk);

/*
 * Relative position bias, learned: y[0, h, i, j] = table[h, clip(j - (i + Lk - Lq), -R, R) + R].
 * Distances beyond R share one bias.
 *
 * Shape     table (H, 2 R + 1) -> (1, H, Lq, Lk)
 * Backward  dtable[h, r] = sum of dy over the pairs at distance r - R
 * Fails     the table's second size is even
 * Paper     Shaw, Uszkoreit and Vaswani 2018; Raffel et al. 2020 (as a bias)
 */
SB_API sb_tensor *sb_relative_bias(sb_tensor *table, int64_t Lq, int64_t Lk);

/* ---- Attention ---- */

typedef enum {
    SB_LAYOUT_LENGTH_FIRST, /* (B, L, H, D), softback's order */
    SB_LAYOUT_HEADS_FIRST, /* (B, H, L, D), PyTorch's order, for operands and result; without a copy
                            */
} sb_layout;

typedef enum {
    SB_SCORE_SCALED,   /* q k' / sqrt D */
    SB_SCORE_BALANCED, /* (q D^-1/4) (k D^-1/4)': the same value, smaller intermediates */
    SB_SCORE_COSINE,   /* cosine similarity of q and k */
} sb_score;

typedef enum {
    SB_ATTENTION_AUTOMATIC, /* chosen by Lq Lk: the faster one, or tiled to limit memory */
    SB_ATTENTION_COMPOSED,  /* stores the attention weights, (B, H, Lq, Lk) */
    SB_ATTENTION_TILED,     /* as FlashAttention: memory grows linearly with the length */
} sb_attention_algorithm;

typedef struct {
    sb_layout layout;
    sb_mask *mask;   /* NULL: every query attends to every key */
    sb_tensor *bias; /* added to the scores; broadcastable to (B, H, Lq, Lk) */
    sb_score score;
    double scale;       /* 0: 1/sqrt D, or 1 with SB_SCORE_COSINE; SB_ZERO: the bias alone counts */
    double temperature; /* T, an extra divisor of the scores without the bias; 0: 1 */
    sb_tensor
        *log_temperature; /* a learned T, stored as ln T: a scalar, or (H) one for each head */
    double softcap;       /* c: scores without the bias become c tanh(s / c); 0: none. Stores the
                             scores: neither tiled, cached nor with sequence parallelism. A NaN in a
                             blocked key spoils the gradient of q */
    double dropout;       /* of the attention weights, by the tape's random stream */
    sb_tensor **weights;  /* receives the attention weights (B, H, Lq, Lk): the softmax output,
                             before dropout. sb_keep() keeps them and their gradient */
    sb_attention_algorithm algorithm;
    sb_sequence queries, keys; /* the sequences of q and of k, on a tape with a partition */
    sb_piece heads;            /* which heads this rank holds; zero: all */
} sb_attention_options;

/*
 * Scaled dot-product attention, for each head: softmax(q k' scale / T + bias, masked) v.
 *
 * Shape     q (B, Lq, H, D), k (B, Lk, G, D), v (B, Lk, G, Dv) -> y (B, Lq, H, Dv). The option
 *           weights also gives the attention weights (B, H, Lq, Lk), in either layout. With G < H
 *           it is grouped-query attention: H / G query heads share a key/value head. Operands and
 *           result of shape (L, D) or (B, L, D) have one head.
 * Backward  with s the scores, a = softmax(s), o = a v, g = do v':
 *           dv = a' do    ds = a (g - rowsum(a g))    dbias = ds
 *           dq = ds k scale / T    dk = ds' q scale / T    (dropout multiplies a and g alike)
 *           d ln T = -sum of ds z, where z are the scores without the bias.
 *           With softcap c, s = c tanh(z / c) + bias; dq, dk take dz = ds (1 - tanh(z / c)^2).
 *           A fully masked query has y = 0 and zero gradients, whatever the values are.
 * Fails     ranks, sizes, heads or batches do not match; the mask or bias does not broadcast to the
 *           scores; a number is out of range; both temperature and log_temperature are given;
 *           weights or softcap are requested with SB_ATTENTION_TILED
 * Paper     Vaswani et al. 2017; grouped-query: Ainslie et al. 2023; cosine: Henry et al. 2020;
 *           online softmax: Milakov and Gimelshein 2018; memory O(n): Rabe and Staats 2021; tiles
 *           and their backward: Dao et al. 2022; ranks: Liu, Zaharia and Abbeel 2023; softcap:
 *           Gemma Team 2024; sinks: Xiao et al. 2024; TF32x3: Ootomo and Yokota 2022
 * Tiled     the same function without a (Lq, Lk) tensor. Forward processes tiles of 256 keys and
 *           updates the largest score m and the sum l (online softmax):
 *               m' = max(m, rowmax s)    l = l exp(m - m') + rowsum exp(s - m')
 *               o = o exp(m - m') + exp(s - m') v      and at the end o / l
 *           It saves m and l of each query, and not log-sum-exp = m + log l, which would round the
 *           scores of a float. Backward recomputes each tile:
 *               a = exp(s - m) / l    delta = rowsum(do o), which is rowsum(a g)
 *               dv += a' do    ds = a (do v' - delta)    dq += ds k scale / T    ...
 *           Fully masked tiles are skipped.
 * Sinks     A learned logit of each head that joins the denominator of the softmax (gpt-oss) is a
 *           first key and value of zeros, with the logit as bias (H, 1, 1) of that key, and 0 for
 *           the others. sb_mask_causal_last fits as it is; other masks count one key more.
 * TF32x3    Tiles of f32 are multiplied on a GPU's tensor cores, and attention there is tiled
 *           unless weights are requested. Each number is the sum of two of tf32, which have 11
 *           significant bits, and of four products the smallest is omitted. A product then has a
 *           relative error of at most 2^-21 (in f32 2^-24), and a sum of n products adds at most
 *           17 n 2^-26 of the sum of their absolute values (in f32 n 2^-24). An infinity in q or k
 *           makes its scores NaN. Keys in a cache, a bias, heads above 128 and GPUs with too little
 *           shared memory use CUDA cores: there, tiled attention stores the scores of a range of
 *           queries at a time.
 * Ranks     Sequence parallelism (ring attention; the trainer's sequence_ranks): q, k and v are
 *           this rank's zig-zag pieces (sb_piece_zigzag); blocks of k and v, and in backward of dk
 *           and dv, circulate among the ranks. Lengths, windows and blocks of the mask refer to the
 *           unsharded sequence; a bias and the tensor of sb_mask_allow have the rows of this rank's
 *           queries and the columns of all keys. Always tiled, without weights. Blocks of a device
 *           travel through host memory.
 */
SB_API sb_tensor *sb_attention(sb_tensor *q, sb_tensor *k, sb_tensor *v,
                               const sb_attention_options *options);

/*
 * Recomputes the attention weights of tiled attention for the queries first .. first + count - 1 of
 * every head. sb_keep() keeps them and their gradient d loss / d weights. No gradient flows through
 * them.
 *
 * Shape     y, the result of sb_attention -> (B, H, count, Lk)
 * Fails     y is not the result of tiled attention on the open tape, or backward ran; the queries
 *           are out of range; more than three calls for one y
 */
SB_API sb_tensor *sb_attention_weights(sb_tensor *y, int64_t first, int64_t count);

/* ---- Tensor parallelism ---- */

/*
 * Before and after a layer whose heads or hidden units are distributed over ranks: to_ranks where x
 * is the same on all ranks, from_ranks (an all-reduce) where each rank holds one term of a sum.
 * Sums are formed in the order of ranks, so all ranks get the same bits. Every rank makes these
 * calls in the same order. `ranks` is NULL for a single rank.
 *
 * Shape     x -> y as x; to_ranks shares x's data
 * Value     to_ranks: y = x            from_ranks: y = sum of x over ranks
 * Backward  dx = sum of dy over ranks  dx = dy
 * Paper     Shoeybi et al. 2019, section 3, where they are f and g
 */
SB_API sb_tensor *sb_to_ranks(sb_tensor *x, sb_communicator *ranks);
SB_API sb_tensor *sb_from_ranks(sb_tensor *x, sb_communicator *ranks);

#endif
