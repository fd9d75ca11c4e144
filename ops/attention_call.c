#include "ops/attention_call.h"
#include "ops/check.h"
#include <math.h>
#include <string.h>

struct attention_strides attention_strides_of(bool heads_first, int64_t H, int64_t L, int64_t D)
{
    return heads_first ? (struct attention_strides){H * L * D, D, L * D}
                       : (struct attention_strides){H * L * D, H * D, D};
}

bool attention_operand(const char *who, const char *name, const sb_tensor *t, sb_layout layout,
                       struct attention_operand *operand)
{
    if (!t)
        return fail_null(who, name);
    if (!check_real(who, name, t))
        return false;
    if (t->rank < 2 || t->rank > 4)
        return sb_fail("%s: %s is %s; it must have 2 to 4 axes", who, name, tensor_shape(t).text);
    bool four = t->rank == 4, heads_first = four && layout == SB_HEADS_FIRST;
    const int64_t *dim = t->dim;
    int64_t B = t->rank > 2 ? dim[0] : 1, D = dim[t->rank - 1];
    int64_t L = heads_first ? dim[2] : dim[t->rank > 2 ? 1 : 0];
    int64_t H = !four ? 1 : heads_first ? dim[1] : dim[2];
    *operand = (struct attention_operand){.name = name, .rank = t->rank, .B = B, .L = L, .H = H};
    operand->D = D;
    for (int i = 0; i < t->rank; i++)
        operand->dim[i] = dim[i];
    operand->stride = attention_strides_of(heads_first, H, L, D);
    return true;
}

/* Fails with both shapes, what of them does not fit, and which axis is which. */
static bool unfit(const char *who, const struct attention_operand *a,
                  const struct attention_operand *b, const char *what, sb_layout layout)
{
    const char *order = a->rank == 2               ? "(length, size)"
                        : a->rank == 3             ? "(batch, length, size)"
                        : layout == SB_HEADS_FIRST ? "(batch, heads, length, size)"
                                                   : "(batch, length, heads, size)";
    return sb_fail("%s: %s is %s, %s is %s: %s; %s order is %s", who, a->name,
                   shape_text(a->rank, a->dim).text, b->name, shape_text(b->rank, b->dim).text,
                   what, layout == SB_HEADS_FIRST ? "this layout's" : "softback's", order);
}

static bool check_operands(const char *who, const struct attention_operand *q,
                           const struct attention_operand *k, const struct attention_operand *v,
                           sb_layout layout)
{
    if (q->rank != k->rank || k->rank != v->rank)
        return sb_fail("%s: q is %s, k is %s, v is %s: they must have the same number of axes", who,
                       shape_text(q->rank, q->dim).text, shape_text(k->rank, k->dim).text,
                       shape_text(v->rank, v->dim).text);
    if (q->B != k->B)
        return unfit(who, q, k, "batches differ", layout);
    if (q->D != k->D)
        return unfit(who, q, k, "sizes of a head differ", layout);
    if (q->D == 0)
        return unfit(who, q, k, "the size of a head is 0", layout);
    if (q->H != k->H && (k->H == 0 || q->H % k->H != 0))
        return unfit(who, q, k, "heads differ, and the first is not a multiple of the second",
                     layout);
    if (k->B != v->B)
        return unfit(who, k, v, "batches differ", layout);
    if (k->H != v->H)
        return unfit(who, k, v, "heads differ", layout);
    if (k->L != v->L)
        return unfit(who, k, v, "lengths differ", layout);
    return true;
}

static bool is_positive(double x)
{
    return x > 0 && x < INFINITY;
}

static bool check_numbers(const char *who, const sb_attention_options *o, int64_t H)
{
    if (o->layout != SB_LENGTH_FIRST && o->layout != SB_HEADS_FIRST)
        return sb_fail("%s: %d is not a layout", who, (int)o->layout);
    if (o->score != SB_SCALED && o->score != SB_BALANCED && o->score != SB_COSINE)
        return sb_fail("%s: %d is not a score", who, (int)o->score);
    if (o->algorithm != SB_AUTOMATIC && o->algorithm != SB_COMPOSED && o->algorithm != SB_TILED)
        return sb_fail("%s: %d is not an algorithm", who, (int)o->algorithm);
    if (o->algorithm == SB_TILED && o->weights)
        return sb_fail("%s: tiles store no weights; call sb_attention_weights for rows of them",
                       who);
    if (o->scale != 0 && !is_positive(o->scale))
        return sb_fail("%s: scale is %g; it must be positive, or 0 for the default", who, o->scale);
    if (o->temperature != 0 && !is_positive(o->temperature))
        return sb_fail("%s: temperature is %g; it must be positive, or 0 for 1", who,
                       o->temperature);
    const sb_tensor *t = o->log_temperature;
    if (t && o->temperature != 0)
        return sb_fail("%s: both temperature and log_temperature are given", who);
    if (t && !(t->rank == 0 || (t->rank == 1 && t->dim[0] == H)))
        return sb_fail("%s: log_temperature is %s; it must be a scalar or (%lld), one for each "
                       "head",
                       who, tensor_shape(t).text, (long long)H);
    return dropout_check(who, o->dropout);
}

static bool fit_bias(const char *who, const sb_tensor *bias, int64_t Lk, struct attention *a)
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

/* What multiplies q k': 1/sqrt D, or 1 between vectors of length 1, over the temperature. */
static double scale_of(const sb_attention_options *o, int64_t D)
{
    double scale = o->scale != 0 ? o->scale : o->score == SB_COSINE ? 1 : 1 / sqrt((double)D);
    return o->temperature != 0 ? scale / o->temperature : scale;
}

