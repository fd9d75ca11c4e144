#include "teach/playground/observation.h"
#include "autograd/node.h"
#include "models/translation.h"
#include "ops/attention.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/* ---- Memory ---- */

/* Room for n numbers; NULL, with a message, without memory. */
static double *numbers_new(int64_t n)
{
    double *numbers = memory_new((size_t)(n + 1) * sizeof *numbers);
    return numbers ? numbers : sb_fail("observation: out of memory");
}

static int64_t length_of(const struct observed_attention *o, enum observed what)
{
    if (what <= OBSERVED_RIGHT)
        return o->heads * o->rows * o->keys;
    if (what >= OBSERVED_AVERAGE)
        return o->heads * o->rows;
    return o->heads * o->size * (what <= OBSERVED_DY ? o->rows : o->keys);
}

static bool make_room(struct observed_attention *o, const sb_node *node)
{
    const struct attention *a = sb_node_options(node);
    o->heads = a->H;
    o->rows = a->Lq;
    o->keys = a->Lk;
    o->size = a->D;
    o->scale = a->scale;
    for (int i = 0; i < OBSERVED_NUMBERS; i++)
        if (!(o->number[i] = numbers_new(length_of(o, (enum observed)i))))
            return false;
    return true;
}

void observation_free(struct observation *o)
{
    for (int i = 0; i < OBSERVED_ATTENTIONS; i++)
        for (int j = 0; j < OBSERVED_NUMBERS; j++)
            memory_free(o->attention[i].number[j]);
    memory_free(o->probability);
    memory_free(o->gradient);
    *o = (struct observation){0};
}

/* ---- Reading ---- */

/* All values of a tensor; NULL, with a message, without the tensor or memory. */
static double *values_of(const sb_tensor *x)
{
    double *values =
        x ? numbers_new(sb_tensor_size(x)) : sb_fail("observation: a gradient is missing");
    if (values && sb_tensor_read(x, values))
        return values;
    memory_free(values);
    return NULL;
}

/* x (1, L, H, D) as (H, L, D) */
static bool read_heads(const sb_tensor *x, double *to)
{
    double *values = values_of(x);
    if (!values)
        return false;
    const int64_t L = sb_tensor_dim(x, 1), H = sb_tensor_dim(x, 2), D = sb_tensor_dim(x, 3);
    for (int64_t i = 0; i < L * H * D; i++) {
        const int64_t d = i % D, l = i / D % L, h = i / D / L;
        to[i] = values[(l * H + h) * D + d];
    }
    memory_free(values);
    return true;
}

/* What forward has: before backward frees it. */
static bool read_forward(struct observed_attention *o, const sb_node *node, bool causal)
{
    double *const *x = o->number;
    if (!read_heads(node->in[0], x[OBSERVED_Q]) || !read_heads(node->in[1], x[OBSERVED_K]) ||
        !read_heads(node->in[2], x[OBSERVED_V]) || !sb_tensor_read(node->out[1], x[OBSERVED_A]))
        return false;
    for (int64_t i = 0; i < o->heads * o->rows * o->keys; i++) {
        const int64_t j = i % o->keys, row = i / o->keys, h = row / o->rows;
        const double *q = x[OBSERVED_Q] + row * o->size;
        const double *k = x[OBSERVED_K] + (h * o->keys + j) * o->size;
        const bool blocked = causal && j > row % o->rows;
        x[OBSERVED_S][i] = blocked ? -INFINITY : o->scale * row_dot(o->size, q, k);
    }
    return true;
}

/* ds of each row: by the rule, or by the library's softmax. */
static bool score_gradients(struct observed_attention *o, const struct rule *rule)
{
    double *const *x = o->number;
    const int64_t rows = o->heads * o->rows, dim[] = {rows, o->keys};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *s = variable_of(SB_F64, 2, dim, x[OBSERVED_S]);
    sb_tensor *g = constant_of(SB_F64, 2, dim, x[OBSERVED_G]);
    bool ok =
        sb_backward_from(sb_softmax(s), g) && sb_tensor_read(sb_tensor_grad(s), x[OBSERVED_RIGHT]);
    ok = sb_tape_end(&tape) && ok;
    for (int64_t r = 0; ok && r < rows; r++) {
        const int64_t at = r * o->keys;
        int64_t kept = o->keys;
        while (kept > 0 && isinf(x[OBSERVED_S][at + kept - 1]))
            kept--;
        memcpy(x[OBSERVED_DS] + at, x[OBSERVED_RIGHT] + at, (size_t)o->keys * sizeof(double));
        if (rule)
            rule_apply(rule, kept, x[OBSERVED_A] + at, x[OBSERVED_G] + at, x[OBSERVED_DS] + at);
        x[OBSERVED_AVERAGE][r] = row_dot(kept, x[OBSERVED_A] + at, x[OBSERVED_G] + at);
        x[OBSERVED_SUM][r] = row_sum(kept, x[OBSERVED_DS] + at);
    }
    return ok;
}

