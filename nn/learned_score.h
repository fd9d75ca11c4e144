/*
 * Attention with a learned score: additive, multiplicative and cosine attention, for comparison
 * with the scaled dot product of attention.h. Each has one head.
 *
 * From queries q (B, Lq, Dq), keys k (B, Lk, Dk) and values v (B, Lk, Dv) they compute a score s_ij
 * for each pair, and
 *
 *     a_i = softmax over the kept j of s_ij,   y_i = sum_j a_ij v_j     (B, Lq, Dv)
 *
 * with dropout of the weights a, by the tape's random stream. The mask applies to the scores
 * (B, 1, Lq, Lk); NULL keeps every pair. `weights`, unless NULL, receives a, before dropout, as
 * (B, 1, Lq, Lk). A fully masked query has y = 0 and zero gradients, whatever the values are. A NaN
 * in a blocked key or value changes neither y nor the gradients of queries, values and other keys;
 * only the gradient of W_k, a sum over all keys, becomes NaN.
 *
 * Backward always begins with ds_ij = a_ij (g_ij - sum_n a_in g_in), g_ij = v_j . dy_i.
 */
#ifndef SOFTBACK_NN_LEARNED_SCORE_H
#define SOFTBACK_NN_LEARNED_SCORE_H

#include "linear.h"

/*
 * Additive attention: s_ij = w . tanh(W_q q_i + W_k k_j), a small network with A hidden units. It
 * stores A numbers for each pair. A bias of W_q q_i also serves W_k k_j, and a bias of s_ij would
 * have no effect. Without a bias the score is odd: s(-q, -k) = -s(q, k).
 *
 * Backward  with t_ij = tanh(...), u_ij = ds_ij w (1 - t_ij^2):   dw = sum_ij ds_ij t_ij
 *           dW_q = sum_ij u_ij q_i'   dq_i = W_q' sum_j u_ij   dW_k, dk_j likewise over i
 * Paper     Bahdanau, Cho and Bengio 2015
 */
typedef struct {
    double dropout;
    sb_linear_layer query, key, score; /* W_q (A, Dq), W_k (A, Dk), w (1, A) */
} sb_additive_attention;

/* Adds "<name>.query", ".key" and ".score", each with weight, and with `bias` "<name>.query.bias".
   Fails as sb_linear_layer_init does, and when dropout is not in [0, 1). */
SB_API bool sb_additive_attention_init(sb_additive_attention *layer, sb_parameters *set,
                                       const char *name, int64_t query_size, int64_t key_size,
                                       int64_t hidden, bool bias, double dropout);
SB_API sb_tensor *sb_additive_attention_forward(const sb_additive_attention *layer, sb_tensor *q,
                                                sb_tensor *k, sb_tensor *v, sb_mask *mask,
                                                sb_tensor **weights);

/*
 * Multiplicative attention ("general"): s_ij = k_j . W q_i, bilinear, so that
 * s(-q, -k) = s(q, k). It is not scaled by the size.
 *
 * Backward  dW = sum_ij ds_ij k_j q_i'   dq_i = W' sum_j ds_ij k_j   dk_j = W sum_i ds_ij q_i
 * Paper     Luong, Pham and Manning 2015
 */
typedef struct {
    double dropout;
    sb_linear_layer query; /* W (Dk, Dq) */
} sb_multiplicative_attention;

/* Adds "<name>.query.weight". Fails as sb_additive_attention_init does. */
SB_API bool sb_multiplicative_attention_init(sb_multiplicative_attention *layer, sb_parameters *set,
                                             const char *name, int64_t query_size, int64_t key_size,
                                             double dropout);
SB_API sb_tensor *sb_multiplicative_attention_forward(const sb_multiplicative_attention *layer,
                                                      sb_tensor *q, sb_tensor *k, sb_tensor *v,
                                                      sb_mask *mask, sb_tensor **weights);

/*
 * Cosine attention: s_ij = cos(q_i, k_j) / T, for Dq = Dk. The temperature T is learned as ln T,
 * which keeps it positive and makes a step change it by a factor.
 *
 * Backward  d ln T = -sum_ij ds_ij s_ij; that of q and k passes through sb_l2_normalize
 * Paper     Henry et al. 2020 (a learned factor); Liu et al. 2022 (as a logarithm, from T = 0.1)
 */
typedef struct {
    double dropout;
    sb_tensor *log_temperature; /* a scalar */
} sb_cosine_attention;

/* Adds "<name>.log_temperature". `temperature` is T before training; 0 stands for 0.1. Fails as
   sb_linear_layer_init does, and when it is not a positive number or dropout is not in [0, 1). */
SB_API bool sb_cosine_attention_init(sb_cosine_attention *layer, sb_parameters *set,
                                     const char *name, double temperature, double dropout);
SB_API sb_tensor *sb_cosine_attention_forward(const sb_cosine_attention *layer, sb_tensor *q,
                                              sb_tensor *k, sb_tensor *v, sb_mask *mask,
                                              sb_tensor **weights);

#endif
