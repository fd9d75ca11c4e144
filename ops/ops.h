/*
 * The menu: every operation, with its shapes, the formula of its backward, and its source.
 *
 * Common to all: arguments are tensors of one real dtype (f32, f64 or bf16) on one device unless
 * said otherwise. The result belongs to the open tape. An operation fails, with one sentence in
 * sb_error(), when no tape is open or the open one has failed, when an argument is NULL or its data
 * was freed by backward, when dtypes or devices differ, and when there is no memory. "Fails" lists
 * what else. Axes may be negative: -1 is the last. Every operation is differentiable with respect
 * to each of its real arguments unless said otherwise. Empty tensors (a dimension of 0) are
 * allowed where a result is defined.
 *
 * In option structs zero is the default, and a NULL pointer stands for all defaults.
 */
#ifndef SOFTBACK_OPS_OPS_H
#define SOFTBACK_OPS_OPS_H

#include "../tensor/communicator.h"
#include "../tensor/random.h"
#include "../tensor/tensor.h"
#include "context.h"
#include "mask.h"

/* ---- Arithmetic. Shapes broadcast as in NumPy; a gradient is summed over stretched axes. ---- */

/*
 * Elementwise arithmetic of two tensors.
 *
 * Shape     a, b broadcastable to each other -> y of the common shape
 * Backward  add:      da = dy          db = dy
 *           subtract: da = dy          db = -dy
 *           multiply: da = dy b        db = dy a
 *           divide:   da = dy / b      db = -dy a / b^2
 * Fails     the shapes do not broadcast
 */
SB_API sb_tensor *sb_add(sb_tensor *a, sb_tensor *b);
SB_API sb_tensor *sb_subtract(sb_tensor *a, sb_tensor *b);
SB_API sb_tensor *sb_multiply(sb_tensor *a, sb_tensor *b);
SB_API sb_tensor *sb_divide(sb_tensor *a, sb_tensor *b);

/*
 * y = a where the condition holds, else b.
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
 * log:     y = ln x                        dx = dy / x
 * tanh:    y = tanh x                      dx = dy (1 - y^2)
 * sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
 * relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, so 0 at 0; a NaN stays a NaN
 * gelu:    y = x Phi(x), Phi the normal distribution function, by erf
 *                                          dx = dy (Phi(x) + x phi(x)), phi its density
 * gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
 *                                          dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
 * silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)
 *
 * Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017
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

/*
 * y = x, through which no gradient flows. Shares x's data.
 */
SB_API sb_tensor *sb_detach(sb_tensor *x);

/*
 * y = x in another dtype. Between real dtypes the gradient is cast back; to and from integers and
 * booleans there is none. A real that an integer cannot hold becomes the nearest that it can, and
 * NaN becomes 0.
 */
SB_API sb_tensor *sb_cast(sb_tensor *x, sb_dtype dtype);

/* ---- Products ---- */

/*
 * Matrix product; leading axes are batches and broadcast. matmul_nt takes b transposed and
 * matmul_tn a transposed, without a copy.
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
    SB_IDENTITY,
    SB_RELU,
    SB_GELU,
    SB_GELU_TANH,
    SB_SILU,
    SB_TANH,
    SB_SIGMOID,
} sb_activation;

/*
 * A layer of neurons: y = activation(x W' + b), with the sum, bias and activation in one pass.
 * linear is the same with the identity.
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
 * The same elements under another shape; shares x's data. One dimension may be -1: it is computed.
 *
 * Backward  dx = dy under x's shape
 * Fails     the number of elements differs; two dimensions are -1
 */
SB_API sb_tensor *sb_reshape(sb_tensor *x, int rank, const int64_t *dim);

/*
 * Axes in another order: axis i of y is axis order[i] of x. transpose swaps two axes.
 *
 * Backward  dx = dy with its axes put back
 * Fails     order is not a permutation of 0..rank-1
 */
SB_API sb_tensor *sb_permute(sb_tensor *x, const int *order);
SB_API sb_tensor *sb_transpose(sb_tensor *x, int axis_a, int axis_b);

/*
 * Joins tensors along an axis they have (concatenate), or along a new one (stack). Any dtype.
 *
 * Shape     concatenate: x_i alike but for `axis` -> y, sizes along axis added
 *           stack: x_i of one shape -> y with a new axis of size n before x's `axis`
 * Backward  each dx_i is its part of dy
 * Fails     n < 1; shapes differ elsewhere
 */