static bool read_backward(struct observed_attention *o, const sb_node *node,
                          const struct rule *rule)
{
    double *const *x = o->number;
    if (!read_heads(sb_tensor_grad(node->in[0]), x[OBSERVED_DQ]) ||
        !read_heads(sb_tensor_grad(node->out[0]), x[OBSERVED_DY]))
        return false;
    for (int64_t i = 0; i < o->heads * o->rows * o->keys; i++) {
        const int64_t j = i % o->keys, row = i / o->keys, h = row / o->rows;
        const bool blocked = isinf(x[OBSERVED_S][i]);
        x[OBSERVED_G][i] = blocked ? 0
                                   : row_dot(o->size, x[OBSERVED_DY] + row * o->size,
                                             x[OBSERVED_V] + (h * o->keys + j) * o->size);
    }
    return score_gradients(o, rule);
}

/* ---- The pair ---- */

/* The attention nodes of the open tape, in the order of their forward passes. */
static bool find_attentions(sb_node *found[OBSERVED_ATTENTIONS])
{
    int left = OBSERVED_ATTENTIONS;
    for (sb_node *node = tape_open()->last; node && left > 0; node = node->previous)
        if (node->operation && strcmp(node->operation->name, "attention") == 0)
            found[--left] = node;
    return left == 0 || sb_fail("observation: the model has fewer than three attentions");
}

static bool read_probabilities(struct observation *o, sb_tensor *logits)
{
    o->rows = sb_tensor_dim(logits, 1);
    o->symbols = sb_tensor_dim(logits, 2);
    o->probability = numbers_new(o->rows * o->symbols);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    bool ok = o->probability && sb_tensor_read(sb_softmax(sb_detach(logits)), o->probability);
    return sb_tape_end(&tape) && ok;
}

static bool read_gradients(struct observation *o, const sb_parameters *set)
{
    o->parameters = sb_parameters_count(set);
    o->gradient = numbers_new(o->parameters);
    bool ok = o->gradient;
    for (int64_t i = 0; ok && i < o->parameters; i++) {
        const sb_tensor *grad = sb_tensor_grad(sb_parameters_get(set, i));
        double *values = grad ? values_of(grad) : NULL;
        ok = values || !grad;
        o->gradient[i] = values ? sqrt(row_dot(sb_tensor_size(grad), values, values)) : 0;
        memory_free(values);
    }
    return ok;
}

static bool run(struct observation *o, const struct subject *subject, const struct rule *rule)
{
    sb_tensor *maps[OBSERVED_ATTENTIONS];
    const sb_seq2seq_weights weights = {maps, {maps + OBSERVED_DECODER, maps + OBSERVED_CROSS}};
    sb_node *node[OBSERVED_ATTENTIONS] = {NULL};
    sb_tensor *logits = sb_seq2seq_logits(subject->model.self, subject->example.batch, &weights);
    bool ok = logits && find_attentions(node) && read_probabilities(o, logits);
    sb_tensor *targets = sb_batch_get(subject->example.batch, "target_out");
    sb_tensor *loss = ok ? sb_cross_entropy(logits, targets, NULL) : NULL;
    for (int i = 0; loss && ok && i < OBSERVED_ATTENTIONS; i++) {
        ok = make_room(&o->attention[i], node[i]) &&
             read_forward(&o->attention[i], node[i], i == OBSERVED_DECODER);
        for (int input = 0; input < 3; input++)
            ok = sb_keep(node[i]->in[input]) && ok;
        ok = sb_keep(node[i]->out[0]) && ok;
    }
    ok = ok && sb_backward(loss);
    o->loss = ok ? sb_tensor_value(loss) : 0;
    for (int i = 0; ok && i < OBSERVED_ATTENTIONS; i++)
        ok = read_backward(&o->attention[i], node[i], rule);
    return ok && read_gradients(o, subject->model.weights);
}

bool observation_make(struct observation *o, const struct subject *subject, const struct rule *rule)
{
    *o = (struct observation){0};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    bool ok = run(o, subject, rule);
    ok = sb_tape_end(&tape) && ok;
    sb_parameters_clear(subject->model.weights);
    if (!ok)
        observation_free(o);
    return ok;
}

void observation_flow(int64_t n, const double *a, const double *g, double *flow)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            flow[i * n + j] = a[i] * a[j] * (g[i] - g[j]);
}
