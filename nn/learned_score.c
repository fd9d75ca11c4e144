#include "nn/learned_score.h"
#include "autograd/tape.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "ops/call.h"
#include "ops/dropout.h"
#include "ops/mask_terms.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/storage.h"
#include <math.h>

/* Checks the operands; Dq and Dk are the required sizes of queries and keys. Sets *weights to
   NULL. */
static bool check_operands(const char *who, const sb_tensor *q, const sb_tensor *k,
                           const sb_tensor *v, int64_t Dq, int64_t Dk, sb_tensor **weights)
{
    if (weights)
        *weights = NULL;
    const sb_tensor *const x[] = {q, k, v};
    const char *const names[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++) {
        if (!x[i])
            return fail_null(who, names[i]);
        if (x[i]->rank != 3)
            return sb_fail("%s: %s is %s; it must be (batch, length, size)", who, names[i],
                           tensor_shape(x[i]).text);
    }
    if (q->dim[2] != Dq)
        return sb_fail("%s: q is %s; its last axis must be %lld", who, tensor_shape(q).text,
                       (long long)Dq);
    if (k->dim[2] != Dk)
        return sb_fail("%s: k is %s; its last axis must be %lld", who, tensor_shape(k).text,
                       (long long)Dk);
    if (q->dim[0] != k->dim[0] || k->dim[0] != v->dim[0])
        return sb_fail("%s: q is %s, k is %s, v is %s: batches differ", who, tensor_shape(q).text,
                       tensor_shape(k).text, tensor_shape(v).text);
    if (k->dim[1] != v->dim[1])
        return sb_fail("%s: k is %s, v is %s: lengths differ", who, tensor_shape(k).text,
                       tensor_shape(v).text);
    return true;
}

bool sb_additive_attention_init(sb_additive_attention *layer, sb_parameters *set, const char *name,
                                int64_t query_size, int64_t key_size, int64_t hidden, bool bias,
                                double dropout)
{
    const char *who = "additive_attention";
    struct layer_start start;
    if (!layer_begin(&start, who, layer, sizeof *layer, set, name) ||
        !check_at_least(who, "query_size", query_size, 1) ||
        !check_at_least(who, "key_size", key_size, 1) ||
        !check_at_least(who, "hidden", hidden, 1) || !dropout_check(who, dropout))
        return false;
    layer->dropout = dropout;
    const bool made =
        sb_linear_layer_init(&layer->query, set, name_join(name, "query").text, query_size, hidden,
                             bias) &&
        sb_linear_layer_init(&layer->key, set, name_join(name, "key").text, key_size, hidden,
                             false) &&
        sb_linear_layer_init(&layer->score, set, name_join(name, "score").text, hidden, 1, false);
    return layer_end(&start, made);
}

/* q with zeros in the queries without a key, so that NaN there does not reach weights. */
static sb_tensor *keep_queries(const char *who, sb_tensor *q, const sb_tensor *k, sb_mask *mask)
{
    const struct mask_sizes sizes = {q->dim[0], 1, q->dim[1], k->dim[1]};
    const struct run all[2] = {{0, 0, q->dim[1]}, {0}};
    return mask_keep_queries(who, mask, sizes, all, false, q);
}

static sb_tensor *zeros(const sb_tensor *x, int rank, const int64_t *dim)
{
    return call_zeros("additive_attention", x, rank, dim);
}

/* u (B, Lq, Lk, A), with 0 for blocked pairs: a NaN there would give 0 * NaN in the gradient of
   tanh. A mask on equal scores gives weights that are 0 for exactly these pairs. */
static sb_tensor *keep_pairs(sb_tensor *u, sb_mask *mask)
{
    if (!u || !mask)
        return u;
    const int64_t B = u->dim[0], Lq = u->dim[1], Lk = u->dim[2];
    sb_tensor *weights = sb_masked_softmax(zeros(u, SB_SHAPE(B, 1, Lq, Lk)), mask, 1);
    sb_tensor *kept = sb_reshape(sb_cast(weights, SB_BOOL), SB_SHAPE(B, Lq, Lk, 1));
    return sb_where(kept, u, zeros(u, SB_SCALAR));
}