SB_API sb_tensor *sb_concatenate(sb_tensor *const x[], int n, int axis);
SB_API sb_tensor *sb_stack(sb_tensor *const x[], int n, int axis);

/*
 * Parts of a tensor along an axis: slice gives the elements from `start` on, `length` of them;
 * split cuts into n parts of the given lengths. Any dtype. A slice along the first axis shares
 * x's data.
 *
 * Backward  dx is dy at the part's place, 0 elsewhere
 * Fails     the part reaches outside; the lengths do not add up
 */
SB_API sb_tensor *sb_slice(sb_tensor *x, int axis, int64_t start, int64_t length);
SB_API bool sb_split(sb_tensor *x, int axis, int n, const int64_t *lengths, sb_tensor *parts[]);

/*
 * Repeats axes of size 1 (and new leading axes) to a shape that x broadcasts to.
 *
 * Backward  dx = dy summed over the stretched axes
 * Fails     x does not broadcast to the shape
 */
SB_API sb_tensor *sb_expand(sb_tensor *x, int rank, const int64_t *dim);

/* ---- Reductions over one axis, or over all with SB_ALL. keep leaves an axis of size 1. ---- */

enum { SB_ALL = 1000 };

/*
 * sum:  y = sum_i x_i                dx_i = dy
 * mean: y = sum_i x_i / n            dx_i = dy / n
 * max:  y = max_i x_i                dx_i = dy / m at the m elements that are the maximum, else 0
 *       (so a tie is shared evenly); a NaN is the maximum
 * argmax: the index (i32) of the first maximum; not differentiable
 *
 * Fails     the axis does not exist; mean, max, argmax of nothing
 */
SB_API sb_tensor *sb_sum(sb_tensor *x, int axis, bool keep);
SB_API sb_tensor *sb_mean(sb_tensor *x, int axis, bool keep);
SB_API sb_tensor *sb_max(sb_tensor *x, int axis, bool keep);
SB_API sb_tensor *sb_argmax(sb_tensor *x, int axis);

/* ---- Softmax ---- */

/*
 * Softmax over the last axis: y_i = exp(x_i - max x) / sum_j exp(x_j - max x).
 *
 * Shape     x (..., C) -> y (..., C)
 * Backward  dx_i = y_i (dy_i - sum_j dy_j y_j)            keeps y, not x
 * Fails     x is a scalar
 * Source    Bridle 1990; the shift by max x leaves the value and the gradient unchanged
 */
SB_API sb_tensor *sb_softmax(sb_tensor *x);

/*
 * Softmax over the entries that the mask allows, after division by the temperature:
 * y_i = exp(x_i / T - max) / sum over the allowed j; blocked entries are exactly 0. A row that is
 * blocked throughout is all 0, and so is its gradient, decided by the mask and never by values: a
 * NaN in a blocked entry does not leak, one in an allowed entry shows.
 *
 * Shape     x (..., Lq, Lk), aligned from the right with the mask's (B, H, Lq, Lk) -> y as x
 * Backward  dx_i = y_i (dy_i - sum_j dy_j y_j) / T, which is 0 where blocked
 * Fails     x has fewer than 2 or more than 4 axes; the mask does not fit; mask is NULL; T is not
 *           a positive number
 */
SB_API sb_tensor *sb_masked_softmax(sb_tensor *x, sb_mask *mask, double temperature);

/*
 * log_softmax: y_i = x_i - logsumexp(x), over the last axis.
 *
 * Backward  dx_i = dy_i - exp(y_i) sum_j dy_j
 * Fails     x is a scalar
 */
SB_API sb_tensor *sb_log_softmax(sb_tensor *x);

/*
 * logsumexp: y = max x + ln sum_j exp(x_j - max x), over the last axis.
 *
 * Shape     x (..., C) -> y (...)
 * Backward  dx_i = dy exp(x_i - y)
 * Fails     x is a scalar
 */
SB_API sb_tensor *sb_logsumexp(sb_tensor *x);

/* ---- Norms, over the last axis ---- */

