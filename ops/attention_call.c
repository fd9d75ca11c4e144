#include "ops/attention_call.h"
#include "ops/check.h"
#include "ops/mask_terms.h"
#include <math.h>
#include <string.h>

/* q, k or v: the strides and the numbers of its rows. `dim` is the shape that the caller sees. */
struct operand {
    const char *name;
    int rank;
    int64_t dim[4];
    int64_t B, L, H, D;
    struct attention_strides stride;
};

struct attention_strides attention_strides_of(bool heads_first, int64_t H, int64_t L, int64_t D)
{
    return heads_first ? (struct attention_strides){H * L * D, D, L * D}
                       : (struct attention_strides){H * L * D, H * D, D};
}

/* Reads a tensor of 2 to 4 axes as an operand; fails for any other rank. */
static bool attention_call_read_operand(const char *who, const char *name, const sb_tensor *t,
                                        sb_layout layout, struct operand *operand)
{
    if (!t)
        return fail_null(who, name);
    if (!check_real(who, name, t))
        return false;
    if (t->rank < 2 || t->rank > 4)
        return sb_fail("%s: %s is %s; it must have 2 to 4 axes", who, name, tensor_shape(t).text);
    bool four = t->rank == 4, heads_first = four && layout == SB_LAYOUT_HEADS_FIRST;
    const int64_t *dim = t->dim;
    int64_t B = t->rank > 2 ? dim[0] : 1, D = dim[t->rank - 1];
    int64_t L = heads_first ? dim[2] : dim[t->rank > 2 ? 1 : 0];
    int64_t H = !four ? 1 : heads_first ? dim[1] : dim[2];
    *operand = (struct operand){.name = name, .rank = t->rank, .B = B, .L = L, .H = H};
    operand->D = D;
    for (int i = 0; i < t->rank; i++)
        operand->dim[i] = dim[i];
    operand->stride = attention_strides_of(heads_first, H, L, D);
    return true;
}

/* Fails; the message gives both shapes, what differs, and the order of axes. */
static bool attention_call_unfit(const char *who, const struct operand *a, const struct operand *b,
                                 const char *what, sb_layout layout)
{
    const char *order = a->rank == 2                      ? "(length, size)"
                        : a->rank == 3                    ? "(batch, length, size)"
                        : layout == SB_LAYOUT_HEADS_FIRST ? "(batch, heads, length, size)"
                                                          : "(batch, length, heads, size)";
    return sb_fail("%s: %s is %s, %s is %s: %s; %s order is %s", who, a->name,
                   shape_text(a->rank, a->dim).text, b->name, shape_text(b->rank, b->dim).text,
                   what, layout == SB_LAYOUT_HEADS_FIRST ? "this layout's" : "softback's", order);
}

static bool attention_call_check_operands(const char *who, const struct operand *q,
                                          const struct operand *k, const struct operand *v,
                                          sb_layout layout)
{
    if (q->rank != k->rank || k->rank != v->rank)
        return sb_fail("%s: q is %s, k is %s, v is %s: they must have the same number of axes", who,
                       shape_text(q->rank, q->dim).text, shape_text(k->rank, k->dim).text,
                       shape_text(v->rank, v->dim).text);
    if (q->B != k->B)
        return attention_call_unfit(who, q, k, "batches differ", layout);
    if (q->D != k->D)
        return attention_call_unfit(who, q, k, "sizes of a head differ", layout);
    if (q->D == 0)
        return attention_call_unfit(who, q, k, "the size of a head is 0", layout);
    if (q->H != k->H && (k->H == 0 || q->H % k->H != 0))
        return attention_call_unfit(
            who, q, k, "heads differ, and the first is not a multiple of the second", layout);
    if (k->B != v->B)
        return attention_call_unfit(who, k, v, "batches differ", layout);
    if (k->H != v->H)
        return attention_call_unfit(who, k, v, "heads differ", layout);
    if (k->L != v->L)
        return attention_call_unfit(who, k, v, "lengths differ", layout);
    return true;
}

static bool attention_call_is_positive(double x)
{
    return x > 0 && x < INFINITY;
}

