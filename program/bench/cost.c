#include "program/bench/cost.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include <string.h>

static double cost_size_of(const sb_tensor *t)
{
    return (double)tensor_size(t);
}

static double cost_bytes_of(const sb_tensor *t)
{
    return (double)tensor_bytes(t);
}

static bool cost_is_named(const sb_node *node, const char *name)
{
    return strcmp(node->operation->name, name) == 0;
}

/* Pairs of a query and a key in its range, over all sentences. */
static double cost_kept_pairs(const struct attention *a)
{
    double pairs = 0;
    for (int64_t b = 0; b < a->B; b++)
        for (int64_t i = 0; i < a->Lq; i++) {
            const struct key_range keys = mask_range(&a->mask, b, i, i, a->Lk);
            pairs += keys.to > keys.from ? (double)(keys.to - keys.from) : 0;
        }
    return pairs;
}

/* Composed attention keeps its weights (B, H, Lq, Lk). */
static bool cost_stores_weights(const sb_node *node, const struct attention *a)
{
    const sb_tensor *kept = node->made > 1 ? node->out[1] : node->saves ? node->saved[0] : NULL;
    return kept && kept->rank == 4 && kept->dim[3] == a->Lk;
}

/* Whether forward has already computed the gradients. */
static bool cost_gives_early(const sb_node *node)
{
    const struct cross_entropy_options *options = node->options;
    return cost_is_named(node, "linear_cross_entropy") && options->early;
}

/* How many of the product's two operands require a gradient. */
static double cost_operands_wanted(const sb_node *node)
{
    double wanted = 0;
    for (int i = 0; i < 2 && i < node->inputs; i++)
        wanted += tape_wants_grad(tape_open(), node->in[i]);
    return wanted;
}

/* The products of forward, and those that backward computes again. */
static struct bench_cost cost_products(const sb_node *node)
{
    struct bench_cost cost = {0};
    if (cost_is_named(node, "linear") || cost_is_named(node, "linear_cross_entropy"))
        cost.operations = 2 * cost_size_of(node->in[0]) * (double)node->in[1]->dim[0];
    if (cost_is_named(node, "linear")) /* of a group each output is a product */
        cost.operations *= (double)node->made;
    if (cost_is_named(node, "linear_cross_entropy"))
        cost.again = cost_gives_early(node) ? 0 : cost.operations;
    if (strncmp(node->operation->name, "matmul", strlen("matmul")) == 0 && node->made > 0) {
        const sb_tensor *a = node->in[0];
        const int axis = cost_is_named(node, "matmul_tn") ? a->rank - 2 : a->rank - 1;
        cost.operations = 2 * cost_size_of(node->out[0]) * (double)a->dim[axis];
    }
    if (cost_is_named(node, "attention")) {
        const struct attention *a = node->options; /* both algorithms' options begin with it */
        const double pairs = 2 * cost_kept_pairs(a) * (double)a->H;
        cost.operations = pairs * (double)(a->D + a->Dv);
        cost.again = cost_stores_weights(node, a) ? 0 : pairs * (double)a->D;
    }
    return cost;
}

struct bench_cost bench_cost_forward(const sb_node *node)
{
    struct bench_cost cost = cost_products(node);
    cost.again = 0;
    cost.operations *= cost_gives_early(node) ? 1 + cost_operands_wanted(node) : 1;
    for (int i = 0; i < node->inputs; i++)
        cost.bytes += cost_bytes_of(node->in[i]);
    for (int i = 0; i < node->made; i++)
        cost.bytes += cost_bytes_of(node->out[i]);
    return cost;
}

struct bench_cost bench_cost_backward(const sb_node *node)
{
    struct bench_cost cost = cost_products(node);
    const bool shares = node->inputs > 1 && !cost_is_named(node, "attention");
    for (int i = 0; i < node->inputs; i++) {
        const bool wants = tape_wants_grad(tape_open(), node->in[i]);
        cost.bytes += cost_bytes_of(node->in[i]) * (wants ? 2 : 1);
    }
    for (int i = 0; i < node->made; i++)
        cost.bytes += cost_bytes_of(node->out[i]);
    cost.operations *= cost_gives_early(node) ? 0 : shares ? cost_operands_wanted(node) : 2;
    return cost;
}
