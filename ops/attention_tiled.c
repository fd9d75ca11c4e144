/* Tiled attention on the tape: what the node saves, and rows of the weights on request. */
#include "ops/attention.h"
#include "ops/attention_call.h"
#include "ops/call.h"

enum { MOST_ROWS = NODE_SAVED - 1 }; /* the first saved tensor holds the statistics */

/* Options of the node; saved[n + 1] are weights of the queries from first[n] on. */
struct tiled {
    struct attention a;
    int64_t first[MOST_ROWS];
};

/* Splits keys into slabs, so that several threads share the work. The number depends on the shape
   alone: enough for `tasks` tasks, fewer where memory would exceed a limit. */
static int64_t tiled_choose_slabs(const struct attention *a)
{
    const int64_t tasks = 8, least_keys = 256, most_elements = 2 << 20;
    int64_t groups = a->B * a->G, one = a->B * a->H * a->Lq * a->D;
    int64_t slabs = groups > 0 ? (tasks + groups - 1) / groups : 1;
    int64_t by_keys = a->Lk / least_keys, by_memory = 1 + most_elements / (one > 0 ? one : 1);
    slabs = slabs < by_keys ? slabs : by_keys;
    slabs = slabs < by_memory ? slabs : by_memory;
    return slabs > 1 ? slabs : 1;
}

/* The gradient of weights that sb_keep() keeps. */
static bool tiled_rows_gradient(const struct attention_kernels *kernels, const struct attention *a,
                                const struct attention_tiled_backward *g, sb_tensor *rows,
                                int64_t first)
{
    if (!rows->keep)
        return true;
    if (!rows->grad)
        rows->grad = tensor_new("attention", rows->device, rows->dtype, rows->rank, rows->dim);
    rows->grad_current = rows->grad != NULL;
    return rows->grad && (kernels->tiled_rows(a, NULL, g, first, rows->dim[2], rows->grad->data) ||
                          sb_fail("attention: out of memory for tiles"));
}

static bool run_backward(const sb_node *node, const struct attention_kernels *kernels,
                         struct attention_tiled_backward *g)
{
    const struct tiled *tiled = node->options;
    const struct attention *a = &tiled->a;
    const sb_tensor *y = node->out[0];
    const sb_dtype sums = dtype_of_sums(y->dtype);
    const int64_t rows[3] = {a->B, a->H, a->Lq};
    const int64_t partial[5] = {g->slabs - 1, a->B, a->H, a->Lq, a->D};
    sb_tensor *delta = tensor_new("attention", y->device, sums, 3, rows), *other = NULL;
    if (delta && g->slabs > 1)
        other = tensor_new("attention", y->device, sums, 5, partial);
    bool ok = delta && (other || g->slabs == 1);
    if (ok) {
        g->delta = delta->data;
        g->partial = other ? other->data : NULL;
        ok = kernels->tiled_backward(a, g) || sb_fail("attention: out of memory for tiles");
    }
    for (int n = 1; ok && n < node->saves; n++)
        ok = tiled_rows_gradient(kernels, a, g, node->saved[n], tiled->first[n - 1]);
    sb_tensor_release(delta);
    sb_tensor_release(other);
    return ok;
}

struct attention_tiled_backward attention_tiled_gradients(const sb_node *node)
{
    const sb_tensor *bias = attention_bias_of(node);
    struct attention_tiled_backward g = {.q = node->in[0]->data,
                                         .k = node->in[1]->data,
                                         .v = node->in[2]->data,
                                         .bias = bias ? bias->data : NULL,
                                         .stats = node->saved[0]->data,
                                         .y = node->out[0]->data,
                                         .dy = sb_node_dy(node, 0)->data,
                                         .dq = attention_gradient_of(node, 0),
                                         .dk = attention_gradient_of(node, 1),
                                         .dv = attention_gradient_of(node, 2)};
    if (bias)
        g.dbias = attention_gradient_of(node, 3);
    return g;
}

static bool tiled_backward(sb_node *node)
{
    const struct attention_kernels *kernels = kernel_row(&attention_rows, node->out[0]);
    struct attention_tiled_backward g = attention_tiled_gradients(node);
    g.slabs = tiled_choose_slabs(node->options);
    return kernels && run_backward(node, kernels, &g);
}