static bool attention_call_check_numbers(const char *who, const sb_attention_options *o, int64_t H)
{
    if (o->layout != SB_LAYOUT_LENGTH_FIRST && o->layout != SB_LAYOUT_HEADS_FIRST)
        return sb_fail("%s: %d is not a layout", who, (int)o->layout);
    if (o->score != SB_SCORE_SCALED && o->score != SB_SCORE_BALANCED && o->score != SB_SCORE_COSINE)
        return sb_fail("%s: %d is not a score", who, (int)o->score);
    if (o->algorithm != SB_ATTENTION_AUTOMATIC && o->algorithm != SB_ATTENTION_COMPOSED &&
        o->algorithm != SB_ATTENTION_TILED)
        return sb_fail("%s: %d is not an algorithm", who, (int)o->algorithm);
    if (o->algorithm == SB_ATTENTION_TILED && o->weights)
        return sb_fail(
            "%s: SB_ATTENTION_TILED stores no weights; call sb_attention_weights for rows of them",
            who);
    if (!(o->scale >= 0 && o->scale < INFINITY))
        return sb_fail("%s: scale is %g; it must be positive, SB_ZERO, or 0 for the default", who,
                       o->scale);
    if (!attention_call_is_positive(sb_option(o->temperature, 1)))
        return sb_fail("%s: temperature is %g; it must be positive, or 0 for the default, 1", who,
                       o->temperature);
    if (!(o->softcap >= 0 && o->softcap < INFINITY))
        return sb_fail("%s: softcap is %g; it must be positive, or 0 for none", who, o->softcap);
    const sb_tensor *t = o->log_temperature;
    if (t && o->temperature != 0)
        return sb_fail("%s: both temperature and log_temperature are given", who);
    if (t && !(t->rank == 0 || (t->rank == 1 && t->dim[0] == H)))
        return sb_fail("%s: log_temperature is %s; it must be a scalar or (%lld), one for each "
                       "head",
                       who, tensor_shape(t).text, (long long)H);
    return dropout_check(who, o->dropout);
}

static bool attention_call_fit_bias(const char *who, const sb_tensor *bias, int64_t Lk,
                                    struct attention *a)
{
    const int64_t scores[4] = {a->B, a->H, a->Lq, Lk};
    int64_t common[4];
    int rank;
    if (!check_real(who, "bias", bias))
        return false;
    if (bias->rank > 4 || !shape_broadcast(bias->rank, bias->dim, 4, scores, &rank, common) ||
        !shape_equal(rank, common, 4, scores))
        return sb_fail("%s: bias is %s; it does not broadcast to the scores %s", who,
                       tensor_shape(bias).text, shape_text(4, scores).text);
    shape_strides(bias->rank, bias->dim, 4, scores, a->bias);
    return true;
}

/* The factor of q k': 1/sqrt D, or 1 between unit vectors, divided by the temperature. */
static double attention_call_scale_of(const sb_attention_options *o, int64_t D)
{
    double scale = sb_option(o->scale, o->score == SB_SCORE_COSINE ? 1 : 1 / sqrt((double)D));
    return o->temperature != 0 ? scale / o->temperature : scale;
}

/* Checks that the operands match each other, and that the options match them. */
static bool attention_call_describe(struct attention_call *call, const struct operand *q,
                                    const struct operand *k, const struct operand *v)
{
    const sb_attention_options *o = &call->options;
    if (!attention_call_check_numbers(call->who, o, q->H) ||
        !attention_call_check_operands(call->who, q, k, v, o->layout))
        return false;
    call->heads_first = q->rank == 4 && o->layout == SB_LAYOUT_HEADS_FIRST;
    call->whole = (struct mask_sizes){q->B, q->H, q->L, k->L};
    call->a = (struct attention){.B = q->B,
                                 .H = q->H,
                                 .G = k->H,
                                 .Lq = q->L,
                                 .Lk = k->L,
                                 .D = q->D,
                                 .Dv = v->D,
                                 .q = q->stride,
                                 .k = k->stride,
                                 .v = v->stride,
                                 .y = attention_strides_of(call->heads_first, q->H, q->L, v->D),
                                 .scale = attention_call_scale_of(o, q->D)};
    return true;
}