/*
 * y = gain (x - m) / sqrt(v + epsilon) + bias, with m and v the mean and the (biased) variance of
 * a row of x. epsilon 0 stands for 1e-5.
 *
 * Shape     x (..., C), gain (C), bias (C) or NULL -> y (..., C)
 * Backward  with h = (x - m) / s, s = sqrt(v + epsilon), u = gain dy:
 *           dx = (u - mean u - h mean(u h)) / s   dgain = sum of dy h   dbias = sum of dy
 * Fails     x is a scalar; sizes differ; epsilon is negative or not finite
 * Source    Ba, Kiros and Hinton 2016
 */
SB_API sb_tensor *sb_layer_norm(sb_tensor *x, sb_tensor *gain, sb_tensor *bias, double epsilon);

/*
 * A residual branch and the norm that follows: *sum = x + dropout(branch, p), which the next
 * residual needs, and y = layer_norm(*sum). One pass over the data.
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
 * y = gain x / sqrt(mean(x^2) + epsilon). epsilon 0 stands for 1e-6.
 *
 * Shape     x (..., C), gain (C) -> y (..., C)
 * Backward  with s = sqrt(mean(x^2) + epsilon), h = x / s, u = gain dy:
 *           dx = (u - h mean(u h)) / s   dgain = sum of dy h
 * Source    Zhang and Sennrich 2019
 */
SB_API sb_tensor *sb_rms_norm(sb_tensor *x, sb_tensor *gain, double epsilon);

/*
 * y = x / max(|x|, 1e-12), |x| the Euclidean length of a row.
 *
 * Backward  dx = (dy - y (y . dy)) / |x|; at x = 0: dx = 0
 */
SB_API sb_tensor *sb_l2_normalize(sb_tensor *x);

/* ---- Lookup ---- */

/*
 * Rows of a table: y[i] = table[ids[i]].
 *
 * Shape     table (V, C), ids (...) of i32 -> y (..., C)
 * Backward  dtable[v] = sum of dy[i] over the i with ids[i] = v, in the order of i
 * Fails     an id is not in 0..V-1 (its place and value are named)
 */
SB_API sb_tensor *sb_embedding(sb_tensor *table, sb_tensor *ids);

/*
 * One entry of each row: y[i] = x[i, ids[i]].
 *
 * Shape     x (..., C), ids (...) of i32 -> y (...)
 * Backward  dx[i, ids[i]] = dy[i]
 * Fails     an id is not in 0..C-1; shapes differ
 */
SB_API sb_tensor *sb_gather(sb_tensor *x, sb_tensor *ids);

/* ---- Noise ---- */

/*
 * Each element is 0 with probability p, else x / (1 - p), by the open tape's random stream
 * (sb_tape_random); without a stream, or with p = 0, y = x. Element i of a call at stream position
 * P is dropped when 16 bits of Philox4x32-10 at counter (i / 8, P), word (i % 8) / 2, low half
 * first, are below p 2^16; the mask is recomputed in backward and never stored. Where x is a share
 * of a batch (sb_partition), i counts the elements of the whole.
 *
 * Backward  dx = dropped ? 0 : dy / (1 - p)
 * Fails     p is not in [0, 1)
 * Source    Srivastava et al. 2014
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

typedef enum { SB_MEAN, SB_SUM, SB_NONE } sb_reduction;

typedef struct {
    double label_smoothing;  /* e: targets become (1 - e) target + e / V; in [0, 1) */
    sb_tensor *class_weight; /* (V), constant: the weight of each class; NULL: all 1 */
    sb_reduction reduction;  /* MEAN: divided by the sum of the weights of the ids counted; with
                                probabilities, as in PyTorch, by the number of rows */
} sb_cross_entropy_options;

/*
 * -sum_v t_v log softmax(x)_v for each row, t the one-hot target or a distribution.
 *
 * Shape     x (..., V); targets (...) of i32, where a negative id is ignored, or (..., V) real:
 *           probabilities -> a scalar, or (...) with SB_NONE
 * Backward  dx_v = dy (w softmax(x)_v - w_v t_v), with the smoothed t and w = sum_v w_v t_v,
 *           divided by the divisor of the mean; targets get none
 * Fails     an id is >= V; shapes differ; with SB_MEAN, no target is counted: the mean is 0/0 = NaN
 *           and is reported as a failure
 * Source    label smoothing: Szegedy et al. 2015
 */
SB_API sb_tensor *sb_cross_entropy(sb_tensor *x, sb_tensor *targets,
                                   const sb_cross_entropy_options *options);