bool attention_describe(const char *who, const struct attention_operand *q,
                        const struct attention_operand *k, const struct attention_operand *v,
                        const sb_attention_options *options, struct attention *a)
{
    if (!check_numbers(who, options, q->H) || !check_operands(who, q, k, v, options->layout))
        return false;
    *a = (struct attention){.B = q->B,
                            .H = q->H,
                            .G = k->H,
                            .Lq = q->L,
                            .Lk = k->L,
                            .D = q->D,
                            .Dv = v->D,
                            .q = q->stride,
                            .k = k->stride,
                            .v = v->stride,
                            .scale = scale_of(options, q->D)};
    bool heads_first = q->rank == 4 && options->layout == SB_HEADS_FIRST;
    a->y = attention_strides_of(heads_first, a->H, a->Lq, a->Dv);
    return true;
}

sb_tensor *attention_over_temperature(sb_tensor *q, const sb_attention_options *options)
{
    sb_tensor *t = options->log_temperature;
    if (!t || !q) /* q may be an operation's result that failed */
        return q;
    if (t->rank == 1 && q->rank == 4) /* beside the heads of q */
        t = sb_reshape(t, options->layout == SB_HEADS_FIRST ? 3 : 2, (int64_t[]){t->dim[0], 1, 1});
    return sb_multiply(q, sb_exp(sb_negate(t))); /* 1 / T = exp(-ln T) */
}

sb_node *attention_node(const sb_operation *operation, int n, sb_tensor *const operands[],
                        const sb_attention_options *options, const struct attention *a,
                        size_t bytes)
{
    return attention_node_of(operation, n, operands, options, a, bytes,
                             (struct mask_sizes){a->B, a->H, a->Lq, a->Lk});
}

sb_node *attention_node_of(const sb_operation *operation, int n, sb_tensor *const operands[],
                           const sb_attention_options *options, const struct attention *a,
                           size_t bytes, struct mask_sizes whole)
{
    const char *who = operation->name;
    struct attention fitted = *a;
    if (options->bias && !fit_bias(who, options->bias, whole.Lk, &fitted))
        return NULL;
    sb_tensor *in[4 + MASK_TERMS];
    for (int i = 0; i < n; i++)
        in[i] = operands[i];
    if (options->bias)
        in[n++] = options->bias;
    n += mask_tensors(options->mask, in + n);
    sb_node *node = sb_node_new(operation, n, in, options->weights ? 2 : 1, a, bytes);
    struct attention *held = node ? node->options : NULL;
    if (!held)
        return NULL;
    memcpy(held->bias, fitted.bias, sizeof held->bias);
    return mask_resolve_rows(who, options->mask, whole, a->Lq, &held->mask) ? node : NULL;
}

/* The weights: an output if they are asked for, saved where backward will need them, and otherwise
   the caller's to release. */
static sb_tensor *make_weights(sb_node *node, const sb_tensor *q, const int64_t dim[4],
                               bool asked_for)
{
    if (asked_for)
        return sb_node_output(node, q->dtype, 4, dim);
    sb_tensor *weights = tensor_new(node->operation->name, q->device, q->dtype, 4, dim);
    return weights && node->out[0]->requires_grad ? sb_node_save(node, weights) : weights;
}

sb_tensor *attention_output(sb_node *node, const struct attention_operand *q)
{
    const struct attention *a = node->options;
    int64_t dim[4] = {q->dim[0], q->dim[1], q->dim[2], q->dim[3]};
    dim[q->rank - 1] = a->Dv;
    return sb_node_output(node, node->in[0]->dtype, q->rank, dim);
}

bool attention_dropout(const char *who, const sb_attention_options *options, struct attention *a)
{
    struct place place;
    if (!place_of_pairs(who, (const int64_t[]){a->B, a->H, a->Lq, a->Lk}, &options->heads,
                        options->queries, options->keys, &place))
        return false;
    a->dropout = dropout_next(options->dropout, &place);
    return true;
}

sb_tensor *attention_forward(sb_node *node, struct attention_forward f,
                             const struct attention_operand *shape,
                             const sb_attention_options *options)
{
    struct attention *a = node->options;
    const sb_tensor *q = node->in[0];
    const struct attention_kernels *kernels = kernel_row(&attention_rows, q);
    sb_tensor *y = kernels ? attention_output(node, shape) : NULL;
    if (!y)
        return NULL;
    const int64_t all[4] = {a->B, a->H, a->Lq, a->Lk};
    const int64_t block[4] = {a->B, a->H, attention_block_rows(a), a->Lk};
    bool asked_for = options->weights != NULL;
    sb_tensor *weights = make_weights(node, q, all, asked_for), *scratch = NULL;
    bool ok = weights != NULL;
    if (ok) {
        ok = attention_dropout(node->operation->name, options, a);
        if (a->dropout.threshold > 0)
            scratch = tensor_new(node->operation->name, q->device, q->dtype, 4, block);
        ok = ok && (a->dropout.threshold == 0 || scratch);
    }
    if (ok) {
        f.y = y->data;
        f.weights = weights->data;
        f.scratch = scratch ? scratch->data : NULL;
        ok = kernels->forward(a, &f);
    }
    sb_tensor_release(scratch);
    if (!asked_for && !y->requires_grad)
        sb_tensor_release(weights);
    if (asked_for)
        *options->weights = ok ? weights : NULL;
    return ok ? y : NULL;
}

struct attention_gradient attention_gradient_of(const sb_node *node, int i)
{
    sb_tensor *dx = sb_node_dx(node, i);
    return (struct attention_gradient){dx ? dx->data : NULL, sb_node_fresh(node, i)};
}