bool attention_call_read(struct attention_call *call, const char *who, sb_tensor *q, sb_tensor *k,
                         sb_tensor *v, int64_t keys, const sb_attention_options *options)
{
    struct operand q_operand, k_operand, v_operand;
    const sb_layout layout = options->layout,
                    keys_layout = keys < 0 ? layout : SB_LAYOUT_LENGTH_FIRST;
    *call = (struct attention_call){.who = who, .q = q, .k = k, .v = v, .options = *options};
    if (!tape_need(who) || !attention_call_read_operand(who, "q", q, layout, &q_operand) ||
        !attention_call_read_operand(who, "k", k, keys_layout, &k_operand) ||
        !attention_call_read_operand(who, "v", v, keys_layout, &v_operand))
        return false;
    if (keys >= 0)
        k_operand.L = k_operand.dim[1] = v_operand.L = v_operand.dim[1] = keys;
    return attention_call_describe(call, &q_operand, &k_operand, &v_operand);
}

/* q divided by the learned temperature, if there is one. */
static sb_tensor *attention_call_over_temperature(const struct attention_call *call)
{
    sb_tensor *t = call->options.log_temperature, *q = call->q;
    if (!t || !q) /* q is NULL if its operation failed */
        return q;
    if (t->rank == 1 && q->rank == 4) /* aligned with the heads of q */
        t = sb_reshape(t, call->heads_first ? 3 : 2, (int64_t[]){t->dim[0], 1, 1});
    return sb_multiply(q, sb_exp(sb_negate(t))); /* 1 / T = exp(-ln T) */
}

/* q for what is computed from it on the tape: a fully masked query passes no gradient, whatever is
   in it. */
static sb_tensor *attention_call_keep_queries(const struct attention_call *call)
{
    const sb_attention_options *o = &call->options;
    struct mask_sizes whole = call->whole;
    struct run run[2] = {{0, 0, call->a.Lq}, {0}};
    if (!o->log_temperature && o->softcap == 0 && o->score != SB_SCORE_COSINE)
        return call->q;
    if (context_open()->ring) {
        const sb_partition *partition = context_open()->partition;
        whole.Lq = partition_piece(partition, o->queries)->of;
        whole.Lk = partition_piece(partition, o->keys)->of;
        piece_runs(partition_piece(partition, o->queries), call->a.Lq, run);
    }
    return mask_keep_queries(call->who, o->mask, whole, run, call->heads_first, call->q);
}

/* With SB_SCORE_BALANCED, bf16 applies the whole factor to the scores: bf16 has the range of f32,
   and scaling q and k would round them once more. */
bool attention_call_score(struct attention_call *call, bool cached)
{
    const sb_score score = call->options.score;
    call->a.cosine = cached && score == SB_SCORE_COSINE;
    call->a.scale = factor_in_range(call->q->dtype, call->a.scale);
    if (!cached)
        call->q = attention_call_keep_queries(call);
    if (call->a.scale == 0) { /* kernels multiply -inf by it */
        call->q = sb_scale(call->q, 0);
        call->a.scale = 1;
    }
    if (score == SB_SCORE_COSINE)
        call->q = sb_l2_normalize(call->q);
    if (score == SB_SCORE_COSINE && !cached)
        call->k = sb_l2_normalize(call->k);
    if (score == SB_SCORE_BALANCED && !cached && call->q->dtype != SB_BF16) {
        call->q = sb_scale(call->q, sqrt(call->a.scale));
        call->k = sb_scale(call->k, sqrt(call->a.scale));
        call->a.scale = 1;
    }
    call->q = attention_call_over_temperature(call);
    return call->q && call->k;
}