/*
 * cross_entropy(x W' + b, targets), without ever holding all the logits: rows go through in
 * chunks, and backward computes a chunk's softmax again.
 *
 * Shape     x (..., C), weight (V, C), bias (V) or NULL, targets (...) of i32 -> as cross_entropy
 */
SB_API sb_tensor *sb_linear_cross_entropy(sb_tensor *x, sb_tensor *weight, sb_tensor *bias,
                                          sb_tensor *targets,
                                          const sb_cross_entropy_options *options);

/*
 * (x - target)^2, reduced.
 *
 * Shape     x, target of one shape -> a scalar, or that shape with SB_NONE
 * Backward  dx = 2 (x - target) dy / n, dtarget = -dx   (n = 1 for SUM and NONE)
 */
SB_API sb_tensor *sb_mean_squared_error(sb_tensor *x, sb_tensor *target, sb_reduction reduction);

/* ---- Positions ---- */

/*
 * The sinusoidal table: y[t, 2i] = sin(t / 10000^(2i/C)), y[t, 2i+1] = cos of the same, for
 * t = start .. start + length - 1. A constant.
 *
 * Shape     -> (length, C)
 * Fails     C is odd or below 2; length or start is negative
 * Source    Vaswani et al. 2017, section 3.5
 */
SB_API sb_tensor *sb_sinusoidal(sb_dtype dtype, int64_t start, int64_t length, int64_t C);

/*
 * Rotary positions: turns each pair (x_i, x_{i + D/2}) of a head by the angle t base^(-2i/D),
 * where t = start + its index along the length axis. base 0 stands for 10000.
 *
 * Shape     x (B, L, H, D) -> y as x
 * Backward  dx is dy turned by the opposite angle
 * Fails     x is not of rank 4; D is odd; start is negative
 * Source    Su et al. 2021
 */
SB_API sb_tensor *sb_rotary(sb_tensor *x, int64_t start, double base);

/*
 * ALiBi: the constant attention bias -m_h |j - (i + Lk - Lq)|, with slopes m_h = 2^(-8 (h+1) / H).
 *
 * Shape     -> (1, H, Lq, Lk)
 * Source    Press, Smith and Lewis 2021 (for H a power of two; the same formula for all others)
 */
SB_API sb_tensor *sb_alibi(sb_dtype dtype, int64_t H, int64_t Lq, int64_t Lk);

/*
 * A learned bias by distance: y[0, h, i, j] = table[h, clip(j - (i + Lk - Lq), -R, R) + R], R the
 * farthest distance told apart.
 *
 * Shape     table (H, 2 R + 1) -> (1, H, Lq, Lk)
 * Backward  dtable[h, r] = sum of dy over the pairs at that distance
 * Fails     the table's second size is even
 * Source    Shaw, Uszkoreit and Vaswani 2018; Raffel et al. 2020 (as a bias)
 */
SB_API sb_tensor *sb_relative_bias(sb_tensor *table, int64_t Lq, int64_t Lk);

/* ---- Attention ---- */

typedef enum {
    SB_LENGTH_FIRST, /* (B, L, H, D), softback's order */
    SB_HEADS_FIRST,  /* (B, H, L, D), read in place; the result has it too */
} sb_layout;

typedef enum {
    SB_SCALED,   /* q k' / sqrt D */
    SB_BALANCED, /* q D^-1/4 times k D^-1/4: the same value, smaller intermediates */
    SB_COSINE,   /* q and k l2-normalized, scale 1 */
} sb_score;

typedef enum {
    SB_AUTOMATIC, /* by the number of pairs: the faster one, and tiled where memory would grow */
    SB_COMPOSED,  /* stores the weights: the readable definition */
    SB_TILED,     /* memory in proportion to the length */
} sb_attention_algorithm;

typedef struct {
    sb_layout layout;
    sb_mask *mask;   /* NULL: every query sees every key */
    sb_tensor *bias; /* added to the scores; broadcastable to (B, H, Lq, Lk) */
    sb_score score;
    double scale;       /* instead of 1/sqrt D (or of 1 with SB_COSINE); 0: the default */
    double temperature; /* T: scores are divided by it; 0: 1 */
    sb_tensor
        *log_temperature; /* a learned T, stored as ln T: a scalar, or (H) one for each head */
    double dropout;       /* of the weights, by the tape's random stream */
    sb_tensor **weights;  /* receives the weights (B, H, Lq, Lk), after dropout is applied
                             never: the softmax itself; sb_keep keeps them and, as their
                             gradient, d loss / d weights */
    sb_attention_algorithm algorithm;
    sb_sequence queries, keys; /* of which sequence positions are, on a tape with a partition */
    sb_piece heads;            /* which of all heads are here; zero: all are */
} sb_attention_options;