static const sb_operation operations[] = {
    {"attention", "q k v mask", tiled_backward, true, true},
    {"attention", "q k v bias mask", tiled_backward, true, true}};

struct attention_tiled attention_tiled_forward(const sb_node *node)
{
    const sb_tensor *bias = attention_bias_of(node);
    return (struct attention_tiled){.q = node->in[0]->data,
                                    .k = node->in[1]->data,
                                    .v = node->in[2]->data,
                                    .bias = bias ? bias->data : NULL,
                                    .stats = node->saved[0]->data,
                                    .y = node->out[0]->data};
}

sb_node *attention_tiled_node(const struct attention_call *call, const sb_operation of[2],
                              const void *options, size_t bytes)
{
    const struct attention *a = &call->a;
    const int64_t rows[4] = {a->B, a->H, a->Lq, 2};
    sb_node *node = attention_call_node(call, of, 3, options, bytes);
    const sb_tensor *y = node ? attention_call_output(call, node) : NULL;
    return y &&
                   sb_node_save(node, tensor_new("attention", y->device, dtype_of_sums(y->dtype), 4,
                                                 rows)) &&
                   attention_call_dropout(call, node)
               ? node
               : NULL;
}

sb_tensor *attention_tiled(const struct attention_call *call)
{
    const struct tiled tiled = {.a = call->a};
    sb_node *node = attention_tiled_node(call, operations, &tiled, sizeof tiled);
    const struct attention_kernels *kernels =
        node ? kernel_row(&attention_rows, node->out[0]) : NULL;
    if (!kernels)
        return NULL;
    const struct attention_tiled f = attention_tiled_forward(node);
    return kernels->tiled(node->options, &f) ? node->out[0]
                                             : sb_fail("attention: out of memory for tiles");
}

/* The node of the open tape whose output is y and whose attention is tiled, or NULL. */
static sb_node *tiled_node_of(const sb_tensor *y)
{
    for (sb_node *node = tape_open()->last; node; node = node->previous)
        if ((node->operation == &operations[0] || node->operation == &operations[1]) &&
            node->made == 1 && (node->out[0] == y || node->out[0]->rounded == y))
            return node;
    return NULL;
}

static const sb_operation weights = {"attention_weights", "y", NULL, false, true};

sb_tensor *sb_attention_weights(sb_tensor *y, int64_t first, int64_t count)
{
    const char *who = weights.name;
    sb_node *rows_node = sb_node_new(&weights, 1, &y, 1, NULL, 0), *node = NULL;
    if (!rows_node)
        return NULL;
    node = tiled_node_of(y);
    if (!node || node->saves == 0)
        return sb_fail("%s: y is not the result of tiled attention on this tape, or backward ran",
                       who);
    struct tiled *tiled = node->options;
    const struct attention *a = &tiled->a;
    if (first < 0 || count < 1 || first > a->Lq - count)
        return sb_fail("%s: %lld rows from %lld on are not in the %lld queries", who,
                       (long long)count, (long long)first, (long long)a->Lq);
    if (node->saves > MOST_ROWS)
        return sb_fail("%s: rows of one attention were requested %d times already", who, MOST_ROWS);
    const sb_tensor *wide = node->out[0]; /* y, or what y is a rounded copy of */
    const struct attention_kernels *kernels = kernel_row(&attention_rows, wide);
    const int64_t dim[4] = {a->B, a->H, count, a->Lk};
    sb_tensor *rows = kernels ? sb_node_output(rows_node, wide->dtype, 4, dim) : NULL;
    bool restored = rows != NULL;
    for (int i = 0; restored && i < node->inputs; i++)
        restored = tensor_restore(node->in[i]);
    if (!restored)
        return NULL;
    const struct attention_tiled f = attention_tiled_forward(node);
    if (!kernels->tiled_rows(a, &f, NULL, first, count, rows->data))
        return sb_fail("%s: out of memory for tiles", who);
    tiled->first[node->saves - 1] = first;
    return call_round(wide != y, sb_node_save(node, sb_tensor_retain(rows)));
}