sb_node *attention_call_node(const struct attention_call *call, const sb_operation operations[2],
                             int n, const void *options, size_t bytes)
{
    const sb_attention_options *o = &call->options;
    const struct mask_sizes *whole = &call->whole;
    struct attention fitted = call->a;
    if (o->bias && !attention_call_fit_bias(call->who, o->bias, whole->Lk, &fitted))
        return NULL;
    sb_tensor *in[4 + MASK_TERMS] = {call->q, call->k, call->v};
    if (o->bias)
        in[n++] = o->bias;
    n += mask_tensors(o->mask, in + n);
    sb_node *node =
        sb_node_new(&operations[o->bias != NULL], n, in, o->weights ? 2 : 1, options, bytes);
    struct attention *held = node ? node->options : NULL;
    if (!held)
        return NULL;
    memcpy(held->bias, fitted.bias, sizeof held->bias);
    return mask_resolve(call->who, o->mask, *whole, call->a.Lq, &held->mask) ? node : NULL;
}

sb_tensor *attention_call_output(const struct attention_call *call, sb_node *node)
{
    const sb_tensor *q = call->q;
    int64_t dim[SB_MAX_RANK];
    memcpy(dim, q->dim, sizeof dim);
    dim[q->rank - 1] = call->a.Dv;
    return sb_node_output(node, q->dtype, q->rank, dim);
}

bool attention_call_dropout(const struct attention_call *call, sb_node *node)
{
    const struct attention *a = &call->a;
    const sb_attention_options *o = &call->options;
    struct place place;
    if (!place_of_pairs(call->who, (const int64_t[]){a->B, a->H, a->Lq, a->Lk}, &o->heads,
                        o->queries, o->keys, &place))
        return false;
    struct attention *held = node->options;
    return dropout_next(call->who, o->dropout, &place, &held->dropout);
}

/* The weights: an output if requested, a saved tensor if only backward needs them, and otherwise
   released by the caller. */
static sb_tensor *attention_call_make_weights(sb_node *node, const sb_tensor *q,
                                              const int64_t dim[4], bool asked_for)
{
    if (asked_for)
        return sb_node_output(node, q->dtype, 4, dim);
    sb_tensor *weights = tensor_new(node->operation->name, q->device, q->dtype, 4, dim);
    return weights && node->out[0]->requires_grad ? sb_node_save(node, weights) : weights;
}

static bool run_forward(const struct attention_call *call, sb_node *node, const sb_tensor *y,
                        const sb_tensor *weights)
{
    const struct attention *a = node->options;
    const struct attention_kernels *kernels = kernel_row(&attention_rows, y);
    const int64_t block[4] = {a->B, a->H, attention_block_rows(a), a->Lk};
    struct attention_forward f = {.q = call->q->data,
                                  .k = call->k->data,
                                  .v = call->v->data,
                                  .bias = call->options.bias ? call->options.bias->data : NULL,
                                  .weights = weights->data,
                                  .y = y->data};
    if (!kernels || !attention_call_dropout(call, node))
        return false;
    if (a->dropout.threshold == 0)
        return kernels->forward(a, &f);
    sb_tensor *scratch = tensor_new(call->who, y->device, y->dtype, 4, block);
    f.scratch = scratch ? scratch->data : NULL;
    const bool ok = scratch && kernels->forward(a, &f);
    sb_tensor_release(scratch);
    return ok;
}

sb_tensor *attention_call_forward(const struct attention_call *call, sb_node *node)
{
    const struct attention *a = &call->a;
    const int64_t all[4] = {a->B, a->H, a->Lq, a->Lk};
    const bool asked_for = call->options.weights != NULL;
    sb_tensor *y = node ? attention_call_output(call, node) : NULL;
    sb_tensor *weights = y ? attention_call_make_weights(node, call->q, all, asked_for) : NULL;
    const bool ok = weights && run_forward(call, node, y, weights);
    if (weights && !asked_for && !y->requires_grad)
        sb_tensor_release(weights);
    if (asked_for)
        *call->options.weights = ok ? weights : NULL;
    return ok ? y : NULL;
}

struct attention_gradient attention_gradient_of(const sb_node *node, int i)
{
    sb_tensor *dx = sb_node_dx(node, i);
    return (struct attention_gradient){dx ? dx->data : NULL, sb_node_fresh(node, i)};
}

sb_tensor *attention_bias_of(const sb_node *node)
{
    return strstr(node->operation->inputs, "bias") ? node->in[3] : NULL;
}