/*
 * Attention: softmax(q k' scale / T + bias, masked) v, for each head.
 *
 * Shape     q (B, Lq, H, D), k (B, Lk, G, D), v (B, Lk, G, Dv) -> y (B, Lq, H, Dv), where the H
 *           query heads share G key/value heads in groups of H / G. (L, D) and (B, L, D) are one
 *           head, and so is their result.
 * Backward  with s the scores, a = softmax(s), o = a v, g = do v':
 *           dv = a' do    ds = a (g - rowsum(a g))    dbias = ds
 *           dq = ds k scale / T    dk = ds' q scale / T    (dropout multiplies a and g alike)
 *           d ln T = -sum of ds s', s' the scores without the bias
 *           A query that may see no key gets y = 0 and passes no gradient, by the mask alone.
 * Tiled     the same function without a (Lq, Lk) tensor. Forward goes through tiles of 256 keys
 *           with the largest score m and the sum l so far (the online softmax):
 *               m' = max(m, rowmax s)    l = l exp(m - m') + rowsum exp(s - m')
 *               y = y exp(m - m') + exp(s - m') v      and at the end y / l
 *           and keeps of each query m and l, whose log-sum-exp is m + log l: two numbers, since
 *           their sum would round the scores of a float. Backward computes each tile again:
 *               a = exp(s - m) / l    delta = rowsum(do y), which is rowsum(a g)
 *               dv += a' do    ds = a (do v' - delta)    dq += ds k scale / T    ...
 *           Tiles that the mask rules out are passed over.
 * Ranks     Where a tape's sequences are cut over ranks (the trainer's sequence_ranks), q, k and v
 *           are this rank's zig-zag pieces of them (sb_piece_zigzag), and blocks of k and v, and in
 *           backward of dk and dv, go round the ring of ranks. The mask speaks of the whole; a bias
 *           and a mask's pairs have the queries that are here, and all keys. On the CPU only, by
 *           tiles whatever the algorithm, and without weights.
 * Fails     ranks, sizes, heads or batches do not fit; the mask or bias does not fit; a number is
 *           out of its range; weights are asked for of tiles
 * Source    Vaswani et al. 2017; groups: Ainslie et al. 2023; cosine: Henry et al. 2020; online
 *           softmax: Milakov and Gimelshein 2018; memory O(n): Rabe and Staats 2021; tiles, and
 *           their backward: Dao et al. 2022; ranks: Liu, Zaharia and Abbeel 2023
 */
SB_API sb_tensor *sb_attention(sb_tensor *q, sb_tensor *k, sb_tensor *v,
                               const sb_attention_options *options);

/*
 * Rows of the weights of a tiled attention, made again from what it kept: those of the queries
 * first .. first + count - 1, of every head. sb_keep keeps them and, as their gradient,
 * d loss / d weights; otherwise backward passes nothing through them.
 *
 * Shape     y, the result of sb_attention -> (B, H, count, Lk)
 * Fails     y is no result of a tiled attention on the open tape, or backward ran; first and count
 *           are no range of its queries; it is asked for more than three times
 */
SB_API sb_tensor *sb_attention_weights(sb_tensor *y, int64_t first, int64_t count);

/* ---- Many ranks ---- */

/*
 * Borders of what is cut over ranks, such as a layer whose hidden units, or attention whose heads,
 * each rank has some of: to_ranks before it, where x is the same on all ranks, and from_ranks after
 * it, where each has found a part of a sum. Sums go in the order of ranks, so that all ranks hold
 * the same bits. Every rank calls them in the same order; NULL is a rank that is alone.
 *
 * Shape     x -> y as x; to_ranks shares x's data
 * Value     to_ranks: y = x            from_ranks: y = sum of x over ranks
 * Backward  dx = sum of dy over ranks  dx = dy
 * Source    Shoeybi et al. 2019, section 3, where they are f and g
 */
SB_API sb_tensor *sb_to_ranks(sb_tensor *x, sb_communicator *ranks);
SB_API sb_tensor *sb_from_ranks(sb_tensor *x, sb_communicator *ranks);

#endif