sb_tensor *sb_additive_attention_forward(const sb_additive_attention *layer, sb_tensor *q,
                                         sb_tensor *k, sb_tensor *v, sb_mask *mask,
                                         sb_tensor **weights)
{
    if (!layer)
        return fail_null("additive_attention", "layer");
    const int64_t A = sb_tensor_dim(layer->score.weight, 1);
    if (!check_operands("additive_attention", q, k, v, sb_tensor_dim(layer->query.weight, 1),
                        sb_tensor_dim(layer->key.weight, 1), weights))
        return NULL;
    const int64_t B = q->dim[0], Lq = q->dim[1], Lk = k->dim[1];
    q = keep_queries("additive_attention", q, k, mask);
    if (!q)
        return NULL;
    sb_tensor *from_q = sb_linear_layer_forward(&layer->query, q, SB_ACTIVATION_IDENTITY);
    sb_tensor *from_k = sb_linear_layer_forward(&layer->key, k, SB_ACTIVATION_IDENTITY);
    sb_tensor *u = sb_add(sb_reshape(from_q, SB_SHAPE(B, Lq, 1, A)),
                          sb_reshape(from_k, SB_SHAPE(B, 1, Lk, A)));
    sb_tensor *t = sb_tanh(keep_pairs(u, mask));
    sb_tensor *s = sb_linear_layer_forward(&layer->score, t, SB_ACTIVATION_IDENTITY);
    /* The rest is attention with zero queries and keys, and s as the bias. */
    const sb_attention_options options = {.mask = mask,
                                          .bias = sb_reshape(s, SB_SHAPE(B, 1, Lq, Lk)),
                                          .dropout = layer->dropout,
                                          .weights = weights};
    return sb_attention(zeros(q, SB_SHAPE(B, Lq, 1)), zeros(k, SB_SHAPE(B, Lk, 1)), v, &options);
}

bool sb_multiplicative_attention_init(sb_multiplicative_attention *layer, sb_parameters *set,
                                      const char *name, int64_t query_size, int64_t key_size,
                                      double dropout)
{
    const char *who = "multiplicative_attention";
    struct layer_start start;
    if (!layer_begin(&start, who, layer, sizeof *layer, set, name) ||
        !check_at_least(who, "query_size", query_size, 1) ||
        !check_at_least(who, "key_size", key_size, 1) || !dropout_check(who, dropout))
        return false;
    layer->dropout = dropout;
    return layer_end(&start, sb_linear_layer_init(&layer->query, set, name_join(name, "query").text,
                                                  query_size, key_size, false));
}

sb_tensor *sb_multiplicative_attention_forward(const sb_multiplicative_attention *layer,
                                               sb_tensor *q, sb_tensor *k, sb_tensor *v,
                                               sb_mask *mask, sb_tensor **weights)
{
    if (!layer)
        return fail_null("multiplicative_attention", "layer");
    const sb_tensor *W = layer->query.weight;
    if (!check_operands("multiplicative_attention", q, k, v, sb_tensor_dim(W, 1),
                        sb_tensor_dim(W, 0), weights))
        return NULL;
    const sb_attention_options options = {
        .mask = mask, .scale = 1, .dropout = layer->dropout, .weights = weights};
    q = keep_queries("multiplicative_attention", q, k, mask);
    return sb_attention(sb_linear_layer_forward(&layer->query, q, SB_ACTIVATION_IDENTITY), k, v,
                        &options);
}

bool sb_cosine_attention_init(sb_cosine_attention *layer, sb_parameters *set, const char *name,
                              double temperature, double dropout)
{
    const double T = sb_option(temperature, 0.1);
    struct layer_start start;
    if (!layer_begin(&start, "cosine_attention", layer, sizeof *layer, set, name))
        return false;
    if (!(T > 0 && T < INFINITY))
        return sb_fail("cosine_attention: temperature is %g; it must be positive, or 0 for 0.1", T);
    if (!dropout_check("cosine_attention", dropout))
        return false;
    layer->dropout = dropout;
    layer->log_temperature =
        sb_parameters_add(set, name_join(name, "log_temperature").text, SB_SCALAR,
                          (sb_initial){SB_INITIAL_CONSTANT, math_log(T)});
    return layer_end(&start, layer->log_temperature != NULL);
}

sb_tensor *sb_cosine_attention_forward(const sb_cosine_attention *layer, sb_tensor *q, sb_tensor *k,
                                       sb_tensor *v, sb_mask *mask, sb_tensor **weights)
{
    if (!layer)
        return fail_null("cosine_attention", "layer");
    const int64_t D = sb_tensor_dim(k, 2);
    if (!check_operands("cosine_attention", q, k, v, D, D, weights))
        return NULL;
    const sb_attention_options options = {.mask = mask,
                                          .score = SB_SCORE_COSINE,
                                          .log_temperature = layer->log_temperature,
                                          .dropout = layer->dropout,
                                          .weights = weights};
    return sb_attention(q, k, v, &options);
}
